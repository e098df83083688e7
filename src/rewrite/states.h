/* What a rewritten image tells of its moved instructions, one by one, for signals: where each came from, and
 * what of the program's state waits in the thread's frame while it runs.
 *
 *     rewrite_carried_states | groups | stream | faults
 *
 * A group is up to 64 instructions. The stream has a step for each (steps.h), whose head says in
 *
 *     bit 6      the state in front of the snippets follows; else it is the one before
 *     bit 7      the same of the instruction itself
 *
 * A state is five bytes.
 */
#ifndef INL_REWRITE_STATES_H
#define INL_REWRITE_STATES_H

#include "rewrite/rewrite.h"

typedef struct rewrite_states_group {
    uint32_t new_off, old_off; /* from the new text, from the image's lowest address */
    uint32_t at;               /* in the stream */
} rewrite_states_group;

typedef struct rewrite_carried_states {
    uint32_t group_count, fault_count;
    uint32_t stream, faults;                                           /* offsets from here */
    uint32_t last;                                                     /* instructions in the last group */
    uint32_t runs, run_count, counts, counts_size, flows, flows_count; /* see undo.c */
    rewrite_states_group groups[];
} rewrite_carried_states;

/* A load of snippets' that may fault on the program's behalf, before its instruction. */
typedef struct rewrite_carried_fault {
    uint32_t from, to, old_off;
    uint16_t spilled, junk;
    uint32_t flags_saved;
} rewrite_carried_fault;

/* A procedure whose counts follow from flows. */
typedef struct rewrite_carried_flows {
    uint32_t new_off, block_count, number;
} rewrite_carried_flows;

/* One instruction. */
typedef struct rewrite_spot {
    uint32_t index; /* in the plan's map */
    uint32_t old_off, new_off, code_off;
    weave_parked before, at; /* the states at new_off and at code_off */
} rewrite_spot;

/* The last instruction whose snippets begin at or before a new place; false: none does. And the one at an old
 * address. Any thread, any time. */
bool rewrite_states_find(const rewrite_carried_states *, uint32_t new_off, rewrite_spot *);
bool rewrite_states_find_old(const rewrite_carried_states *, uint32_t old_off, rewrite_spot *);
const rewrite_carried_fault *rewrite_states_fault(const rewrite_carried_states *, uint32_t new_off);

/* undo.c: what counters have too much when the run is left at this instruction (negative: too little), with its
 * snippets not run either (`before`). And the last procedure with flows that begins at or before a new place. */
void rewrite_states_undo(const rewrite_carried_states *, const rewrite_spot *, bool before,
                         void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg);
const rewrite_carried_flows *rewrite_states_flows(const rewrite_carried_states *, uint32_t new_off);

/* Writing: appends all that the plan knows. `low` is the image's lowest address, as assumed. */
struct rewrite_bytes;
void rewrite_states_put(const rewrite_plan *, uint64_t low, struct rewrite_bytes *to);
void rewrite_counts_put(const rewrite_plan *, rewrite_carried_states *head, size_t at, struct rewrite_bytes *to);

#endif
