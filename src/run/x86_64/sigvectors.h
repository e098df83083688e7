/* The vector state in a signal's frame (sigvectors.c), for sigframe.c and its test. */
#ifndef INL_RUN_X86_64_SIGVECTORS_H
#define INL_RUN_X86_64_SIGVECTORS_H

#include "isa/x86_64/xstate.h"
#include "run/kernel.h"

/* Another processor's layout in place of this one's, for tests; NULL: this one's. */
void sigvectors_use(const x86_xstate *);
/* To be called first for a frame: what the thread uses may have grown. */
void sigvectors_prepare(run_thread *);
/* Bytes in the frame, with the word behind them. */
uint64_t sigvectors_bytes(const run_thread *);
bool sigvectors_put(const run_thread *, uint64_t to);
/* In one of the kernel's frames: becomes what a handler begins with. */
void sigvectors_reset(uint8_t *state);
/* False: what is there cannot be loaded. `from` 0: a state as at a program's begin. */
bool sigvectors_take(run_thread *, uint64_t from);
/* The program has been granted features that must be asked for: from now on they are saved. */
void run_vectors_permitted(void);

#endif
