/* What an analysis routine does to memory, found in its code; and which of it need not be done at once.
 *
 * Many routines do nothing but add to variables, or begin with it. Where the variable's address and the
 * amount follow from constant arguments, and nobody looks at the variable meanwhile, the addition can be
 * left out of the inlined body (SNIPPET_CALL's mask) and be made up for later, times the number of calls.
 * Whether somebody looks is the caller's to decide, from what all routines access.
 */
#ifndef INL_WEAVE_ROUTINE_H
#define INL_WEAVE_ROUTINE_H

#include "snippet/snippet.h"

typedef enum weave_place {
    WEAVE_AT,        /* `at` is the address */
    WEAVE_IN,        /* computed from `at`, an address that the code names: in the object that is there */
    WEAVE_THROUGH,   /* computed from what the pointer variable at `at` holds */
    WEAVE_SOMEWHERE, /* not known */
} weave_place;

typedef struct weave_access {
    uint8_t place; /* weave_place */
    bool writes;
    bool adds;     /* nothing but an addition: such accesses can be done in any order */
    uint32_t size; /* bytes */
    uint64_t at;
} weave_access;

/* An addition that each call makes exactly once. `address` and `amount` consist of SNIPPET_CONST, SNIPPET_ARG
 * (the routine's own), SNIPPET_BINARY and SNIPPET_LOAD of a constant address (8 bytes). */
typedef struct weave_sum {
    uint8_t insn, size;
    const snippet *address, *amount;
} weave_sum;

typedef struct weave_memory {
    bool open; /* it does more than could be followed */
    weave_access *accesses;
    uint32_t access_count;
    weave_sum *sums; /* of a routine whose calls at points are inlined for certain; else none */
    uint32_t sum_count;
} weave_memory;

/* Kept for the life of the process; NULL when memory is used up. Under the engine's lock. */
const weave_memory *weave_memory_of(void (*fn)(void));

/* The instructions of the body that a call does without when the sums in `chosen` (bit k: sums[k]) are left out
 * and its result is not wanted: these, and what is computed for them alone. *all: nothing is left. */
uint64_t weave_sums_mask(void (*fn)(void), uint64_t chosen, bool *all);

/* Can code that is run at a point, or what it calls, look at counters? A small leaf cannot. */
bool weave_sees_counters(const snippet *);

#endif
