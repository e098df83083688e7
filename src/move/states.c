/* Old addresses and states of moved instructions, for signal handlers: see carried.h for the format. */
#include "base/bytes.h"
#include "base/search.h"
#include "move/plan.h"
#include "move/steps.h"

static bool is_same(weave_parked a, weave_parked b)
{
    return a.spilled == b.spilled && a.junk == b.junk && a.flags_saved == b.flags_saved && a.pending == b.pending;
}

static void put_place(inl_bytes *b, weave_parked p)
{
    inl_bytes_number(b, p.spilled, sizeof(weave_set));
    inl_bytes_number(b, p.junk, sizeof(weave_set));
    inl_bytes_number(b, (p.flags_saved ? MOVE_STATE_FLAGS : 0) | (p.pending ? MOVE_STATE_PENDING : 0), 1);
}

/* `from`: the one before in the group, NULL for its first. */
static void put_spot(inl_bytes *b, const move_map *m, const move_map *from, weave_parked now, const move_state *s)
{
    static const move_state clean;
    uint8_t step[MOVE_STEP_MOST];
    if (!s) s = &clean;
    unsigned head = move_step_head(m, from);
    if (!is_same(now, s->before)) head |= MOVE_STATE_BEFORE;
    if (!is_same(s->before, s->at)) head |= MOVE_STATE_AT;
    inl_bytes_put(b, step, (size_t)(move_step_put(step, head, m, from) - step));
    if (head & MOVE_STATE_BEFORE) put_place(b, s->before);
    if (head & MOVE_STATE_AT) put_place(b, s->at);
}

/* What is put: entries of the map, whose offsets count from a place in the text. */
typedef struct part {
    const move_plan *plan;
    size_t first, last;
    uint32_t text;
    uint64_t low;
} part;

static void put_stream(const part *x, inl_bytes *b, size_t groups_at)
{
    const move_plan *p = x->plan;
    size_t begin = b->size, next = INL_FIRST(p->state_count, k, p->states[k].index >= x->first);
    weave_parked now = {0};
    move_map_walk walk = move_map_from(p, x->first);
    move_map before = {0}, m;
    for (size_t i = 0; x->first + i < x->last && move_map_next(&walk, &m); i++, before = m) {
        const move_state *s = NULL;
        m.new_off -= x->text;
        m.code_off -= x->text;
        if (next < p->state_count && p->states[next].index == x->first + i) s = &p->states[next++];
        if (i % MOVE_GROUP == 0) {
            move_states_group g = {m.new_off, (uint32_t)(m.old_addr - x->low), (uint32_t)(b->size - begin)};
            inl_bytes_set(b, groups_at + i / MOVE_GROUP * sizeof g, &g, sizeof g);
            now = (weave_parked){0};
        }
        put_spot(b, &m, i % MOVE_GROUP ? &before : NULL, now, s);
        now = s ? s->at : (weave_parked){0};
    }
}

static uint32_t put_faults(const part *x, inl_bytes *b)
{
    uint32_t count = 0;
    for (size_t i = 0; i < x->plan->fault_count; i++) {
        const move_fault *f = &x->plan->faults[i];
        if (f->index < x->first || f->index >= x->last) continue;
        move_carried_fault to = {
            f->from - x->text,     f->to - x->text,    (uint32_t)(move_map_at(x->plan, f->index).old_addr - x->low),
            (weave_set)f->spilled, (weave_set)f->junk, f->flags_saved};
        inl_bytes_put(b, &to, sizeof to);
        count++;
    }
    return count;
}

static uint32_t put_inlined(const part *x, inl_bytes *b)
{
    uint32_t count = 0;
    for (size_t i = 0; i < x->plan->inlined_count; i++) {
        const move_inlined *n = &x->plan->inlined[i];
        if (n->index < x->first || n->index >= x->last) continue;
        uint64_t old = move_map_at(x->plan, n->index).old_addr - x->low;
        move_carried_inlined to = {n->at - x->text, (uint32_t)old, n->routine};
        inl_bytes_put(b, &to, sizeof to);
        count++;
    }
    return count;
}

/* The head, and all but counts; where it stands. */
static size_t put_part(const part *x, move_carried_states *head, inl_bytes *b)
{
    size_t count = x->last - x->first;
    inl_bytes_align(b, 8);
    size_t at = inl_bytes_reserve(b, sizeof *head);
    head->group_count = (uint32_t)((count + MOVE_GROUP - 1) / MOVE_GROUP);
    head->last = count ? (uint32_t)((count - 1) % MOVE_GROUP) + 1 : 0;
    size_t groups_at = inl_bytes_reserve(b, head->group_count * sizeof *head->groups);
    head->stream = (uint32_t)(b->size - at);
    if (!b->failed) put_stream(x, b, groups_at);
    inl_bytes_align(b, 8);
    head->faults = (uint32_t)(b->size - at);
    head->fault_count = put_faults(x, b);
    inl_bytes_align(b, 8);
    head->inlined = (uint32_t)(b->size - at);
    head->inlined_count = put_inlined(x, b);
    return at;
}

void move_states_put(const move_plan *p, assumed_addr low, inl_bytes *b)
{
    part all = {p, 0, p->map_count, 0, low.at};
    move_carried_states head = {0};
    size_t at = put_part(&all, &head, b);
    move_counts_put(p, &head, at, b);
    inl_bytes_set(b, at, &head, sizeof head);
}

void move_delta_put(const move_plan *p, const move_delta *d, assumed_addr low, inl_bytes *b)
{
    part mine = {p, d->first, d->last, (uint32_t)(d->at.at - p->text_addr), low.at};
    move_carried_states head = {0};
    size_t at = put_part(&mine, &head, b);
    move_counts_put_part(p, d, &head, at, b);
    inl_bytes_set(b, at, &head, sizeof head);
}
