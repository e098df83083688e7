/* Counters of the processor's and the kernel's (perf_event_open(2)), each thread's own.
 *
 *     perf = inlay_perf_new("page-faults,{cycles,instructions:u}");                     in main
 *     inlay_perf_read(perf, values);                                                    in an analysis routine
 *
 * A list has events, with commas between them: names as `perf list` has them (cycles, instructions, branch-misses,
 * L1-dcache-load-misses, page-faults, context-switches, task-clock...), rHEX for the processor's own, and
 * NAME=TYPE/CONFIG or NAME=TYPE/CONFIG/CONFIG1/CONFIG2 for whatever else the kernel takes. Behind a ':' u, k and h say
 * that what user code, the kernel, a hypervisor does is counted. Events in braces are counted at the same time or not
 * at all; software events alone always are.
 *
 * A thread's counters begin at its first reading. They are read in user space where the processor and the kernel allow
 * it, otherwise by a system call. Where perf_event_open is forbidden, page-faults, minor-faults, major-faults,
 * context-switches, task-clock and cpu-clock are read by other means (getrusage, the thread's clock), and what cannot
 * be had stays 0, with a reason. */
#ifndef INLAY_PERF_H
#define INLAY_PERF_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { INLAY_PERF_MOST = 16 };

typedef struct inlay_perf inlay_perf;

typedef enum inlay_perf_how {
    INLAY_PERF_NOT,   /* it cannot be counted */
    INLAY_PERF_USER,  /* the processor's counter is read in user space */
    INLAY_PERF_CALL,  /* the kernel is asked */
    INLAY_PERF_USAGE, /* perf_event_open is forbidden: by getrusage or the thread's clock */
} inlay_perf_how;

/* Of a thread: `running` of the `enabled` ns there was a counter for it. */
typedef struct inlay_perf_total {
    uint64_t value, enabled, running;
    inlay_perf_how how;
} inlay_perf_total;

/* Between inlay_init and inlay_start, in main. NULL, with a message. */
inlay_perf *inlay_perf_new(const char *list);
unsigned inlay_perf_count(const inlay_perf *);
const char *inlay_perf_name(const inlay_perf *, unsigned event);
/* The calling thread's, one value an event; in analysis routines and callbacks of threads. */
void inlay_perf_read(inlay_perf *, uint64_t *values);
/* How the calling thread counts an event, opened if it was not; why it cannot, or NULL. */
inlay_perf_how inlay_perf_state(inlay_perf *, unsigned event, const char **why);
/* The calling thread's counters are read for the last time and closed; `totals` is one for each event. False: it had
 * none. */
bool inlay_perf_end(inlay_perf *, inlay_perf_total *totals);
void inlay_perf_close(inlay_perf *);  /* all threads'; at the end */
void inlay_perf_forked(inlay_perf *); /* in a child of fork, whose counters begin anew */

#ifdef __cplusplus
}
#endif

#endif
