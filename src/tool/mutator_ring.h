/* Events on their way from a process to its mutator: a ring in memory that both have, written by any thread at any
 * time, signal handlers included, without a lock; read by the mutator alone.
 *
 *     ring | tail ... records ... head |      positions only grow; a record lies in one piece
 *
 * A writer takes its room by one exchange of `head`, fills it in, and marks it ready, in this order. What has been read
 * is zeroed before its room is given back: what is not ready reads as zero. A record that finds no room is counted. */
#ifndef INL_TOOL_MUTATOR_RING_H
#define INL_TOOL_MUTATOR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_BYTES = 4 << 20, RING_WAITERS = 256, RING_FILLER = 0xffff };

/* A kind of its own, behind the events': a thread waits at `place` to be followed into the program of that name. */
#define RING_FOLLOW INLAY_EVENT_KINDS

typedef struct ring_record {
    uint32_t size;  /* of all of it; a multiple of 8 */
    uint32_t ready; /* 1: it is whole */
    uint16_t kind, place;
    int32_t tid;
    uint64_t number;
    uint32_t bytes; /* of what follows */
    int32_t pid;    /* the process that tells it: a child of fork may have the ring as well */
} ring_record;

typedef struct mutator_ring {
    uint64_t head, tail, lost;
    uint64_t shared; /* bytes behind it, from the next page on, that are in use */
    uint32_t told;   /* the mutator has been woken, and has not seen all yet */
    uint32_t kinds;  /* that are wanted */
    uint32_t ended;  /* 1: `status` is the process's own last word */
    uint32_t status;
    uint32_t stops;               /* 1: the process is being stopped: its children of vfork do not wait */
    uint32_t children;            /* 1: what is shared is so with children of fork as well, and they tell */
    uint32_t waits[RING_WAITERS]; /* the thread that waits at a place; 0: none; no more: RING_WOKEN */
    char bytes[RING_BYTES] __attribute__((aligned(64)));
} mutator_ring;
#define RING_WOKEN   0x80000000u
#define RING_CLAIMED 0x40000000u /* with the thread: it is being followed */

/* False: no room. */
bool ring_put(mutator_ring *, const ring_record *, const void *data);
/* The first record, or NULL; what follows it is its data. It stays until ring_drop. */
const ring_record *ring_first(mutator_ring *);
void ring_drop(mutator_ring *);

#endif
