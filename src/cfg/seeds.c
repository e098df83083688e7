/* Ways into code that no instruction shows: relocations and data words that hold its address, functions that
 * are run at start and end, landing pads, and code that nobody seems to refer to.
 *
 * What surely is an address but not surely of code (a constant may lie in the text), and what only looks
 * like an address, is tried: where it makes no sense as code, it is none. */
#include "cfg/work.h"
#include "base/search.h"

#include <elf.h>
#include <string.h>

/* Something holds the address `to`. */
static void point_at(cfg_work *w, uint64_t to, uint64_t at, bool sure)
{
    uint8_t *m = cfg_mark(w, to);
    if (!m) return;
    if (*m & MARK_ENTRY) {
        uint32_t number = cfg_proc_near(w, to);
        w->procs.items[number].flags |= CFG_PROC_ADDRESS_TAKEN;
        return;
    }
    if (sure) *m |= MARK_HELD;
    cfg_keep(w, &w->found, (cfg_pointer){.to = to, .at = at, .sure = sure});
}

/* What stands where a resolver's answer goes is never read: linkers leave the address of a stub's middle there. */
static bool is_overwritten(const cfg_work *w, uint64_t at)
{
    const image_reloc *r = image_reloc_at(w->image, at);
    return r && r->kind == IMAGE_RELOC_RESOLVER;
}

static void scan_words(cfg_work *w, uint64_t addr, uint64_t end)
{
    const uint8_t *bytes;
    addr = (addr + 7) & ~7ull;
    uint64_t have = addr < end ? image_bytes(w->image, addr, &bytes) : 0;
    if (have > end - addr) have = end - addr;
    for (uint64_t i = 0; i + 8 <= have; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, bytes + i, 8);
        if (word - w->low < w->high - w->low && !is_overwritten(w, addr + i)) point_at(w, word, addr + i, false);
    }
}

/* Everything that is no text. */
static void scan_data(cfg_work *w)
{
    const image_segment *s;
    size_t count = image_segments(w->image, &s);
    for (size_t i = 0; i < count; i++) {
        uint64_t at = s[i].addr, end = s[i].addr + s[i].file_size;
        for (size_t r = 0; r < w->regions.count && at < end; r++) {
            const cfg_region *t = &w->regions.items[r];
            if (t->end <= at || t->addr >= end) continue;
            if (t->addr > at) scan_words(w, at, t->addr);
            at = t->end;
        }
        scan_words(w, at, end);
    }
}

static void seed_resolver(cfg_work *w, uint64_t addr)
{
    uint8_t *m = cfg_mark(w, addr);
    if (!m) return;
    if (!(*m & MARK_ENTRY))
        cfg_keep(w, &w->fresh, (cfg_fresh){addr, {.proc = CFG_NONE}, CFG_PROC_IFUNC, CFG_SOURCE_POINTER});
    else w->procs.items[cfg_proc_near(w, addr)].flags |= CFG_PROC_IFUNC;
}

static void seed_startup(cfg_work *w)
{
    enum { room = 4096 };
    uint64_t *list = malloc(room * sizeof *list);
    if (!list) {
        w->failed = true;
        return;
    }
    size_t count = image_startup(w->image, list, room - 1);
    if (count > room - 1) count = room - 1;
    uint64_t entry = image_entry(w->image);
    if (entry) list[count++] = entry;
    for (size_t i = 0; i < count; i++) {
        uint8_t *m = cfg_mark(w, list[i]);
        if (m && !(*m & MARK_ENTRY))
            cfg_keep(w, &w->fresh, (cfg_fresh){list[i], {.proc = CFG_NONE}, CFG_PROC_ADDRESS_TAKEN, IMAGE_PROC_ENTRY});
        else if (m) w->procs.items[cfg_proc_near(w, list[i])].flags |= CFG_PROC_ADDRESS_TAKEN;
    }
    free(list);
}

/* Labels inside procedures that other images can reach. */
static void seed_inner_symbols(cfg_work *w)
{
    const image_code_symbol *s;
    size_t count = image_code_symbols(w->image, &s);
    for (size_t i = 0; i < count; i++) {
        uint8_t *m = s[i].dynamic ? cfg_mark(w, s[i].addr) : NULL;
        if (m && !(*m & MARK_ENTRY)) cfg_enter(w, s[i].addr, CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_OUTSIDE);
    }
}

/* No table reaches over the start or the end of a section. */
static void name_sections(cfg_work *w)
{
    const image_section *s;
    size_t count = image_sections(w->image, &s);
    for (size_t i = 0; i < count; i++) {
        if (!(s[i].flags & SHF_ALLOC)) continue;
        cfg_name_data(w, s[i].addr, true);
        cfg_name_data(w, s[i].addr + s[i].size, true);
    }
}

/* Until the dynamic linker has found what an import stub leads to, its slot leads back into the stub, or at once to
 * what all stubs go on at (mold). */
static void seed_slot(cfg_work *w, const image_reloc *r)
{
    const uint8_t *bytes;
    uint64_t to;
    if (image_bytes(w->image, r->offset, &bytes) < sizeof to) return;
    __builtin_memcpy(&to, bytes, sizeof to);
    const uint8_t *m = cfg_mark(w, to);
    const uint32_t near = m ? cfg_proc_near(w, to) : CFG_NONE;
    const cfg_draft *p = near != CFG_NONE ? &w->procs.items[near] : NULL;
    if (!m || *m & MARK_ENTRY) return;
    if (p && p->flags & CFG_PROC_PLT && cfg_inside(p, to)) cfg_enter(w, to, CFG_BLOCK_ADDRESS_TAKEN);
    else if (cfg_region_at(w, to)->stubs)
        cfg_keep(w, &w->fresh, (cfg_fresh){to, {.proc = CFG_NONE}, CFG_PROC_ADDRESS_TAKEN, CFG_SOURCE_POINTER});
}

void cfg_seed_pointers(cfg_work *w)
{
    const image_reloc *r;
    size_t count = image_relocs(w->image, &r);
    name_sections(w);
    seed_startup(w);
    seed_inner_symbols(w);
    for (size_t i = 0; i < count && !w->failed; i++) {
        if (r[i].kind == IMAGE_RELOC_RESOLVER) seed_resolver(w, r[i].value);
        else if (r[i].value) point_at(w, r[i].value, r[i].offset, true);
        if (r[i].value) cfg_name_data(w, r[i].value, true);
        if (r[i].kind == IMAGE_RELOC_SLOT) seed_slot(w, &r[i]);
    }
    if (w->fixed) scan_data(w);
}

/* A jump of the run time's leads there. */
static void seed_recovery(void *arg, uint64_t addr)
{
    cfg_work *w = arg;
    const uint8_t *bytes;
    isa_insn in;
    size_t avail = image_bytes(w->image, addr, &bytes);
    if (w->failed || w->isa->decode(bytes, avail, addr, &in) != ISA_OK || in.flow != ISA_FLOW_CALL) return;
    if (cfg_mark(w, addr)) cfg_enter(w, addr, CFG_BLOCK_OUTSIDE);
}

void cfg_seed_landing_pads(cfg_work *w)
{
    if (w->go) image_go_recoveries(w->image, seed_recovery, w);
    const image_unwind_range *r;
    image_lsda l = {0};
    size_t count = image_unwind_ranges(w->image, &r);
    for (size_t i = 0; i < count && !w->failed; i++) {
        if (!r[i].lsda) continue;
        image_lsda_read(w->image, r[i].lsda, r[i].addr, &l);
        uint64_t last = 0;
        for (size_t k = 0; k < l.count; k++) {
            uint64_t pad = l.sites[k].landing_pad;
            if (pad && pad != last && cfg_mark(w, pad)) {
                cfg_enter(w, pad, CFG_BLOCK_LANDING);
                cfg_wait_for_piece(w, r[i].addr, pad);
            }
            last = pad;
        }
    }
    image_lsda_free(&l);
}

/* --- tables --- */

static int by_start(const void *a, const void *b)
{
    const cfg_span *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void cfg_index_tables(cfg_work *w)
{
    w->table_spans.count = w->table_bases.count = 0;
    for (size_t i = 0; i < w->indirects.count; i++) {
        const cfg_indirect *j = &w->indirects.items[i];
        if (j->table == CFG_NONE) continue;
        const cfg_table *t = &w->tables.items[j->table];
        if (t->kind == CFG_TABLE_CODE) continue;
        cfg_span s = {t->table, t->table + (uint64_t)t->count * t->entry_size};
        cfg_keep(w, &w->table_spans, s);
        if (t->shift) cfg_keep(w, &w->table_bases, t->base);
    }
    if (w->table_spans.count) qsort(w->table_spans.items, w->table_spans.count, sizeof(cfg_span), by_start);
    if (w->table_bases.count) qsort(w->table_bases.items, w->table_bases.count, sizeof(uint64_t), by_number);
}

/* Code whose address is only taken for entries of tables to count from it: what compilers make, as against gotos
 * that are written with such a base, shifts the entries. */
static bool is_table_base(const cfg_work *w, uint64_t addr)
{
    return w->table_bases.count &&
           bsearch(&addr, w->table_bases.items, w->table_bases.count, sizeof addr, by_number) != NULL;
}

bool cfg_in_table(const cfg_work *w, uint64_t at)
{
    size_t behind = INL_FIRST(w->table_spans.count, k, w->table_spans.items[k].addr > at);
    return behind && at < w->table_spans.items[behind - 1].end;
}

/* --- following pointers --- */

static int by_target(const void *a, const void *b)
{
    const cfg_pointer *x = a, *y = b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void use_pointer(cfg_work *w, cfg_pointer *q, uint32_t number)
{
    cfg_draft *p = &w->procs.items[number];
    uint8_t *m = cfg_mark(w, q->to);
    q->used = true;
    p->taken_inside = true;
    p->dirty = true;
    if (*m & MARK_ENTRY) p->flags |= CFG_PROC_ADDRESS_TAKEN;
    *m |= MARK_BLOCK;
}

enum { alignment = 16 }; /* of procedures, where nothing else shows that one begins */

/* Numbers that look like addresses may be anything, as the end of a text; procedures are aligned. */
static bool is_likely(const cfg_pointer *q) { return q->sure || q->to % alignment == 0; }

static bool follow(cfg_work *w, cfg_pointer *q)
{
    uint8_t *m = cfg_mark(w, q->to);
    uint32_t number = cfg_proc_near(w, q->to);
    if (!m || number == CFG_NONE || !cfg_inside(&w->procs.items[number], q->to)) return false;
    if (q->in_code ? is_table_base(w, q->to) : cfg_in_table(w, q->at)) return false;
    if (*m & MARK_INSN) {
        use_pointer(w, q, number);
        return true;
    }
    if (*m & MARK_BODY) {
        if (q->sure) cfg_blame(w, number, "an address inside an instruction is taken");
        return false;
    }
    if (!cfg_try(w, number, q->to)) {
        if (w->trial_overlaps && is_likely(q)) cfg_blame(w, number, "instructions overlap");
        return false;
    }
    use_pointer(w, q, number);
    return true;
}

/* May a procedure begin where only a number that looks like an address leads? Bytes from the middle of
 * another one's code often make sense too, and that one may not be known. */
static bool may_begin(const cfg_work *w, uint64_t at)
{
    const cfg_region *r = cfg_region_at(w, at);
    const uint8_t *bytes = r->bytes + (at - r->addr);
    const image_unwind_range *ranges;
    bool aligned = at % alignment == 0, begins = w->machine->prologue(bytes, r->end - at);
    bool described = image_unwind_ranges(w->image, &ranges) != 0; /* what they do not describe is little */
    if (described ? !aligned && !begins : !aligned || !begins) return false;
    if (at == r->addr) return true;
    size_t unit = w->machine->unit;
    return bytes[-1] == 0 || (at - r->addr >= unit && w->machine->padding(w->isa, bytes - unit, unit)) ||
           cfg_mark(w, at)[-1] & (MARK_INSN | MARK_BODY);
}

/* New procedures where pointers lead into gaps; each has to make sense as code. False: there are none; all is as it
 * was before. */
static bool fill_gaps(cfg_work *w, uint8_t source, uint16_t flags)
{
    size_t before = w->procs.count, dropped = 0;
    for (size_t i = 0; i < w->found.count; i++) {
        uint64_t to = w->found.items[i].to;
        uint8_t *m = cfg_mark(w, to);
        uint32_t number = cfg_proc_near(w, to);
        if (!m || *m & (MARK_INSN | MARK_BODY | MARK_ENTRY)) continue;
        const cfg_draft *p = number == CFG_NONE ? NULL : &w->procs.items[number];
        if (p && p->sized && cfg_inside(p, to)) continue;
        if (source == CFG_SOURCE_POINTER && !w->found.items[i].sure && !may_begin(w, to)) continue;
        cfg_procs_add(w, to, 0, NULL, source, flags);
    }
    if (w->procs.count == before) return false;
    cfg_procs_settle(w);
    for (size_t i = before; i < w->procs.count && !w->failed; i++) {
        uint64_t addr = w->procs.items[i].addr;
        if (cfg_try(w, (uint32_t)i, addr)) continue;
        w->procs.items[i].absent = true;
        *cfg_mark(w, addr) &= (uint8_t)~MARK_ENTRY;
        dropped++;
    }
    if (dropped) cfg_procs_drop(w);
    return w->procs.count - before > dropped;
}

/* Those from `old` on are new, and few once the first have been followed; what stands in front of them is sorted. */
static void sort_in(cfg_work *w, size_t old)
{
    cfg_pointer *all = w->pointers.items;
    const size_t new = w->pointers.count - old;
    cfg_pointer *apart = new ? malloc(new * sizeof *apart) : NULL;
    if (new && !apart) w->failed = true;
    if (!apart) return;
    qsort(all + old, new, sizeof *all, by_target);
    memcpy(apart, all + old, new * sizeof *apart);
    for (size_t to = old + new, left = new; left;) {
        const bool is_new = !old || by_target(&all[old - 1], &apart[left - 1]) <= 0;
        all[--to] = is_new ? apart[--left] : all[--old];
    }
    free(apart);
}

bool cfg_follow_pointers(cfg_work *w)
{
    size_t old = w->pointers.count;
    cfg_index_tables(w);
    bool new = fill_gaps(w, CFG_SOURCE_POINTER, CFG_PROC_ADDRESS_TAKEN);
    if (!inl_vec_reserve(&w->pointers, old + w->found.count)) {
        w->failed = true;
        return false;
    }
    size_t found = w->found.count; /* more come while they are followed */
    for (size_t i = 0; i < found; i++) w->pointers.items[w->pointers.count++] = w->found.items[i];
    for (size_t i = found; i < w->found.count; i++) w->found.items[i - found] = w->found.items[i];
    w->found.count -= found;
    for (int likely = 1; likely >= 0; likely--) /* code of the others must not take their place */
        for (size_t i = old; i < w->pointers.count && !w->failed; i++)
            if (is_likely(&w->pointers.items[i]) == likely) new |= follow(w, &w->pointers.items[i]);
    sort_in(w, old);
    return new || w->todo.count || w->fresh.count || w->found.count;
}

/* --- gaps --- */

/* The end of what is known of the procedure's code. */
static uint64_t known_end(const cfg_work *w, const cfg_draft *p)
{
    const cfg_region *r = cfg_region_at(w, p->addr);
    const uint8_t *marks = w->marks + r->base;
    uint64_t end = p->end;
    if (p->sized) return end;
    if (end > r->end) end = r->end;
    while (end > p->addr && !(marks[end - 1 - r->addr] & (MARK_INSN | MARK_BODY))) end--;
    return end;
}

static void look_at_place(cfg_work *w, const cfg_region *r, uint64_t at, uint64_t to)
{
    if (at < to && w->machine->prologue(r->bytes + (at - r->addr), to - at))
        cfg_keep(w, &w->found, (cfg_pointer){.to = at});
}

/* The first thing that is no padding, and aligned places behind bytes that are padding by themselves. */
static void look_at_gap(cfg_work *w, const cfg_region *r, uint64_t from, uint64_t to)
{
    if (r->stubs || from >= to) return;
    from = cfg_skip_padding(w, from, to);
    while (from < to && r->bytes[from - r->addr] == 0) from++; /* filled up with zeros */
    look_at_place(w, r, from, to);
    for (uint64_t at = (from | (alignment - 1)) + 1; at < to; at += alignment) {
        const uint8_t *here = r->bytes + (at - r->addr);
        size_t unit = w->machine->unit;
        if (here[-1] == 0 || (at - r->addr >= unit && w->machine->padding(w->isa, here - unit, unit)))
            look_at_place(w, r, at, to);
    }
}

/* What follows a trap and nothing leads to. A run of traps to the procedure's end is padding. */
static uint64_t behind_trap(const cfg_work *w, uint64_t at, uint64_t end)
{
    isa_insn in;
    uint64_t next = at;
    while (cfg_decode(w, next, end, &in) && w->sems[in.op] == SEM_HALT) next += in.len;
    if (next == at || next >= end || cfg_is_padding(w, next, end) || cfg_in_table(w, next)) return 0;
    return *cfg_mark(w, next) & (MARK_INSN | MARK_BODY) ? 0 : next;
}

/* A handler may have the program go on behind a trap, and compilers know nothing of that. Where there are jump tables
 * such code may rather be a case of one that was read too short. */
static bool look_behind_traps(cfg_work *w, uint32_t number)
{
    const cfg_draft *p = &w->procs.items[number];
    const cfg_region *r = cfg_region_at(w, p->addr);
    uint64_t addr = p->addr, end = p->end;
    bool new = false;
    if (!p->sized || p->absent || p->jumps || !r || r->stubs) return false;
    if (end > r->end) end = r->end;
    for (const uint8_t *m = w->marks + r->base - r->addr; addr < end && !w->failed; addr++) {
        if ((m[addr] & (MARK_INSN | MARK_TERM)) != (MARK_INSN | MARK_TERM)) continue;
        uint64_t next = behind_trap(w, addr, end);
        if (!next || !cfg_try(w, number, next)) continue;
        cfg_enter(w, next, CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_OUTSIDE);
        new = true;
    }
    return new;
}

bool cfg_search_traps(cfg_work *w)
{
    bool new = false;
    cfg_index_tables(w);
    for (size_t i = 0; i < w->procs.count && !w->failed; i++) new |= look_behind_traps(w, (uint32_t)i);
    return new;
}

bool cfg_search_gaps(cfg_work *w)
{
    size_t at = 0;
    w->found.count = 0;
    for (size_t i = 0; i < w->regions.count; i++) {
        const cfg_region *r = &w->regions.items[i];
        uint64_t from = r->addr;
        for (; at < w->order.count && w->starts.items[at] < r->end; at++) {
            const cfg_draft *p = &w->procs.items[w->order.items[at]];
            if (p->absent) continue;
            look_at_gap(w, r, from, p->addr);
            from = known_end(w, p);
        }
        look_at_gap(w, r, from, r->end);
    }
    size_t looked = w->found.count; /* what is found from now on are real pointers */
    bool new = fill_gaps(w, CFG_SOURCE_PROLOGUE, CFG_PROC_GUESSED);
    for (size_t i = looked; i < w->found.count; i++) w->found.items[i - looked] = w->found.items[i];
    w->found.count -= looked;
    return new;
}
