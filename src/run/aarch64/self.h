/* The block of the thread that runs: the word behind the first one of the thread control block leads to it, of the
 * program's and of the tool's. */
#ifndef INL_RUN_AARCH64_SELF_H
#define INL_RUN_AARCH64_SELF_H

#include "run/thread.h"

static inline run_thread *run_self(void)
{
    run_thread *t;
    __asm__ volatile("mrs %0, tpidr_el0\n\tldr %0, [%0, %1]" : "=r"(t) : "i"(WEAVE_FRAME_WORD));
    return t;
}

#endif
