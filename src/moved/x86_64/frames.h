/* For frames.c and gate.S, which takes the #defines. */
#ifndef INL_MOVED_X86_64_FRAMES_H
#define INL_MOVED_X86_64_FRAMES_H

/* Left free below a signal's frame for its way down; 8 more than a multiple of 16. */
#define MOVED_FRAME_RESERVE 1240

#ifndef __ASSEMBLER__
#include "run/x86_64/sigframe.h"
#include "weave/weave.h"
#include "weave/x86_64/frame.h"

#include <string.h>

enum {
    MOVED_FRAME_HEAD = RUN_FRAME_INFO,       /* what of a frame is looked at on the way back */
    MOVED_FRAME_MOVED = RUN_FRAME_SIZE + 64, /* of one that moves down, besides what is kept */
    MOVED_KEPT_ELEMENTS = 128,               /* of a thread's frame, besides its slots, */
    MOVED_KEPT_MORE = 128 + 16,              /* and how far string instructions are ahead */
    MOVED_NUMBER_SLOT = 11,                  /* of a register that a system call destroys */
    MOVED_FIRST_FLAGS = 0x202,
};

/* gate.S: what an analysis routine has returned to; what handlers return to. */
void moved_after_routine(void);
void moved_restorer(void);

static inline void moved_keep_more(const weave_frame *f, uint8_t *more)
{
    memcpy(more, f->element_mask, MOVED_KEPT_ELEMENTS);
    memcpy(more + MOVED_KEPT_ELEMENTS, f->ahead, sizeof f->ahead);
}
static inline void moved_put_back_more(weave_frame *f, const uint8_t *more)
{
    memcpy(f->element_mask, more, MOVED_KEPT_ELEMENTS);
    memcpy(f->ahead, more + MOVED_KEPT_ELEMENTS, sizeof f->ahead);
}
/* The C library's disguise of an address that it saves. */
static inline uint64_t moved_shown(uint64_t word, uint64_t guard) { return (word >> 17 | word << 47) ^ guard; }
static inline uint64_t moved_hidden(uint64_t word, uint64_t guard)
{
    word ^= guard;
    return word << 17 | word >> 47;
}
/* Of what waits: registers whose own value is in their slots; the others are seen to by moved_park_otherwise. */
static inline isa_regs moved_parked_alone(isa_regs spilled) { return spilled & ~WEAVE_AHEAD; }
/* The size of a vector state as it lies in a signal's frame. */
size_t moved_vector_bytes(const uint8_t *state);
#endif

#endif
