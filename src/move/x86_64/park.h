/* A held thread's place in the parking area (move/live.h), and where its code has its entries (live/x86_64/park.S). */
#ifndef INL_MOVE_X86_64_PARK_H
#define INL_MOVE_X86_64_PARK_H

#define MOVE_PARK_BASE      0x550000000000
/* Entries: from whatever the first thread was sent to; what a call returns to; a system call, and behind it. */
#define MOVE_PARK_FROM_TOOL MOVE_PARK_BASE
#define MOVE_PARK_BACK      (MOVE_PARK_BASE + 32)
#define MOVE_PARK_CALL      (MOVE_PARK_BASE + 44)
#define MOVE_PARK_AFTER     (MOVE_PARK_BASE + 46)
/* What a call returns to that has 2, 4 ... words of arguments on the stack, in front of the slot: so many pops. */
#define MOVE_PARK_POPS      (MOVE_PARK_BASE + MOVE_PARK_POPS_AT)
#define MOVE_PARK_POPS_AT   0x280
#define MOVE_PARK_POPS_SIZE 16
#define MOVE_PARK_POPS_MOST 7

/* Of move_park, and of a slot. */
#define MOVE_PARK_DATA       (MOVE_PARK_BASE + 0x1000)
#define MOVE_PARK_WORKS      8
#define MOVE_PARK_GONE_COUNT 16
#define MOVE_PARK_FIRST      24
#define MOVE_PARK_CLOSES     32
#define MOVE_PARK_CHILD      40
#define MOVE_PARK_VANISHES   48
#define MOVE_PARK_ACTION     56
#define MOVE_PARK_GONE       88
#define MOVE_SLOT_IS_FIRST   0
#define MOVE_SLOT_TLS        8
#define MOVE_SLOT_GS         16
#define MOVE_SLOT_CALLS      24
#define MOVE_SLOT_CONTEXT    48
#define MOVE_SLOT_VECTORS    512

#ifndef __ASSEMBLER__
/* Where registers are in a vector state: MMX and SSE, and behind the two headers all others. */
enum { MOVE_VECTORS_LOW = 32, MOVE_VECTORS_LOW_END = 416, MOVE_VECTORS_HIGH = 576 };

#include "run/x86_64/sigframe.h"

typedef struct move_park_slot {
    uint64_t is_first;          /* the thread that works for whoever holds the process */
    uint64_t tls_base, gs_base; /* rt_sigreturn does not know these */
    uint64_t calls;             /* it is in a procedure that was called for the holder, and comes back here */
    uint64_t restarts;          /* the number of a call that the kernel alone can go on with */
    run_frame frame;            /* at MOVE_SLOT_VECTORS the vector state that it leads to */
} move_park_slot;
_Static_assert(offsetof(move_park_slot, frame) + RUN_FRAME_CONTEXT == MOVE_SLOT_CONTEXT &&
                   sizeof(move_park_slot) <= MOVE_SLOT_VECTORS && offsetof(move_park_slot, gs_base) == MOVE_SLOT_GS &&
                   offsetof(move_park_slot, calls) == MOVE_SLOT_CALLS,
               "known to assembly");
#endif

#endif
