/* The procedures that a thread is in, found from entries and exits with their stack pointers: exceptions and longjmp
 * close what they leave, signals on a stack of their own and coroutines have stacks beside the thread's.
 *
 *     inlay_frames *f = inlay_frames_new(closed, arg);          or _init, in memory that is there
 *     inlay_frames_enter(f, proc, sp, now);
 *     inlay_frames_leave(f, proc, is_stub, sp, now);
 *     inlay_frames_end(f, now);
 *
 * Whoever calls has a higher stack pointer than whoever is called, so an entry closes all frames that are not above it;
 * it is the same at an exit as at the entry that belongs to it. (An import stub that asks for its target first leaves
 * with up to two words more.) A stack pointer far from those of the frames is another stack's: frames on it begin on
 * top of what runs, and go on where they were when it comes back, without the time between. Stacks of coroutines may
 * lie close to each other, so one that waits is taken for the one that goes on only where it is very near. Where the
 * frame that a stack runs on top of is left without an exit (longjmp out of a handler), all frames on it are gone, too.
 */
#ifndef INLAY_FRAMES_H
#define INLAY_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_frame {
    uint64_t sp, start; /* at the entry; `start` is later by the time that it was not on */
    uint64_t inner;     /* time in frames that it has called */
    uint64_t user;      /* whoever asks may keep something here */
    uint32_t proc;
    uint32_t below; /* the frame below on its stack, by index; 0: it is the lowest */
} inlay_frame;

enum { INLAY_FRAME_STACKS = 32, INLAY_FRAME_NEAR = 1 << 20, INLAY_FRAME_NEXT = 1 << 14, INLAY_FRAME_STUB = 16 };

typedef struct inlay_frame_stack {
    uint32_t top;   /* 0: no frames, the place is free */
    uint32_t under; /* the stack, from 1, that it runs on top of; 0: none, or it does not run */
    uint32_t on;    /* the frame that it ran on top of last, by index; 0: none */
    uint64_t high;  /* the highest stack pointer seen on it */
    uint64_t since; /* it runs, or waits, since then */
    bool runs;
} inlay_frame_stack;

typedef struct inlay_frames {
    /* A frame is gone; it is read only, and still the top of its stack. */
    void (*closed)(struct inlay_frames *, const inlay_frame *, uint64_t now, void *arg);
    void *arg;
    uint64_t unmatched;         /* exits without an entry */
    uint64_t left;              /* frames closed without an exit of their own */
    uint64_t full;              /* entries that found no room */
    uint32_t used, room, spare; /* frames: ever used, there are, the first free one; index 0 is nobody's */
    uint32_t now, seen;         /* the stack that runs, from 1; places of stacks that have been used */
    inlay_frame_stack stacks[INLAY_FRAME_STACKS];
    inlay_frame *frames;
} inlay_frames;

/* In zeroed memory; `frames` is the caller's, and frames[0] is not used. */
void inlay_frames_init(inlay_frames *, inlay_frame *frames, uint32_t room,
                       void (*closed)(inlay_frames *, const inlay_frame *, uint64_t now, void *arg), void *arg);
/* NULL: there is no room, and nothing is noted. */
inlay_frame *inlay_frames_enter(inlay_frames *, uint32_t proc, uint64_t sp, uint64_t now);
void inlay_frames_leave(inlay_frames *, uint32_t proc, bool is_stub, uint64_t sp, uint64_t now);
/* The thread is over: all are closed, those that wait as of when they began to. */
void inlay_frames_end(inlay_frames *, uint64_t now);
/* The frame that runs, and the one below a frame, on the stack below where it is the lowest that runs; NULL: none. */
const inlay_frame *inlay_frames_top(const inlay_frames *);
const inlay_frame *inlay_frames_below(const inlay_frames *, const inlay_frame *);

#ifdef __cplusplus
}
#endif

#endif
