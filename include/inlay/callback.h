/* Callbacks. Each may be registered several times; they run in the order registered. `arg` is
 * handed through. All run with the tool's own C library at hand, one at a time, except those marked
 * (any thread), which may run in several threads at once. */
#ifndef INLAY_CALLBACK_H
#define INLAY_CALLBACK_H

#include <inlay/context.h>
#include <inlay/types.h>

#include <signal.h>
#if defined __GLIBC__ && !defined __siginfo_t_defined
#include <bits/types/siginfo_t.h> /* left out of <signal.h> by -std=c99 and the like */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Code, when it is discovered. Only code that the --image and --proc filters want is handed to
 * procedure, block and instruction callbacks. Images are shown all; what is inserted in one that is not wanted counts
 * (inlay_image_wanted, inlay_proc_wanted). */
void inlay_on_image_load(void (*f)(inlay_image *, void *arg), void *arg);
void inlay_on_image_unload(void (*f)(inlay_image *, void *arg), void *arg);
void inlay_on_proc(void (*f)(inlay_proc *, void *arg), void *arg); /* before its code first runs */
/* Engines that move code (rewrite, live) leave alone what they do not know whole, or find no way into, and put nothing
 * into what runs before the tool does (resolvers in a library that is rewritten, and what they may call): for each such
 * procedure, before the program is written, and behind its own callback where it got that far. */
void inlay_on_proc_left(void (*f)(inlay_proc *, const char *why, void *arg), void *arg);
void inlay_on_block(void (*f)(inlay_block *, void *arg), void *arg);
void inlay_on_insn(void (*f)(inlay_insn *, void *arg), void *arg);

/* Called in main: a promise that what block callbacks insert depends on nothing but the block's code, its place in its
 * image and the tool's options. With --cache, translations of blocks into which nothing but counts of reserved counters
 * (inlay_counter_reserve) was inserted are then kept on disk, and a later run of the same tool takes them from there
 * and does not show those blocks to block callbacks. For each it calls `f` (which may be NULL), where whatever else
 * such a callback would have done belongs; `head` as inlay_block_is_head() has it. A tool that has callbacks of
 * procedures or instructions as well, or inserts through the static view, keeps nothing. */
void inlay_on_kept_block(void (*f)(uint64_t address, bool head, void *arg), void *arg);

/* Threads (any thread). */
void inlay_on_thread_start(void (*f)(inlay_thread *, void *arg), void *arg);
void inlay_on_thread_end(void (*f)(inlay_thread *, void *arg), void *arg);
unsigned inlay_thread_number(const inlay_thread *); /* as inlay_thread_id() has it */
int inlay_thread_tid(const inlay_thread *);         /* the kernel's */
unsigned inlay_thread_number_now(void);             /* of the calling thread; 0: it is none of the program's */
/* What the thread has spent in Inlay itself so far, in cycles of inlay_cycles(): translating, linking,
 * the callbacks that see code; not in what was inserted, nor in the program's system calls. Analysis
 * routines may ask: differences of inlay_cycles() less differences of this are the program's time. */
uint64_t inlay_thread_own_cycles(const inlay_thread *);
uint64_t inlay_cycles_now(void);            /* what inlay_cycles() would be here */
void inlay_own_cycles_add(uint64_t cycles); /* what an analysis routine has taken counts, too: of the calling thread */
uint64_t inlay_own_cycles_now(void);        /* that of the calling thread; 0: it is none of the program's */

/* System calls (any thread). Arguments and number may be changed on entry, the result on exit, where they are still
 * those that the call was made with; the program's registers are as it set them behind it. A call that a signal has put
 * off is entered anew. What does not come back (exit_group, rt_sigreturn) has no exit. */
typedef struct inlay_syscall {
    long number, args[6], result; /* result: on exit; -errno on failure */
    bool skip;                    /* on entry: do not make the call, `result` is its answer */
} inlay_syscall;
void inlay_on_syscall_entry(void (*f)(inlay_thread *, inlay_syscall *, void *arg), void *arg);
void inlay_on_syscall_exit(void (*f)(inlay_thread *, inlay_syscall *, void *arg), void *arg);
/* The kernel's name of a call, "openat"; NULL: it is not known. And the opposite; -1: there is none. */
const char *inlay_syscall_name(long number);
long inlay_syscall_number(const char *name);

/* A signal is about to be delivered to the program's handler, or to end it (any thread). */
void inlay_on_signal(void (*f)(inlay_thread *, int signo, const siginfo_t *, const inlay_context *, void *arg),
                     void *arg);
/* In such a callback: the signal is not delivered. Its handler does not run, and it ends nothing: the program goes on
 * where it is, as if a handler had done nothing; a call that waits and that the handler's action does not have
 * restarted ends with EINTR. A fault's instruction is executed again, and so on until it does not fault
 * (inlay_memory_write, or a system call of the tool's, may have seen to that). False, with a message: not called there.
 */
bool inlay_signal_drop(void);
/* Likewise, and the program goes on with these general registers, flags and pc, which is an address that the tool is
 * shown, or one that the program has: behind a fault, in another procedure, with another value. A copy of what the
 * callback got, changed; vectors and bases stay as they are. What has been said last of a signal holds. Not delivered
 * and going on as it is: inlay_signal_drop. */
bool inlay_signal_resume(const inlay_context *);
/* After fork, in the child: counters are zero again, all other memory of the tool's is as it was in the parent; other
 * threads are gone. */
void inlay_on_fork_child(void (*f)(void *arg), void *arg);
/* Before exec. Return false to run the new program without the tool: then this process's exit callbacks run first,
 * since it has no other end. What --follow and --no-follow leave out is left out whatever is returned. */
void inlay_on_exec(bool (*f)(const char *path, char *const argv[], void *arg), void *arg);
/* In such a callback: the tool begins in the new program with these options (NULL ends them; they are copied) in place
 * of those that this process was given. -o goes along unless it is among them. False: no memory, or not called there.
 */
bool inlay_exec_options(const char *const *options);
/* The program starts (before its first instruction), ends (once, whatever ends it but SIGKILL). */
void inlay_on_start(void (*f)(void *arg), void *arg);
void inlay_on_exit(void (*f)(int status, void *arg), void *arg); /* status as from waitpid */
/* The callbacks at the end are also called for a report in the program's midst (inlay report, or an exec that may yet
 * fail), with status 0, and when the tool is taken out: they report, and free nothing that the tool still needs. */

/* Called in main: a promise that what analysis routines write is looked at by other analysis routines and by
 * callbacks of start and end, and by nobody else: no callback of threads, signals, fork or exec, no thread or
 * handler of the tool's own. In a rewritten program, additions by known amounts to variables that no routine at a
 * point looks at are then not made one by one but all at once, before the callbacks of the end, from counters that
 * cost less; the sums are the same, also where several threads add without a lock. */
void inlay_sums_may_wait(void);

#ifdef __cplusplus
}
#endif

#endif
