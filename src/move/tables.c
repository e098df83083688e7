/* Jump tables. One that is proven, and whose address is used for nothing else, gets a copy in front of the
 * procedure's new code whose entries lead to new blocks, and the instruction that names it is re-aimed:
 *
 *     old:  lea table(%rip),%b ; movslq (%b,%i,4),%t ; add %b,%t ; jmp *%t      entry + table = old target
 *     new:  lea copy(%rip),%b  ; ...                                           entry' + copy = new target
 *
 * Code that is not optimised names it twice, once for the load and once for the addition: both are re-aimed. So are all
 * loads for one jump, which stand where what leads to it has been put together:
 *
 *     mov table(,%i,8),%t ; jmp 1f       mov table(,%i,8),%t ; jmp 1f       1: jmp *%t
 *
 * Of the others, nothing is changed, and their targets are caught in old code. Tables named by one
 * instruction are redirected together or not at all.
 */
#include "base/map.h"
#include "base/search.h"
#include "move/isa.h"

#include <string.h>

static bool fits(const cfg_table *t)
{
    return t->kind != CFG_TABLE_CODE && t->exact && !t->relocated && t->count != 0 && t->block != CFG_NONE;
}

static bool has_name(const cfg_table *t, uint64_t name) { return name && (t->named_at == name || t->added_at == name); }

static bool same_name(const cfg_table *a, const cfg_table *b)
{
    return has_name(a, b->named_at) || has_name(a, b->added_at);
}

/* One that another table has, too, is among `shared`. */
static void note_name(inl_map *names, inl_map *shared, uint64_t name)
{
    uint64_t unused;
    if (name) inl_map_put(inl_map_get(names, name, &unused) ? shared : names, name, 1);
}

/* Of two names none may be another table's. */
static bool has_own_names(const inl_map *shared, const cfg_table *t)
{
    uint64_t unused;
    return !t->added_at || (!inl_map_get(shared, t->named_at, &unused) && !inl_map_get(shared, t->added_at, &unused));
}

/* Tables that share their naming instruction with one that is not redirected. */
static bool spoilt(const move_work *w, uint32_t i)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t k = 0; k < p->table_count; k++) {
        const cfg_table *t = &p->tables[k];
        if (!same_name(t, &p->tables[i])) continue;
        if (!w->redirected[k] || t->table != p->tables[i].table || t->count != p->tables[i].count) return true;
    }
    return false;
}

/* All that name it in the block; false: something else than a jump needs what one loads. */
static bool note_names(move_work *w, uint32_t i, uint32_t block)
{
    const cfg_program *p = move_cfg(w);
    const cfg_block *b = &p->blocks[block];
    const uint8_t *bytes;
    size_t avail = image_bytes(p->image, b->addr, &bytes);
    if (avail < b->size) return false;
    isa_insn in;
    for (uint64_t off = 0; off < b->size; off += in.len) {
        bool only;
        if (p->isa->decode(bytes + off, avail - off, b->addr + off, &in) > ISA_UNKNOWN) return false;
        if (!w->isa->names_table(p, &p->tables[i], block, &in, &only)) continue;
        if (!only || !inl_vec_push(&w->more_names, ((move_name){in.addr, i}))) return false;
    }
    return true;
}

/* One that several name. Other jumps of the procedure may read it by the same instructions: it must be as large for all
 * of them. */
static bool is_named_by_several(move_work *w, uint32_t i)
{
    const cfg_program *p = move_cfg(w);
    const cfg_table *t = &p->tables[i];
    const size_t before = w->more_names.count;
    if (!w->isa->names_table || !t->each_names || !fits(t) || !w->isa->table_fits(p, t)) return false;
    const cfg_proc *of = &p->procs[p->blocks[t->block].proc];
    bool good = true;
    for (uint32_t k = 0; k < p->table_count && good; k++) {
        const cfg_table *o = &p->tables[k];
        bool same = o->table == t->table && o->block != CFG_NONE &&
                    p->blocks[o->block].proc == p->blocks[t->block].proc;
        good = !same || (o->exact && o->count == t->count && o->kind == t->kind);
    }
    for (uint32_t k = 0; k < of->block_count && good; k++) good = note_names(w, i, of->first_block + k);
    good &= w->more_names.count > before;
    if (!good) w->more_names.count = before;
    return good;
}

void move_pick_tables(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    inl_map names = {0}, shared = {0};
    uint64_t unused;
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        w->redirected[i] = t->named_at && fits(t) && w->isa->table_fits(p, t) && w->isa->names_table_only(p, t);
        note_name(&names, &shared, t->named_at);
        note_name(&names, &shared, t->added_at);
    }
    for (uint32_t i = 0; i < p->table_count; i++) w->redirected[i] &= has_own_names(&shared, &p->tables[i]);
    for (bool changed = shared.count > 0; changed;) {
        changed = false;
        for (uint32_t i = 0; i < p->table_count; i++) {
            if (!w->redirected[i] || !inl_map_get(&shared, p->tables[i].named_at, &unused)) continue;
            if (!spoilt(w, i)) continue;
            w->redirected[i] = 0;
            changed = true;
        }
    }
    inl_map_free(&names);
    inl_map_free(&shared);
    w->more_names.count = 0;
    for (uint32_t i = 0; i < p->table_count; i++)
        if (!p->tables[i].named_at) w->redirected[i] = is_named_by_several(w, i);
}

/* Chains each moved procedure's redirected tables. */
void move_chain_tables(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->proc_count; i++) w->first_table[i] = CFG_NONE;
    for (uint32_t i = p->table_count; i-- > 0;) {
        if (!move_redirects(w, &p->tables[i])) continue;
        uint32_t *first = &w->first_table[p->blocks[p->tables[i].block].proc];
        w->next_table[i] = *first;
        *first = i;
    }
}

bool move_redirects(const move_work *w, const cfg_table *t)
{
    const cfg_program *p = move_cfg(w);
    return w->redirected[t - p->tables] && move_is_moved(w, p->blocks[t->block].proc);
}

static bool read_entry(const cfg_program *p, const cfg_table *t, uint32_t i, uint64_t *target)
{
    const uint8_t *bytes;
    size_t avail = image_bytes(p->image, t->table + (uint64_t)i * t->entry_size, &bytes);
    int32_t relative;
    if (avail < t->entry_size) return false;
    if (t->kind == CFG_TABLE_ABSOLUTE) {
        memcpy(target, bytes, 8);
        return true;
    }
    memcpy(&relative, bytes, 4);
    *target = t->base + (uint64_t)(int64_t)relative;
    return true;
}

/* At all that name a table which has several names. */
static bool reaim_all(move_work *w, move_reaim r)
{
    const move_name *all = w->more_names.items;
    size_t k = INL_FIRST(w->more_names.count, n, all[n].table >= r.table);
    for (; k < w->more_names.count && all[k].table == r.table; k++) {
        r.named_at = move_assumed(w, all[k].at);
        if (!inl_vec_push(&w->reaims, r)) return false;
    }
    return true;
}

/* Makes room for the tables of the procedure in work, in front of its code. */
bool move_place_tables(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    w->reaims.count = 0;
    for (uint32_t i = w->first_table[w->proc]; i != CFG_NONE; i = w->next_table[i]) {
        const cfg_table *t = &p->tables[i];
        bool known = false;
        for (size_t k = 0; k < w->reaims.count; k++) known |= same_name(&p->tables[w->reaims.items[k].table], t);
        if (known) continue;
        size_t size = (size_t)t->count * t->entry_size;
        if (!move_text_reserve(w, size + 8) || !move_pad(w, (uint32_t)(-w->plan.text_size & (t->entry_size - 1u))))
            return false;
        move_reaim r = {move_assumed(w, t->named_at), move_assumed(w, t->table), w->plan.text_addr + w->plan.text_size,
                        i};
        if (!inl_vec_push(&w->reaims, r) || !inl_vec_push(&w->copies, r)) return false;
        r.named_at = move_assumed(w, t->added_at);
        if (t->added_at && !inl_vec_push(&w->reaims, r)) return false;
        if (!t->named_at && !reaim_all(w, r)) return false;
        memset(w->plan.text + w->plan.text_size, 0, size);
        w->plan.text_size += size;
    }
    return true;
}

static uint64_t new_target(const move_work *w, uint64_t link)
{
    uint32_t b = cfg_block_at(move_cfg(w), link);
    if (b == CFG_NONE || w->new_at[b] == MOVE_NOWHERE) return move_assumed(w, link);
    return w->plan.text_addr + w->new_at[b];
}

bool move_table_entry(const move_work *w, const move_reaim *r, uint64_t target, uint8_t *bytes)
{
    const cfg_table *t = &move_cfg(w)->tables[r->table];
    uint64_t base = t->base == t->table ? r->now : move_assumed(w, t->base);
    uint64_t value = t->kind == CFG_TABLE_ABSOLUTE ? target - w->plan.bias : target - base;
    memcpy(bytes, &value, t->entry_size);
    return t->kind != CFG_TABLE_RELATIVE || (int64_t)value == (int32_t)value;
}

/* Fills in the copies, when every procedure has its place. */
bool move_fill_tables(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (size_t i = 0; i < w->copies.count; i++) {
        const move_reaim *r = &w->copies.items[i];
        const cfg_table *t = &p->tables[r->table];
        for (uint32_t k = 0; k < t->count; k++) {
            uint64_t at = r->now + (uint64_t)k * t->entry_size, target;
            uint8_t *place = w->plan.text + (at - w->plan.text_addr);
            if (!read_entry(p, t, k, &target) || !move_table_entry(w, r, new_target(w, target), place)) return false;
        }
    }
    return true;
}

size_t move_table_copies(const move_plan *p, move_table_copy *out, size_t most)
{
    const move_work *w = p->priv;
    for (size_t i = 0; i < w->copies.count && i < most; i++)
        out[i] = (move_table_copy){.now = {w->copies.items[i].now}, .old = {w->copies.items[i].old}};
    return w->copies.count;
}
