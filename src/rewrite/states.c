/* Old addresses and states of moved instructions: written with the file, read in signal handlers. See
 * states.h for the format. */
#include "rewrite/states.h"
#include "rewrite/bytes.h"
#include "rewrite/steps.h"

enum {
    BEFORE = 64,
    AT = 128, /* of a step's head */
    FLAGS = 1,
    PENDING = 2, /* of a state */
};

static bool is_same(weave_parked a, weave_parked b)
{
    return a.spilled == b.spilled && a.junk == b.junk && a.flags_saved == b.flags_saved && a.pending == b.pending;
}

/* --- writing --- */

static void put_place(rewrite_bytes *b, weave_parked p)
{
    rewrite_put_number(b, p.spilled, 2);
    rewrite_put_number(b, p.junk, 2);
    rewrite_put_number(b, (p.flags_saved ? FLAGS : 0) | (p.pending ? PENDING : 0), 1);
}

/* `from`: the one before in the group, NULL for its first. */
static void put_spot(rewrite_bytes *b, const rewrite_map *m, const rewrite_map *from, weave_parked now,
                     const rewrite_state *s)
{
    static const rewrite_state clean;
    uint8_t step[REWRITE_STEP_MOST];
    if (!s) s = &clean;
    unsigned head = rewrite_step_head(m, from);
    if (!is_same(now, s->before)) head |= BEFORE;
    if (!is_same(s->before, s->at)) head |= AT;
    rewrite_put(b, step, (size_t)(rewrite_step_put(step, head, m, from) - step));
    if (head & BEFORE) put_place(b, s->before);
    if (head & AT) put_place(b, s->at);
}

static void put_stream(const rewrite_plan *p, rewrite_bytes *b, size_t groups_at, uint64_t low)
{
    size_t begin = b->size, next = 0;
    weave_parked now = {0};
    rewrite_map_walk walk = rewrite_map_from(p, 0);
    rewrite_map before = {0}, m;
    for (size_t i = 0; rewrite_map_next(&walk, &m); i++, before = m) {
        const rewrite_state *s = NULL;
        if (next < p->state_count && p->states[next].index == i) s = &p->states[next++];
        if (i % REWRITE_GROUP == 0) {
            rewrite_states_group g = {m.new_off, (uint32_t)(m.old_addr - low), (uint32_t)(b->size - begin)};
            rewrite_set(b, groups_at + i / REWRITE_GROUP * sizeof g, &g, sizeof g);
            now = (weave_parked){0};
        }
        put_spot(b, &m, i % REWRITE_GROUP ? &before : NULL, now, s);
        now = s ? s->at : (weave_parked){0};
    }
}

void rewrite_states_put(const rewrite_plan *p, uint64_t low, rewrite_bytes *b)
{
    rewrite_carried_states head = {0};
    rewrite_align(b, 8);
    size_t at = rewrite_reserve(b, sizeof head);
    head.group_count = (uint32_t)((p->map_count + REWRITE_GROUP - 1) / REWRITE_GROUP);
    head.last = p->map_count ? (uint32_t)((p->map_count - 1) % REWRITE_GROUP) + 1 : 0;
    size_t groups_at = rewrite_reserve(b, head.group_count * sizeof *head.groups);
    head.stream = (uint32_t)(b->size - at);
    if (!b->failed) put_stream(p, b, groups_at, low);
    rewrite_align(b, 8);
    head.faults = (uint32_t)(b->size - at);
    head.fault_count = (uint32_t)p->fault_count;
    for (size_t i = 0; i < p->fault_count; i++) {
        const rewrite_fault *f = &p->faults[i];
        rewrite_carried_fault to = {f->from,    f->to,   (uint32_t)(rewrite_map_at(p, f->index).old_addr - low),
                                    f->spilled, f->junk, f->flags_saved};
        rewrite_put(b, &to, sizeof to);
    }
    rewrite_counts_put(p, &head, at, b);
    rewrite_set(b, at, &head, sizeof head);
}

/* --- reading --- */

static weave_parked take_place(const uint8_t **p)
{
    const uint8_t *b = *p;
    *p += 5;
    return (weave_parked){(uint16_t)(b[0] | b[1] << 8), (uint16_t)(b[2] | b[3] << 8), b[4] & FLAGS,
                          (b[4] & PENDING) != 0};
}

/* The next instruction of a group; *s is the one before. */
static void take_spot(const uint8_t **p, rewrite_spot *s, bool first)
{
    rewrite_map m = {s->old_off, s->new_off, 0};
    unsigned head = rewrite_step_take(p, &m, first);
    s->old_off = (uint32_t)m.old_addr;
    s->new_off = m.new_off;
    s->code_off = m.code_off;
    s->before = head & BEFORE ? take_place(p) : s->at;
    s->at = head & AT ? take_place(p) : s->before;
}

/* The last group that begins at or before `off`, by new or by old addresses; -1: none. */
static int group_of(const rewrite_carried_states *s, uint32_t off, bool old)
{
    uint32_t low = 0, high = s->group_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if ((old ? s->groups[mid].old_off : s->groups[mid].new_off) <= off) low = mid + 1;
        else high = mid;
    }
    return (int)low - 1;
}

static bool find(const rewrite_carried_states *s, uint32_t off, bool old, rewrite_spot *out)
{
    int g = group_of(s, off, old);
    if (g < 0) return false;
    const uint8_t *p = (const uint8_t *)s + s->stream + s->groups[g].at;
    uint32_t n = (uint32_t)g + 1 < s->group_count ? REWRITE_GROUP : s->last;
    rewrite_spot now = {.old_off = s->groups[g].old_off, .new_off = s->groups[g].new_off};
    for (uint32_t i = 0; i < n; i++) {
        take_spot(&p, &now, i == 0);
        if ((old ? now.old_off : now.new_off) > off) break;
        *out = now;
        out->index = (uint32_t)g * REWRITE_GROUP + i;
    }
    return true;
}

bool rewrite_states_find(const rewrite_carried_states *s, uint32_t new_off, rewrite_spot *out)
{
    return s && find(s, new_off, false, out);
}

bool rewrite_states_find_old(const rewrite_carried_states *s, uint32_t old_off, rewrite_spot *out)
{
    return s && find(s, old_off, true, out) && out->old_off == old_off;
}

const rewrite_carried_fault *rewrite_states_fault(const rewrite_carried_states *s, uint32_t new_off)
{
    const rewrite_carried_fault *all = s ? (const void *)((const char *)s + s->faults) : NULL;
    uint32_t low = 0, high = s ? s->fault_count : 0;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (all[mid].from <= new_off) low = mid + 1;
        else high = mid;
    }
    return low && new_off < all[low - 1].to ? &all[low - 1] : NULL;
}
