/* What the program calls in the tool's code, on its own stack, with its thread pointer, at any time (finders.c,
 * walks.c): it takes no lock and needs no memory. Whoever takes the tool out must know that a thread has still to come
 * back there. One that leaves otherwise, by an exception or a jump, has a higher stack pointer. */
#ifndef INL_MOVED_PASSAGE_H
#define INL_MOVED_PASSAGE_H

#include "moved/private.h"

typedef struct moved_passage {
    run_thread *t;
    uint64_t before, frame;
} moved_passage;

static inline moved_passage moved_passage_in(uint64_t frame)
{
    moved_passage p = {run_self(), 0, frame};
    p.before = moved_of(p.t)->finds;
    moved_of(p.t)->finds = frame;
    return p;
}

static inline void moved_passage_out(const moved_passage *p) { moved_of(p->t)->finds = p->before; }

/* First in such a procedure. */
#define MOVED_PASSES                                                                                                   \
    __attribute__((cleanup(moved_passage_out), unused))                                                                \
    const moved_passage here = moved_passage_in((uint64_t)(uintptr_t)__builtin_frame_address(0))

/* Where code has moved from; else the address itself. */
static inline uint64_t moved_old_address(uint64_t at)
{
    const moved_image *i = moved_at(at);
    return i ? moved_original((real_addr){at}).at - i->to_assumed : at;
}

#endif
