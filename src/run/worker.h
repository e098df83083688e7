/* Threads of the client's own (worker.c). */
#ifndef INL_RUN_WORKER_H
#define INL_RUN_WORKER_H

#include "run/thread.h"

#include <setjmp.h>

enum { RUN_WORKER_GOES_ON, RUN_WORKER_PAUSES, RUN_WORKER_ENDS }; /* wanted */
enum { RUN_WORKER_ENDED /* or it has never begun */, RUN_WORKER_BEGINS, RUN_WORKER_RUNS, RUN_WORKER_PAUSED };

/* The client's, for as long as the process lives: it may be started again once it has ended. */
typedef struct run_worker {
    struct run_worker *next;
    void (*comes)(struct run_worker *); /* first of all on each thread that it has */
    void (*run)(struct run_worker *);   /* it ends when this returns */
    run_thread *block;
    uint32_t wanted, state;
    uint32_t tid;         /* of its thread; 0: there is none */
    int last_tid;         /* that it had, which may be there still; 0: it is not, or there was none */
    uint32_t rung, woken; /* a futex: something is wanted; so often by run_worker_wake */
    bool has_frame;       /* it has been paused, and goes on */
    jmp_buf at;           /* there */
} run_worker;

/* `comes` and `run` are set. 0, or a negative error of the kernel's. Once there is a thread of the program's; lock not
 * held. */
long run_worker_start(run_worker *);
run_worker *run_worker_here(void); /* that the caller is; NULL: it is none */
/* By itself alone. Nanoseconds; < 0: until something comes. False: it is to end. */
bool run_worker_sleep(run_worker *, int64_t time);
void run_worker_wake(run_worker *);
void run_worker_ask(run_worker *); /* to end */
/* False: it has not ended after so many nanoseconds; < 0: of any number. */
bool run_worker_await(run_worker *, int64_t time);

/* False: one has not come to where it sleeps, after so many milliseconds. Calls may nest, by several threads. */
bool run_workers_pause(int64_t milliseconds);
void run_workers_resume(void);
bool run_workers_end(void);   /* false: one does not end */
bool run_workers_there(void); /* is there one that has not ended? */
unsigned run_workers_count(void);
bool run_is_workers(int tid);

#endif
