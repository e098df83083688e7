/* Where a signal found the thread, as the program knows it: the original address, and what of its state waits
 * in the thread's frame. For any thread at any time. */
#include "moved/pieces.h"
#include INL_ARCH_HEADER(run, abi)

static const move_carried_states *states_of(const moved_image *i)
{
    return i->map && i->map->states ? (const void *)((const char *)i->map + i->map->states) : NULL;
}

static bool is_clean(weave_parked p) { return !(p.spilled | p.junk | p.flags_saved | p.pending); }

/* In moved code. `back`: the instruction that trapped is over, and begins so far in front at the latest. */
static void locate_moved(const moved_image *i, uint64_t pc, unsigned back, bool fault, moved_where *at)
{
    const move_carried_states *s = states_of(i);
    uint32_t off = (uint32_t)(pc - back - i->text);
    const move_carried_fault *f = fault ? moved_states_fault(s, off) : NULL;
    moved_spot spot;
    at->image = i;
    at->known = true;
    if (f) {
        at->state = (weave_parked){f->spilled, f->junk, (uint8_t)f->flags_saved, 1};
        at->pc = i->map_base + f->old_off;
        if (moved_states_find_old(s, f->old_off, &spot)) at->place = i->text + spot.new_off;
    } else if (moved_states_find(s, off, &spot)) {
        at->before = off < spot.code_off;
        at->known = fault ? !at->before : off == spot.code_off || off == spot.new_off;
        at->state = at->before ? spot.before : spot.at;
        at->pc = i->map_base + spot.old_off;
        if (at->known) at->place = i->text + spot.new_off;
        if (at->known && back)
            at->pc += pc - (i->text + spot.code_off); /* as copied; the old bytes may be a jump by now */
    } else {
        at->known = false;
    }
    if (!at->known) at->state = (weave_parked){0};
    at->kind = at->known && is_clean(at->state) ? MOVED_CLEAN : MOVED_KEPT;
}

/* In a piece that took a system call's place in code that has not moved. Its instructions are the program's. */
static bool locate_piece(uint64_t pc, bool exact, isa_regs junk, moved_where *at)
{
    uint64_t old = moved_image_at(pc) ? 0 : moved_site_of(pc, exact);
    if (!old) return false;
    at->pc = old;
    at->kind = MOVED_KEPT;
    at->state.junk = junk;
    return true;
}

/* Where the gate is asked for a system call of the program's, the thread is at it. */
static void locate_gate(uint64_t pc, const weave_context *c, moved_where *at)
{
    uint64_t behind = 0;
    isa_regs junk = 0;
    at->known = moved_gate_asks(pc, c, &behind, &junk);
    const moved_image *i = moved_at(behind);
    if (at->known && !i && locate_piece(behind - 1, false, junk, at)) return;
    if (!at->known || (i && states_of(i))) at->kind = MOVED_KEPT;
    if (!at->known || !i || !states_of(i)) return;
    moved_spot spot;
    at->state.junk = junk;
    if (!moved_states_find(states_of(i), (uint32_t)(behind - 1 - i->text), &spot)) return;
    at->pc = i->map_base + spot.old_off;
    at->place = i->text + spot.new_off;
}

void moved_locate(uint64_t pc, const weave_context *c, unsigned back, bool fault, moved_where *at)
{
    *at = (moved_where){.pc = pc, .kind = MOVED_PLAIN, .known = true};
    uint64_t jumps_to = moved_at(pc - back) || back || fault ? 0 : moved_jumps_to(pc);
    if (jumps_to) pc = jumps_to; /* a springboard lies anywhere; none faults */
    const moved_image *i = moved_at(pc - back);
    if (i && states_of(i)) locate_moved(i, pc, back, fault, at);
    else if (moved_in_gate(pc)) locate_gate(pc, c, at);
    else if (moved_in_delivery(pc)) at->kind = MOVED_KEPT; /* the other signal looks into the slots yet */
    else if (!back) locate_piece(pc, true, 0, at);
}

assumed_addr moved_asked_at(real_addr behind)
{
    uint64_t site = moved_at(behind.at) || moved_image_at(behind.at) ? 0 : moved_site_of(behind.at - 1, false);
    uint64_t at = moved_original((real_addr){site ? site : behind.at}).at;
    return (assumed_addr){site ? at : at - RUN_SYSCALL_BYTES};
}

bool moved_inlined(uint64_t pc, uint64_t *original, uint64_t *routine)
{
    const moved_image *i = moved_at(pc);
    const move_carried_inlined *n = i ? moved_states_inlined(states_of(i), (uint32_t)(pc - i->text)) : NULL;
    if (!n) return false;
    *original = i->map_base + n->old_off;
    *routine = n->routine;
    return true;
}

static bool find_moved(const moved_image *i, uint64_t original, moved_spot *spot)
{
    return moved_states_find_old(states_of(i), (uint32_t)(original - i->map_base), spot);
}

real_addr moved_to(real_addr pc)
{
    const moved_image *i = moved_at(pc.at) ? NULL : moved_image_at(pc.at);
    moved_spot spot;
    uint64_t later = i && moved_pieces_now.count ? moved_piece_to(pc.at) : 0;
    if (later) return (real_addr){later};
    return (real_addr){i && find_moved(i, pc.at, &spot) ? i->text + spot.new_off : 0};
}

real_addr moved_onward(real_addr pc)
{
    const real_addr to = moved_to(pc);
    for (const moved_finder *f = moved_finders; f->name && to.at; f++)
        if (*(const uint64_t *)f->next == to.at) return (real_addr){0};
    return to;
}

uint64_t moved_code_of(const moved_image *i, uint64_t original)
{
    moved_spot spot;
    return find_moved(i, original, &spot) ? i->text + spot.code_off : 0;
}

/* --- counts --- */

typedef struct change {
    run_thread *t;
    int64_t sign;
} change;

static void subtract(void *arg, uint32_t counter, int64_t amount)
{
    const change *c = arg;
    ((int64_t *)((char *)c->t + WEAVE_COUNTERS))[counter] -= c->sign * amount;
}

/* Where the procedure's counts follow from flows, one ends in this block. */
static void end_flow(run_thread *t, const moved_image *i, const moved_spot *spot, int64_t sign)
{
    const move_carried_flows *f = moved_states_flows(states_of(i), spot->new_off);
    uint32_t block = moved_block_of(i, spot->new_off), first = f ? moved_block_of(i, f->new_off) : 0;
    if (!f || block == UINT32_MAX || block - first >= f->block_count || !moved_now.hooks.flow_ends) return;
    bool entered = i->map->entries[block].new_off != spot->new_off;
    moved_now.hooks.flow_ends(t, f->number, block - first, entered, sign);
}

static void change_counts(run_thread *t, uint64_t place, bool before, int64_t sign)
{
    const moved_image *i = moved_at(place);
    moved_spot spot;
    change c = {t, sign};
    if (!i || !moved_states_find(states_of(i), (uint32_t)(place - i->text), &spot)) return;
    moved_states_undo(states_of(i), &spot, before, subtract, &c);
    end_flow(t, i, &spot, sign);
}

void moved_leave_run(run_thread *t, uint64_t place, bool before) { change_counts(t, place, before, 1); }
void moved_enter_run(run_thread *t, uint64_t place, bool before) { change_counts(t, place, before, -1); }
