#include "moved/states.h"
#include "base/search.h"
#include "move/steps.h"

static isa_regs take_set(const uint8_t **p)
{
    isa_regs set = 0;
    for (unsigned i = 0; i < sizeof(weave_set); i++) set |= (isa_regs) * (*p)++ << 8 * i;
    return set;
}

static weave_parked take_place(const uint8_t **p)
{
    isa_regs spilled = take_set(p), junk = take_set(p);
    uint8_t bits = *(*p)++;
    return (weave_parked){spilled, junk, bits & MOVE_STATE_FLAGS, (bits & MOVE_STATE_PENDING) != 0};
}

/* The next instruction of a group; *s is the one before. */
static void take_spot(const uint8_t **p, moved_spot *s, bool first)
{
    move_map m = {s->old_off, s->new_off, 0};
    unsigned head = move_step_take(p, &m, first);
    s->old_off = (uint32_t)m.old_addr;
    s->new_off = m.new_off;
    s->code_off = m.code_off;
    s->before = head & MOVE_STATE_BEFORE ? take_place(p) : s->at;
    s->at = head & MOVE_STATE_AT ? take_place(p) : s->before;
}

/* The last group that begins at or before `off`, by new or by old addresses; -1: none. */
static int group_of(const move_carried_states *s, uint32_t off, bool old)
{
    uint32_t behind = (uint32_t)INL_FIRST(s->group_count, k, (old ? s->groups[k].old_off : s->groups[k].new_off) > off);
    return (int)behind - 1;
}

static bool find(const move_carried_states *s, uint32_t off, bool old, moved_spot *out)
{
    int g = group_of(s, off, old);
    if (g < 0) return false;
    const uint8_t *p = (const uint8_t *)s + s->stream + s->groups[g].at;
    uint32_t n = (uint32_t)g + 1 < s->group_count ? MOVE_GROUP : s->last;
    moved_spot now = {.old_off = s->groups[g].old_off, .new_off = s->groups[g].new_off};
    for (uint32_t i = 0; i < n; i++) {
        take_spot(&p, &now, i == 0);
        if ((old ? now.old_off : now.new_off) > off) break;
        *out = now;
        out->index = (uint32_t)g * MOVE_GROUP + i;
    }
    return true;
}

bool moved_states_find(const move_carried_states *s, uint32_t new_off, moved_spot *out)
{
    return s && find(s, new_off, false, out);
}

bool moved_states_find_old(const move_carried_states *s, uint32_t old_off, moved_spot *out)
{
    return s && find(s, old_off, true, out) && out->old_off == old_off;
}

const move_carried_fault *moved_states_fault(const move_carried_states *s, uint32_t new_off)
{
    const move_carried_fault *all = s ? (const void *)((const char *)s + s->faults) : NULL;
    uint32_t behind = (uint32_t)INL_FIRST(s ? s->fault_count : 0, k, all[k].from > new_off);
    return behind && new_off < all[behind - 1].to ? &all[behind - 1] : NULL;
}

const move_carried_inlined *moved_states_inlined(const move_carried_states *s, uint32_t new_off)
{
    const move_carried_inlined *all = s ? (const void *)((const char *)s + s->inlined) : NULL;
    size_t count = s ? s->inlined_count : 0, i = INL_FIRST(count, k, all[k].new_off >= new_off);
    return i < count && all[i].new_off == new_off ? &all[i] : NULL;
}
