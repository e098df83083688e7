/* Threads of the tool's own, which do something beside the program: take samples, serve a socket, write to a disk.
 *
 *     static void sample(void *arg)
 *     {
 *         while (inlay_worker_sleep(10 * 1000000))
 *             fprintf(out, "%llu\n", (unsigned long long)inlay_counter_sum(&insns));
 *     }
 *     ...
 *     inlay_worker *sampler = inlay_worker_start("sampler", sample, NULL);             in main
 *
 * A worker runs in the program's process, and the program does not know of it: it is none of its threads, its code is
 * not instrumented, it has no number (inlay_thread_number_now is 0), no data of threads (local.h), no signals and no
 * callbacks of threads. It may call what an exit callback may: read counters, memory and registers of nobody, write to
 * inlay_out() or files of its own; not what makes snippets or asks about code that is being shown, nor the program's
 * procedures. What it shares with routines and callbacks is guarded by inlay_lock or atomic operations, as between
 * threads of the program's. It has a stack of 1 MB, and a folder of its own, that of the process when it began: the
 * program's chdir does not move it, nor does it lose rights that the program's threads give up.
 *
 * It ends when its function returns, and is asked to: before the callbacks of the program's end, before the
 * last report of a tool that is taken out (inlay detach, inlay_detach). Then inlay_worker_sleep is false. That is the
 * only place where it learns of anything, so it must come there again and again, from a call with a limit of time where
 * it waits elsewhere: who does not come within five seconds keeps the tool in the process (detach), or is left behind
 * (the end). While the program executes another one, or makes a call that the kernel refuses to processes of several
 * threads (unshare and setns of namespaces of users), and while a report is made in the midst (inlay report), workers
 * rest where they sleep.
 *
 * In a child of fork there is none, unless the fork callback begins one (inlay_on_fork_child); the program that is
 * executed has what the tool's main begins there. */
#ifndef INLAY_WORKER_H
#define INLAY_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_worker inlay_worker;

/* `name` is for messages, and stays the caller's. In main, where it begins when the program does, behind the start
 * callbacks; in callbacks of the start, threads, system calls, signals and fork, and in analysis routines. Any number
 * of them. NULL, with a message: in callbacks that are shown code (images, procedures, blocks, instructions), in the
 * program's end, when memory or threads (ulimit -u) are used up. The handle stays as long as the tool is there. Where
 * the program is only rewritten, or a tool has yet to be put into it, main gets a handle and nothing begins; nor does
 * anything in mutators. */
inlay_worker *inlay_worker_start(const char *name, void (*run)(void *arg), void *arg);

/* By a worker: for so many nanoseconds, or until it is woken; 0: it only looks. False: it is to end, and returns from
 * its function soon. By anybody else: false at once, with a message. */
bool inlay_worker_sleep(uint64_t nanoseconds);
/* Its sleep, or the next one, is over. */
void inlay_worker_wake(inlay_worker *);
/* It is asked to end, and waited for, so many nanoseconds at most; false: it has not ended by then. Not by itself, and
 * not with a lock that it may be waiting for. */
bool inlay_worker_end(inlay_worker *, uint64_t nanoseconds);
/* Is the caller a worker? In a function of the tool's that the program's threads call, too. */
bool inlay_worker_is_here(void);

#ifdef __cplusplus
}
#endif

#endif
