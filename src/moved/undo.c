/* Counts, where a signal's handler leaves a run of instructions in its middle for good, or enters one: see
 * move/records.h. */
#include "move/records.h"
#include "base/search.h"
#include "moved/states.h"

/* What its counter has too much at instruction i of the run; see weave_undo. */
static int64_t surplus_of(const move_record *r, uint32_t i, bool before)
{
    if (i < r->from || i > r->to || (r->flags & MOVE_COUNT_DERIVED && i == r->first)) return 0;
    int64_t executed = move_record_sum(r, i > r->first ? i - r->first : 0);
    return (before ? i > r->position : i >= r->position) ? r->total - executed : -executed;
}

void moved_states_undo(const move_carried_states *s, const moved_spot *spot, bool before,
                       void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg)
{
    const move_run_counts *groups = (const void *)((const char *)s + s->runs);
    const uint8_t *counts = (const uint8_t *)s + s->counts;
    uint32_t group = move_run_group(groups, s->run_count, spot->index);
    if (!group) return;
    const uint8_t *p = counts + groups[group - 1].at;
    const uint8_t *end = counts + (group < s->run_count ? groups[group].at : s->counts_size);
    move_counts_last last = {.first = groups[group - 1].first};
    while (p < end) {
        uint32_t insns, records;
        move_record r;
        move_take_run(&p, &last, &insns, &records);
        if (last.first > spot->index) return;
        bool here = spot->index - last.first < insns;
        while (records--) {
            move_take_record(&p, &last, &r);
            int64_t surplus = here ? surplus_of(&r, spot->index - last.first, before) : 0;
            if (surplus) subtract(arg, r.counter, surplus);
        }
    }
}

const move_carried_flows *moved_states_flows(const move_carried_states *s, uint32_t new_off)
{
    const move_carried_flows *all = (const void *)((const char *)s + s->flows);
    uint32_t behind = (uint32_t)INL_FIRST(s->flows_count, k, all[k].new_off > new_off);
    return behind ? &all[behind - 1] : NULL;
}
