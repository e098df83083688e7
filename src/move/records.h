/* Records of counts, for signals' handlers that leave a run of instructions in its middle for good, or enter one.
 *
 * Constant counts of a run are merged and added in one place (weave/count.c): what was added in advance is
 * taken off again, what was still to be added is added. For this each image carries the weaver's records:
 *
 *     groups of up to 32 runs: where they begin | runs, ascending by their first instruction
 *     a run:     how far its first instruction is from the last run's, instructions, records: how many; records
 *     a record:  a byte of flags, then what they do not say: counter (from that of the last one of its sort), first,
 *                last, position, from, to (from the first or the last instruction), total; weights of first..last, or
 *                what each counts and how much more the first does
 *
 * all LEB128, of zigzag where they may be negative. And counts that are placed elsewhere (count.c) follow from flows:
 * there the flow ends, or begins, in a block. Which flows are whose is carried as well, and records of what of a
 * block's counts belongs to which of its instructions (DERIVED): the flow speaks for all of them as soon as the
 * first is behind. */
#ifndef INL_MOVE_RECORDS_H
#define INL_MOVE_RECORDS_H

#include "move/carried.h"

#include <stdbool.h>
#include <stddef.h>

enum { /* flags of a record */
       MOVE_COUNT_WEIGHTS = 1,
       MOVE_COUNT_DERIVED = 2,
       MOVE_COUNT_ONES = 4, /* each instruction counts one */
       MOVE_COUNT_SAME_COUNTER = 8,
       MOVE_COUNT_ALONE = 16, /* first is last */
       MOVE_COUNT_WHOLE = 32, /* from the first to the last; so it is where it is derived */
       MOVE_COUNT_SUM = 64,   /* the total is that of the weights; likewise */
};
enum { MOVE_COUNT_RUNS = 32 }; /* in a group */

typedef struct move_run_counts { /* a group */
    uint32_t first, at;          /* in the map; in the records */
} move_run_counts;

/* What the records tell by how far it is from the last. */
typedef struct move_counts_last {
    uint32_t first, runs; /* instruction of the last run; runs in its group */
    uint32_t counter[2];  /* of the last record; of the last derived one */
} move_counts_last;

typedef struct move_record {
    const uint8_t *weights; /* or what each counts */
    int64_t total, each, extra;
    uint32_t counter, first, last, position, from, to;
    unsigned flags;
} move_record;

/* The begin of the next run, and a record of it. */
void move_take_run(const uint8_t **p, move_counts_last *last, uint32_t *insns, uint32_t *records);
void move_take_record(const uint8_t **p, move_counts_last *last, move_record *r);
/* What the first `count` instructions from r->first on add to the record's counter. */
int64_t move_record_sum(const move_record *r, uint32_t count);
/* The last group whose runs begin at or before an instruction, plus 1. */
uint32_t move_run_group(const move_run_counts *groups, uint32_t count, uint32_t index);

#endif
