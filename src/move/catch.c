/* Jumps over old code, to where it has moved.
 *
 * What may be overwritten: the blocks of moved procedures, dead once all ways into them are caught, and
 * padding that nothing uses; where that is not enough, also behind procedures that nobody has asked for. Where unknown
 * code may yet come back to old blocks, only those that are caught are. Bytes within a procedure that belong to no
 * block may be data and are not touched, but for what fills up pieces of code of one size. One byte of bookkeeping a
 * byte of text:
 *
 *     ....|FFFFFFFFFFFFFFFF|....        after the moved code is known: F free, . untouchable
 *     ....|JJJJJFFJJFFFFFFF|....        each place takes a far jump (here of five bytes), or a near one (of two) if
 *                                   another place follows
 *     ....|JJJJJFFJJFBBBBBF|....        of which the two reach a springboard nearby
 */
#include "base/search.h"
#include "move/isa.h"

#include <string.h>

enum { UNTOUCHABLE = 0, FREE = 1, TAKEN = 2, OWN = 3 /* for the jump of the block it belongs to only */ };

typedef struct ground {
    uint64_t low, high;
    uint8_t *bytes;
} ground;

static void set(ground *g, uint64_t at, uint64_t size, uint8_t what)
{
    if (at < g->low || at > g->high || size > g->high - at) return;
    memset(g->bytes + (at - g->low), what, size);
}

static bool is_free(const ground *g, uint64_t at, unsigned size)
{
    if (at < g->low || at > g->high || size > g->high - at) return false;
    for (unsigned i = 0; i < size; i++)
        if (g->bytes[at - g->low + i] != FREE) return false;
    return true;
}

/* Behind one of its calls, which seems not to return, is code that nothing is known of: it may jump about in
 * the procedure. */
static bool may_be_reentered(const cfg_program *p, const cfg_proc *of)
{
    uint64_t at;
    for (uint32_t k = 0; k < of->block_count; k++) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        if (!(b->flags & CFG_BLOCK_NO_RETURN)) continue;
        if (cfg_look_at(p, b->addr + b->size, &at) == CFG_SEES_UNKNOWN) return true;
    }
    return false;
}

/* Where a table may have entries that are not known, old blocks stay as they are, but for those that are caught. */
static void spare_open_tables(const move_work *w, ground *g)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (t->exact || t->block == CFG_NONE) continue;
        const cfg_proc *of = &p->procs[p->blocks[t->block].proc];
        for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++)
            if (!(w->block_bits[k] & MOVE_CATCH)) set(g, p->blocks[k].addr, p->blocks[k].size, UNTOUCHABLE);
    }
}

/* Pieces of code of one size, a jump to one of which is computed, are filled up with what does nothing. */
static void free_fill(const move_work *w, ground *g)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (t->kind != CFG_TABLE_CODE || t->block == CFG_NONE || !move_is_moved(w, p->blocks[t->block].proc)) continue;
        for (uint32_t k = 0; k + 1 < t->count; k++) {
            const uint64_t next = cfg_table_target(p, t, k + 1);
            uint64_t end = next, at;
            while (end > cfg_table_target(p, t, k) && cfg_block_covering(p, end - 1) == CFG_NONE) end--;
            if (cfg_look_at(p, end, &at) == CFG_SEES_BLOCK && at == next) set(g, end, next - end, FREE);
        }
    }
}

static bool may_overwrite(const move_work *w, uint32_t block)
{
    const move_target *t = w->target;
    if (w->lands_old[move_cfg(w)->blocks[block].proc]) return false;
    return !t->may_overwrite || t->may_overwrite(t->arg, move_cfg(w), block);
}

static void spare_call(const move_work *w, ground *g, uint32_t block)
{
    const cfg_block *b = &move_cfg(w)->blocks[block];
    uint32_t size = move_bytes_that_stay(w, block);
    set(g, b->addr + b->size - size, size, UNTOUCHABLE);
}

static bool survey(const move_work *w, ground *g)
{
    const cfg_program *p = move_cfg(w);
    *g = (ground){.low = UINT64_MAX};
    for (uint32_t i = 0; i < p->proc_count; i++) {
        const cfg_proc *of = &p->procs[i];
        if (of->addr < g->low) g->low = of->addr;
        if (of->addr + of->size + of->padding > g->high) g->high = of->addr + of->size + of->padding;
    }
    if (g->high <= g->low) g->low = g->high = 0;
    g->bytes = calloc(g->high - g->low + 1, 1);
    if (!g->bytes) return false;
    for (uint32_t i = 0; i < p->proc_count; i++) {
        const cfg_proc *of = &p->procs[i];
        if (!move_is_moved(w, i)) continue;
        bool stays = may_be_reentered(p, of);
        set(g, of->addr + of->size, of->padding, FREE);
        for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++)
            if (!stays || w->block_bits[k] & MOVE_CATCH)
                set(g, p->blocks[k].addr, p->blocks[k].size, may_overwrite(w, k) ? FREE : OWN);
        for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++) spare_call(w, g, k);
    }
    spare_open_tables(w, g);
    free_fill(w, g);
    return true;
}

static bool is_own(const ground *g, uint64_t at) { return at < g->high && g->bytes[at - g->low] == OWN; }

/* For the longest jump that can stand at the block's begin; 0: none. */
static unsigned room_at(const ground *g, const move_isa *set, const cfg_block *b, uint64_t next)
{
    unsigned room = 0;
    for (uint64_t at = b->addr; room < set->far_jump && at < next; room++, at++)
        if (!is_free(g, at, 1) && !(at < b->addr + b->size && is_own(g, at))) break;
    return room >= set->far_jump ? set->far_jump : room >= set->near_jump ? set->near_jump : 0;
}

/* Room for a far jump that a near one at `at` reaches, the nearest behind it first. */
static uint64_t find_board(const ground *g, const move_isa *set, uint64_t at)
{
    uint64_t end = at + set->near_jump;
    for (unsigned d = 0; d <= set->near_on; d++)
        if (is_free(g, end + d, set->far_jump)) return end + d;
    for (unsigned d = 1; d <= set->near_back; d++)
        if (end >= d && is_free(g, end - d, set->far_jump)) return end - d;
    return 0;
}

/* The padding near `at` of procedures that nobody has asked for, but for what a board has taken. */
static void free_unasked(const move_work *w, ground *g, uint64_t at)
{
    const cfg_program *p = move_cfg(w);
    const uint64_t from = at > w->isa->near_back ? at - w->isa->near_back : 0;
    const uint64_t to = at + w->isa->near_jump + w->isa->near_on + w->isa->far_jump;
    size_t i = INL_FIRST(p->proc_count, k, p->procs[k].addr + p->procs[k].size + p->procs[k].padding > from);
    for (; i < p->proc_count && p->procs[i].addr < to; i++) {
        const cfg_proc *of = &p->procs[i];
        const bool is_whole = of->status == CFG_PROC_WHOLE && !may_be_reentered(p, of);
        if (w->plan.procs[i].how != MOVE_UNWANTED || !is_whole) continue;
        for (uint64_t end = of->addr + of->size, k = end; k < end + of->padding; k++)
            if (g->bytes[k - g->low] == UNTOUCHABLE) set(g, k, 1, FREE);
    }
}

/* There is no room at `block`. Where only exceptions come to it, which are thrown out of a signal's handler and so
 * find a frame that shows an original address, old code may run: it stays whole, but for the jumps of other places. */
static bool land_old(move_work *w, uint32_t block)
{
    const uint32_t proc = move_cfg(w)->blocks[block].proc;
    uint8_t *bits = &w->block_bits[block];
    if (!w->target->outside_stays || !(*bits & MOVE_PAD_LEFT) || w->lands_old[proc] == MOVE_LANDS_OLD) return false;
    *bits = (uint8_t)((*bits & ~MOVE_PAD_LEFT) | MOVE_TAIL_SEEN);
    w->lands_old[proc] = MOVE_WILL_LAND_OLD;
    return !move_catch_is_needed(w, block);
}

/* Procedures are left alone only where others, which can do without a place, have not taken the room. */
static bool give_up_failed(move_work *w, const char *why)
{
    bool any = false, land = false;
    for (size_t i = 0; i < w->catches.count; i++)
        if (w->catches.items[i].failed) any = true, land |= land_old(w, w->catches.items[i].block);
    for (size_t i = 0; i < w->catches.count && !land; i++)
        if (w->catches.items[i].failed) move_leave(w, move_cfg(w)->blocks[w->catches.items[i].block].proc, why);
    return any;
}

/* Where a part of a procedure would begin with a landing pad, which then had the number of none, compilers put an
 * instruction in front that does nothing. No way leads there; what came all the same would go on to the pad, which is
 * a place of its own. */
static bool is_before_pad(const move_work *w, uint32_t block)
{
    const cfg_program *p = move_cfg(w);
    const cfg_block *b = &p->blocks[block], *behind = b + 1;
    isa_insn in;
    return b->flags == CFG_BLOCK_ENTRY && !(p->procs[b->proc].flags & MOVE_WAYS_IN) &&
           b->addr != image_entry(p->image) && behind < p->blocks + p->block_count &&
           behind->addr == b->addr + b->size && behind->flags & CFG_BLOCK_LANDING &&
           w->block_bits[block + 1] & MOVE_CATCH && move_last_insn(p, b, &in) && in.len == b->size &&
           in.flow == ISA_FLOW_NEXT;
}

/* So it is where Go's run time has a procedure go on that has recovered: what is in front, behind a call that does not
 * return, does nothing. */
static bool is_before_recovery(const move_work *w, uint32_t block)
{
    const cfg_program *p = move_cfg(w);
    const cfg_block *b = &p->blocks[block], *behind = b + 1;
    isa_insn in;
    return w->block_bits[block] & MOVE_BEHIND_CALL && !b->flags && behind < p->blocks + p->block_count &&
           behind->addr == b->addr + b->size && behind->flags & CFG_BLOCK_OUTSIDE &&
           w->block_bits[block + 1] & MOVE_CATCH && move_last_insn(p, b, &in) && in.len == b->size &&
           in.flow == ISA_FLOW_NEXT;
}

/* False: a procedure had to be left alone, or may not be overwritten. */
static bool claim_places(move_work *w, ground *g)
{
    const cfg_program *p = move_cfg(w);
    for (size_t i = 0; i < w->catches.count; i++) {
        move_catch *c = &w->catches.items[i];
        const cfg_block *b = &p->blocks[c->block];
        uint64_t next = i + 1 < w->catches.count ? p->blocks[w->catches.items[i + 1].block].addr : UINT64_MAX;
        c->room = room_at(g, w->isa, b, next);
        if (c->optional && c->room != w->isa->far_jump) c->room = 0;
        set(g, b->addr, c->room, TAKEN);
        if (c->room) continue;
        set(g, b->addr, b->size, UNTOUCHABLE);
        c->failed = !c->optional && move_catch_is_needed(w, c->block) && !is_before_pad(w, c->block) &&
                    !is_before_recovery(w, c->block);
    }
    return !give_up_failed(w, "there is no room for a jump where its code can be reached");
}

static bool claim_boards(move_work *w, ground *g)
{
    const cfg_program *p = move_cfg(w);
    for (size_t i = 0; i < w->catches.count; i++) {
        move_catch *c = &w->catches.items[i];
        const cfg_block *b = &p->blocks[c->block];
        if (!c->room || c->room == w->isa->far_jump) continue;
        c->board = find_board(g, w->isa, b->addr);
        if (!c->board) free_unasked(w, g, b->addr);
        if (!c->board) c->board = find_board(g, w->isa, b->addr);
        set(g, c->board, c->board ? w->isa->far_jump : 0, TAKEN);
        if (c->board) continue;
        c->failed = !move_old_may_run(w, b->proc) || move_catch_is_needed(w, c->block);
        c->room = 0;
    }
    return !give_up_failed(w, "there is no room for a springboard near where its code can be reached");
}

bool move_catch_all(move_work *w)
{
    ground g;
    if (!survey(w, &g)) {
        w->no_room = true;
        return false;
    }
    bool all = claim_places(w, &g) && claim_boards(w, &g);
    free(g.bytes);
    return all;
}

static bool add_patch(move_work *w, uint32_t proc, uint64_t at, uint64_t target, unsigned size)
{
    move_patch patch = {.at = {at}, .proc = proc, .size = (uint8_t)size};
    const uint8_t *bytes;
    if (w->target->read(w->target->arg, (link_addr){at - w->plan.bias}, &bytes) < size) return false;
    memcpy(patch.before, bytes, size);
    return w->isa->jump(at, target, size, patch.now) && inl_vec_push(&w->patches, patch);
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const move_patch *)a)->at.at, y = ((const move_patch *)b)->at.at;
    return x < y ? -1 : x > y;
}

bool move_make_patches(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (size_t i = 0; i < w->catches.count; i++) {
        const move_catch *c = &w->catches.items[i];
        const cfg_block *b = &p->blocks[c->block];
        uint64_t at = move_assumed(w, b->addr), board = move_assumed(w, c->board);
        uint64_t target = w->plan.text_addr + w->new_at[c->block];
        move_proc *of = &w->plan.procs[b->proc];
        if (!c->room) continue;
        if (!c->board) {
            if (!add_patch(w, b->proc, at, target, w->isa->far_jump)) return false;
            continue;
        }
        if (b->flags & CFG_BLOCK_ENTRY && of->how == MOVE_MOVED) of->how = MOVE_MOVED_SHORT;
        if (!add_patch(w, b->proc, at, board, w->isa->near_jump) ||
            !add_patch(w, b->proc, board, target, w->isa->far_jump))
            return false;
    }
    if (w->patches.count) qsort(w->patches.items, w->patches.count, sizeof *w->patches.items, by_address);
    return true;
}
