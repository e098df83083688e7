/* The thread frame on AArch64, in every engine: found through the second word of the thread control block,
 *
 *     mrs x16, tpidr_el0 ; ldr x16, [x16, #8]
 *
 * since no register is free for it. The ABI gives that word to whoever implements threads; glibc (`private`) and musl
 * (the gap above the thread pointer) do not use it. The run time gives the program a block of its own to begin with;
 * where the program sets the thread pointer, woven code carries the word along (copy.c). While an analysis routine runs
 * with the tool's thread pointer, that one's second word is the frame too.
 *
 * What is below the stack pointer belongs to nobody (there is no red zone): where every register has a value of the
 * program's, one is pushed for the few instructions that it takes to store another to its slot.
 *
 *   frame + 16..     spill slots, one for each general register and the stack pointer
 *   ...              flags, temporaries, stacks, context
 *   frame + 0x1000   the engine's own
 *   frame + WEAVE_COUNTERS   the thread's counters, 8 bytes each; in front of them their banks (weave/banks.h)
 */
#ifndef INL_WEAVE_AARCH64_FRAME_H
#define INL_WEAVE_AARCH64_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "weave/banks.h"
#include "weave/buffer.h"

enum {
    WEAVE_TEMPS = 24, /* temporaries of expression evaluation and argument slots */
    WEAVE_BUFFERS = 16,
    WEAVE_FRAME_SIZE = 0x1000,
    WEAVE_IBL = 0x4000, /* the engine's indirect-branch table: 65536 pointers */
    WEAVE_COUNTERS = 0x84000 + WEAVE_BANKS_SIZE,
    WEAVE_MAX_COUNTERS = 1 << 22,
    WEAVE_BLOCK_SIZE = WEAVE_COUNTERS + WEAVE_MAX_COUNTERS * 8, /* room; mapped as far as needed */
    WEAVE_STOP = 0x1a1,
    WEAVE_FRAME_WORD = 8, /* where the frame's address is, from tpidr_el0 on */
};

/* Registers of the program, as analysis routines and engines see them. */
typedef struct weave_context {
    uint64_t gpr[32]; /* x0 to x30, sp */
    uint64_t pc, flags, tls_base;
    void *vectors; /* q0 to q31, fpsr and fpcr (4 bytes each), or NULL where they were not saved */
} weave_context;

typedef struct weave_frame {
    struct weave_frame *self;   /* 0x000 */
    uint64_t thread_number;     /* 0x008: Inlay's small number */
    uint64_t slot[32];          /* 0x010: spill slots; the last is the stack pointer's */
    uint64_t flags;             /* 0x110: saved flags, as in NZCV */
    uint64_t call_flags;        /* 0x118: likewise, during a call that keeps them whatever the routine does */
    uint64_t temp[WEAVE_TEMPS]; /* 0x120 */
    uint64_t app_tls_base;      /* 0x1e0: while the tool's thread pointer is in */
    uint64_t tool_tls_base;     /* 0x1e8 */
    uint64_t app_sp;            /* 0x1f0: the program's stack pointer during an analysis call */
    uint64_t tool_stack;        /* 0x1f8: top of the private stack for analysis calls, 16-byte aligned */
    uint64_t in_tool;           /* 0x200: nonzero while an analysis routine runs: 1 and the words of its arguments
                                   on the stack */
    void *vector_area;          /* 0x208: 16-byte aligned, WEAVE_VECTOR_ROOM */
    void (*save_vectors)(void); /* 0x210: the whole vector state to the area and back, on this very processor */
    void (*load_vectors)(void); /* 0x218 (vectors.S) */
    uint64_t vec_args[8];       /* 0x220: floating-point arguments on their way */
    weave_context context;      /* 0x260: what SNIPPET_CONTEXT points to */
    weave_buffer_slot buffers[WEAVE_BUFFERS];
    void *heap_cache;      /* the tool's allocator's, of this thread; NULL: none yet */
    uint64_t first_tls[2]; /* what tpidr_el0 points to until the program sets it; the second word is the frame */
    uint64_t stops; /* nonzero: the thread is to stop behind the analysis routine that it runs, by brk WEAVE_STOP */
    void *locals;   /* the tool's data of this thread (tool/locals.c) */
    uint64_t own_cycles; /* spent in the dispatcher and below, the program's system calls excepted */
} weave_frame;

_Static_assert(offsetof(weave_frame, slot) == 0x10, "frame layout");
_Static_assert(offsetof(weave_frame, temp) == 0x120, "frame layout");
_Static_assert(offsetof(weave_frame, vector_area) == 0x208, "frame layout");
_Static_assert(offsetof(weave_frame, context) == 0x260, "frame layout");
_Static_assert(sizeof(weave_frame) <= WEAVE_FRAME_SIZE, "frame layout");

/* A set of general registers where many are kept: in what goes with code that was made. */
typedef uint32_t weave_set;

#define WEAVE_OFF(field) ((int32_t)offsetof(weave_frame, field))
#define WEAVE_SLOT(reg)  ((int32_t)(offsetof(weave_frame, slot) + 8 * (reg)))

#endif
