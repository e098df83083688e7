/* The block of the thread that runs: GS base leads to it, and it begins with its own address. */
#ifndef INL_RUN_X86_64_SELF_H
#define INL_RUN_X86_64_SELF_H

#include "run/thread.h"

static inline run_thread *run_self(void)
{
    run_thread *t;
    __asm__("mov %%gs:0, %0" : "=r"(t));
    return t;
}

#endif
