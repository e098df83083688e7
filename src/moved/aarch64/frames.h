/* For frames.c, settle.c and gate.S, which takes the #defines. */
#ifndef INL_MOVED_AARCH64_FRAMES_H
#define INL_MOVED_AARCH64_FRAMES_H

/* Left free below a signal's frame for its way down; a multiple of 16. */
#define MOVED_FRAME_RESERVE 1152

/* What stands in the place of a system call, up to the address that the gate goes back to. */
#define MOVED_SITE_BYTES 20

#ifndef __ASSEMBLER__
#include "run/aarch64/sigframe.h"
#include "weave/aarch64/frame.h"
#include "weave/weave.h"

enum {
    MOVED_FRAME_HEAD = RUN_FRAME_RECORDS, /* what of a frame is looked at on the way back */
    MOVED_FRAME_MOVED = 0,                /* of one that moves down, besides what is kept */
    MOVED_KEPT_MORE = 0,                  /* of a thread's frame, besides its slots */
    MOVED_NUMBER_SLOT = 9,                /* of a register that the gate leaves alone */
    MOVED_BACK_SLOT = 31,                 /* where the gate goes back to */
    MOVED_FIRST_FLAGS = 0,
};

static inline void moved_keep_more(const weave_frame *f, uint8_t *more) { (void)f, (void)more; }
static inline void moved_put_back_more(weave_frame *f, const uint8_t *more) { (void)f, (void)more; }
/* The C library's disguise of an address that it saves. */
static inline uint64_t moved_shown(uint64_t word, uint64_t guard) { return word ^ guard; }
static inline uint64_t moved_hidden(uint64_t word, uint64_t guard) { return word ^ guard; }
/* Of what waits: registers whose own value is in their slots; the others are seen to by moved_park_otherwise. */
static inline isa_regs moved_parked_alone(isa_regs spilled) { return spilled; }
#endif

#endif
