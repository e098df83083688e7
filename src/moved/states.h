/* Reading what moved code carries for signals (move/carried.h). Any thread, any time. */
#ifndef INL_MOVED_STATES_H
#define INL_MOVED_STATES_H

#include "move/carried.h"
#include "weave/weave.h"

/* One instruction. */
typedef struct moved_spot {
    uint32_t index; /* in the plan's map */
    uint32_t old_off, new_off, code_off;
    weave_parked before, at; /* the states at new_off and at code_off */
} moved_spot;

/* The last instruction whose snippets begin at or before a new place; false: none does. And the one at an old
 * address. */
bool moved_states_find(const move_carried_states *, uint32_t new_off, moved_spot *);
bool moved_states_find_old(const move_carried_states *, uint32_t old_off, moved_spot *);
const move_carried_fault *moved_states_fault(const move_carried_states *, uint32_t new_off);

const move_carried_inlined *moved_states_inlined(const move_carried_states *, uint32_t new_off); /* exactly there */

/* undo.c: what counters have too much when the run is left at this instruction (negative: too little), with its
 * snippets not run either (`before`). And the last procedure with flows that begins at or before a new place. */
void moved_states_undo(const move_carried_states *, const moved_spot *, bool before,
                       void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg);
const move_carried_flows *moved_states_flows(const move_carried_states *, uint32_t new_off);

#endif
