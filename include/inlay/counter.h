/* Counters: private to each thread, summed when read; exact without locks, kept when a thread ends.
 * A forked child starts from zero. Zero-initialised static counters are ready for use. Where code is moved (rewritten,
 * or in a process that runs) sums are exact between procedures; a tool that asks in the middle of one makes
 * inlay_counter_value(c) once in main (snippet.h), and they are exact everywhere. */
#ifndef INLAY_COUNTER_H
#define INLAY_COUNTER_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_counter {
    uint32_t index; /* 0: no place given yet */
} inlay_counter;

/* Gives it its place now, in main, and not when it is first used: its number is then the same in each run, which
 * translations that are kept on disk need (inlay_on_kept_block). */
void inlay_counter_reserve(inlay_counter *);

uint64_t inlay_counter_sum(const inlay_counter *);                      /* over all threads */
uint64_t inlay_counter_of(const inlay_counter *, const inlay_thread *); /* one live thread */

#ifdef __cplusplus
}
#endif

#endif
