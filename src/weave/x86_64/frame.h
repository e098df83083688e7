/* The thread frame: what woven code reaches through GS, in every engine.
 *
 * GS base belongs to Inlay while instrumented code runs (Linux leaves it free on x86-64; a program
 * that uses it itself sees the copy in `app_gs_base`). Offsets are small constants in the code, so
 * the layout below is an ABI between weaver, engine and assembly: offsets are checked statically.
 *
 *   gs:0      self
 *   gs:16..   spill slots, one for each general register: register r always waits in slot[r]
 *   ...       flags, temporaries, argument slots, bases, stacks
 *   gs:0x1000 the engine's own (struct run_thread follows the frame)
 *   gs:WEAVE_COUNTERS  the thread's counters, 8 bytes each; in front of them their banks (weave/banks.h)
 */
#ifndef INL_WEAVE_X86_64_FRAME_H
#define INL_WEAVE_X86_64_FRAME_H

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
};

/* Registers of the program, as analysis routines and engines see them. Public as inlay_context. */
typedef struct weave_context {
    uint64_t gpr[16]; /* by hardware number */
    uint64_t pc, flags, tls_base, gs_base;
    void *vectors; /* vector state in XSAVE format, or NULL where it was not saved */
} weave_context;

typedef struct weave_frame {
    struct weave_frame *self;   /* 0x000 */
    uint64_t thread_number;     /* 0x008: Inlay's small number */
    uint64_t slot[16];          /* 0x010: spill slots */
    uint64_t flags;             /* 0x090: saved flags: lahf/seto form in ax (AH flags, AL bit 0 = OF) */
    uint64_t flags_rax;         /* 0x098: RAX while flags are saved or restored through it */
    uint64_t temp[WEAVE_TEMPS]; /* 0x0a0 */
    uint64_t app_tls_base;      /* 0x160: while the tool's FS base is in */
    uint64_t tool_tls_base;     /* 0x168 */
    uint64_t app_gs_base;       /* 0x170: what the program believes */
    uint64_t app_rsp;           /* 0x178: program's RSP during an analysis call */
    uint64_t tool_stack;        /* 0x180: top of the private stack for analysis calls, 64-byte aligned */
    uint64_t in_tool;           /* 0x188: nonzero while an analysis routine runs: its return
                                   address is so many words below tool_stack */
    void *vector_area;          /* 0x190: 64-byte aligned, large enough for all enabled features */
    uint64_t xsave_mask;        /* 0x198: the features that the process may use */
    weave_context context;      /* 0x1a0: what SNIPPET_CONTEXT points to */
    weave_buffer_slot buffers[WEAVE_BUFFERS];
    _Alignas(64) uint8_t vec_save[16][16]; /* single vector registers saved around calls: low 16 bytes */
    uint8_t element_mask[64];              /* of the masked operand that snippets ask about: the mask and */
    uint8_t element_index[64];             /* the index vector, as they were before the instruction */
    void *heap_cache;                      /* the tool's allocator's, of this thread; NULL: none yet */
    /* Ways to save and load the whole vector state on this very processor (vectors.S), called by woven code. */
    void (*save_vectors)(void), (*load_vectors)(void);
    uint64_t no_xsave;   /* nonzero: it is FXSAVE's */
    void *locals;        /* the tool's data of this thread (tool/locals.c) */
    uint64_t own_cycles; /* spent in the dispatcher and below, the program's system calls excepted */
    void (*take_tool_base)(void), (*take_app_base)(void); /* of FS, likewise (bases.S) */
    uint64_t tool_base_in;                                /* 0x5c0: kept where it is taken late only */
    uint64_t ahead[2]; /* by how much RSI and RDI are ahead of the program's: WEAVE_AHEAD */
} weave_frame;

_Static_assert(offsetof(weave_frame, slot) == 0x10, "frame layout");
_Static_assert(offsetof(weave_frame, flags) == 0x90, "frame layout");
_Static_assert(offsetof(weave_frame, temp) == 0xa0, "frame layout");
_Static_assert(offsetof(weave_frame, app_tls_base) == 0x160, "frame layout");
_Static_assert(offsetof(weave_frame, context) == 0x1a0, "frame layout");
_Static_assert(sizeof(weave_frame) <= WEAVE_FRAME_SIZE, "frame layout");

/* A set of general registers where many are kept: in what goes with code that was made. */
typedef uint16_t weave_set;

/* In masks of registers that wait in their slots, where RSP never is: RSI and RDI hold the program's values plus what
 * `ahead` says (in string instructions whose operands lie elsewhere than these say: GS-relative, or set by a snippet).
 */
#define WEAVE_AHEAD (1u << 4)

#define WEAVE_OFF(field) ((int32_t)offsetof(weave_frame, field))
#define WEAVE_SLOT(reg)  ((int32_t)(offsetof(weave_frame, slot) + 8 * (reg)))

#endif
