/* What goes with moved code to where it runs, for whoever is beside it there (src/moved): written by this part, read by
 * that one.
 *
 *     move_carried_map: blocks | behind calls | move_carried_states: groups | stream | faults | inlined | counts |
 * flows
 *
 * The states tell of the moved instructions, one by one, for signals: where each came from, and what of the program's
 * state waits in the thread's frame while it runs. A group is up to 64 instructions. The stream has a step for each
 * (steps.h), whose head says in
 *
 *     bit 6      the state in front of the snippets follows; else it is the one before
 *     bit 7      the same of the instruction itself
 *
 * A state is what is spilled and what is junk, a weave_set each, and a byte of bits.
 */
#ifndef INL_MOVE_CARRIED_H
#define INL_MOVE_CARRIED_H

#include "base/arch.h"

#include <stdint.h>

#include INL_ARCH_HEADER(weave, frame)

/* Blocks' new and old link-time addresses, ascending by new, for translation at run time. In a file it is a section
 * ".inlay.map"; libraries are found by an ELF note of owner "Inlay" (type 1: move_boot_links). */
typedef struct move_carried_map {
    uint64_t count;
    uint64_t states; /* offset from here of a move_carried_states, 0: there is none */
    uint64_t behind_count;
    struct {
        uint32_t new_off, old_off;
    } entries[]; /* from text, from the image's lowest address; those of blocks, then the others */
} move_carried_map;

/* The others are of calls whose return addresses may be of no block: behind those that seem not to return there is
 * none, and an aligned one has padding in front. new_off is of the call itself, old_off what is behind it. Ascending.
 */

enum { MOVE_GROUP = 64 };
enum { /* of a step's head; of a state */
       MOVE_STATE_BEFORE = 64,
       MOVE_STATE_AT = 128,
       MOVE_STATE_FLAGS = 1,
       MOVE_STATE_PENDING = 2,
};
typedef struct move_states_group {
    uint32_t new_off, old_off; /* from the new text, from the image's lowest address */
    uint32_t at;               /* in the stream */
} move_states_group;

typedef struct move_carried_states {
    uint32_t group_count, fault_count;
    uint32_t stream, faults;                                           /* offsets from here */
    uint32_t last;                                                     /* instructions in the last group */
    uint32_t runs, run_count, counts, counts_size, flows, flows_count; /* see records.h */
    uint32_t inlined, inlined_count;
    move_states_group groups[];
} move_carried_states;

/* A load of snippets' that may fault on the program's behalf, before its instruction. */
typedef struct move_carried_fault {
    uint32_t from, to, old_off;
    weave_set spilled, junk;
    uint32_t flags_saved;
} move_carried_fault;

/* An instruction of a routine of the tool's that was written in place of a call, where it may fault. Ascending. */
typedef struct move_carried_inlined {
    uint32_t new_off, old_off;
    uint64_t routine;
} move_carried_inlined;

/* A procedure whose counts follow from flows. */
typedef struct move_carried_flows {
    uint32_t new_off, block_count, number;
} move_carried_flows;

#endif
