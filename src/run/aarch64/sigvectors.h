/* The records in a signal's frame (sigvectors.c), for sigframe.c, sigcontext.c and the test. */
#ifndef INL_RUN_AARCH64_SIGVECTORS_H
#define INL_RUN_AARCH64_SIGVECTORS_H

#include "run/kernel.h"

enum { SIGVECTORS_MOST = 16384 }; /* bytes of all records, with the longest vectors that there can be */

/* Bytes of the records for a frame of this thread's; they begin where the context's room for them does. */
size_t sigvectors_bytes(const run_thread *);
/* Fills `to` (16-byte aligned) with as many; `at` is its address in the program. */
void sigvectors_put(const run_thread *, uint8_t *to, uint64_t at);
/* The vector state as the records in the context at `room` say; false: they are not as the kernel takes them. */
bool sigvectors_take(run_thread *, uint64_t room);
/* What the records say of a fault (the processor's syndrome), 0: nothing. */
uint64_t sigvectors_syndrome(const uint8_t *room);

#endif
