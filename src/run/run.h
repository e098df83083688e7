/* What a process needs under any engine: threads and their blocks, fork, exec, the end, the program's signals, system
 * calls that must be seen or hidden, descriptors, /proc, sandboxes.
 *
 *     life.c                   the runtime's begin; the way into the program and back to the engine
 *     thread.c                 thread blocks, clone, exit; counters' memory
 *     process.c exec.c         fork, vfork, exec, the end
 *     letgo.c                  a process that asks to be traced goes on natively
 *     signal.c sending.c hung.c  dispositions, delivery, queues, a tool that does not come back
 *     syscall*.c writes.c      calls that the runtime carries out; what each call may write
 *     confine.c bpf.c          the program's own filters of system calls
 *     fd.c procfile.c maps.c own.c  what is Inlay's and not shown: descriptors, memory
 *     <isa>/                   registers, the kernel's signal frame, the border between program and runtime
 *
 * Where the program's code runs (a code cache, or the code itself, rewritten) is the engine's business: it hangs itself
 * into the runtime as a `run_engine`, and the runtime knows no more of it.
 *
 * One lock, `run_here.lock`, guards all shared state; translation, the client's callbacks and the private libc run
 * under it or in RUN_IN_RUNTIME with the tool's FS base. Signal handlers never take it.
 */
#ifndef INL_RUN_RUN_H
#define INL_RUN_RUN_H

#include "base/error.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/ranges.h"
#include "image/module.h"
#include "run/thread.h"

enum { RUN_SYSCALLS = 512 }; /* numbers that are told apart */
enum { RUN_VERSIONS = 8 };   /* of instrumented code, at most */

typedef struct run_exec_plan {
    int fd;      /* of the tool's file, for execveat(AT_EMPTY_PATH) */
    char **argv; /* the launcher's arguments: one malloc'ed block, strings and all */
} run_exec_plan;

/* The process is about to die of something that is not the program's doing. */
typedef enum run_crash_where {
    RUN_CRASH_ROUTINE, /* an analysis routine that was called */
    RUN_CRASH_SNIPPET, /* other inserted code */
    RUN_CRASH_RUNTIME, /* the runtime, or a callback */
    RUN_CRASH_CODE,    /* what else Inlay has made of the program's code */
} run_crash_where;
typedef struct run_crash {
    run_crash_where where;
    int signo, code; /* by which it dies; of its siginfo */
    uint64_t addr;
    const void *uc; /* the kernel's context there */
    /* RUN_CRASH_SNIPPET: at which instruction of the program's; the instruction of a routine of which the code is a
     * copy, 0: of none */
    uint64_t point, routine;
    int64_t waited; /* seconds that the signal has waited for code that does not return; -1: it is a fault */
} run_crash;

/* What the tool part hangs into the runtime. Any may be NULL. All are called in RUN_IN_RUNTIME; those marked (L) with
 * the lock held. */
typedef struct run_client {
    void *arg;
    void (*module_loaded)(void *arg, module *m); /* (L) */
    void (*module_gone)(void *arg, module *m);   /* (L) */
    void (*thread_start)(void *arg, run_thread *t);
    void (*thread_end)(void *arg, run_thread *t);
    /* May change ctx (number in rax, arguments); true: skip the call, result is already in rax. */
    bool (*syscall_enter)(void *arg, run_thread *t, weave_context *ctx, long nr);
    void (*syscall_exit)(void *arg, run_thread *t, weave_context *ctx, long nr);
    /* False: it is not delivered, the program goes on at ctx. */
    bool (*signal)(void *arg, run_thread *t, int signo, const siginfo_t *info, weave_context *ctx);
    void (*fork_before)(void *arg, run_thread *t);
    void (*fork_parent)(void *arg, run_thread *t, int child); /* child: or -errno; of vfork: when that is over */
    void (*fork_child)(void *arg, run_thread *t);
    /* The program is about to exec `path`. Fills in how to run it under the tool (see run_exec_plan);
     * false: run it natively. `plan` NULL: that will be, the client cannot choose. */
    bool (*exec)(void *arg, run_thread *t, const char *path, char *const *argv, char *const *envp,
                 struct run_exec_plan *plan);
    void (*exec_failed)(void *arg, run_thread *t); /* after it has been said that it is to run natively */
    /* The process ends: once, in the thread that ends it; signo != 0: dies by it. */
    void (*exit)(void *arg, run_thread *t, int status, int signo);
    bool wants_syscalls; /* syscall_enter/exit for every call, no native gate */
    uint32_t counters;   /* so many are used from the start; more only under the JIT, or by run_counters_extend */
    /* The private libc's thread-local block for one more thread (made in the parent), its FS base. */
    void *(*tls_new)(void *arg);
    void (*tls_free)(void *arg, void *tls);
    uint64_t (*tls_base_of)(void *arg, void *tls);
    /* Takes (phase 0) what the private libc and the client must not hold across a fork (malloc's
     * locks ...), releases it in the parent (1) and in the child (2). (L) */
    void (*fork_lock)(void *arg, int phase);
    /* What a link of /proc (its path is absolute) is to show instead of what the kernel says: fills
     * `out`, returns its length, 0 to leave it. For a program that Inlay loaded without ptrace. */
    size_t (*proc_link)(void *arg, const char *path, char *out, size_t size);
    /* Shows the user one line: something about the program that Inlay cannot do. */
    void (*say)(void *arg, const char *text);
    /* A call that run_engine.call has made has perhaps come back: then it does not return. Otherwise the program goes
     * on behind it; not intact: its stack does not say where that is. Lock not held. */
    void (*returned)(void *arg, run_thread *t, bool is_intact);
    /* The vdso, in which the client's C library reads clocks; vdso_high 0: it does not. The program is about to unmap
     * or move it. (L) */
    uint64_t vdso_low, vdso_high;
    void (*vdso_goes)(void *arg);
    /* Says whose fault it is. On the thread's signal stack, with the tool's FS base, any lock may be held. */
    void (*crashed)(void *arg, run_thread *t, const run_crash *c);
} run_client;

/* What the injection hands over: the program's registers at its entry, and what is not its own. */
typedef struct run_start_state {
    weave_context ctx;              /* at the entry of the program or its interpreter; FS/GS bases 0 */
    uint64_t tool_low, tool_high;   /* the tool's own mapping */
    uint64_t stack_low, stack_high; /* the tool's first stack */
    uint64_t sigmask;
    uint64_t brk_emulated; /* no-ptrace loading: nonzero */
    bool ran_before;       /* the program did, natively: the kernel has its handlers */
} run_start_state;

/* What an engine that makes copies of the program's code wants to know of the program's address space. */
typedef struct run_watch {
    /* The program has changed it (L). */
    void (*mapped)(uint64_t addr, uint64_t size, int prot, int flags, int fd, uint64_t offset);
    void (*unmapped)(uint64_t addr, uint64_t size);
    void (*protected)(uint64_t addr, uint64_t size, int prot);
    void (*changed)(uint64_t low, uint64_t high);     /* other bytes are there now */
    void (*shown_again)(uint64_t low, uint64_t high); /* the client is to see the code there once more (L) */
    /* It is about to be moved, with the protection that it really has, and in one piece (L). */
    void (*moves)(uint64_t low, uint64_t high);
    /* The program is about to map something there, over what is Inlay's: what can do without its place leaves it (L).
     */
    void (*gives_way)(uint64_t low, uint64_t high);
    /* The program has got a handler for a signal that faults raise. */
    void (*handles_fault)(void);
    /* What the program believes of it (L). */
    int (*prot)(uint64_t addr);
    bool (*is_shared)(uint64_t addr);
    uint64_t (*mapped_behind)(uint64_t addr); /* bytes up to the end of what is mapped there, 0: nothing is */
    void (*keys_used)(void);                  /* the program has protection keys (L) */
    void (*pages_late)(void); /* a page of its memory may be there only when another thread has seen to it (L) */
    /* Around each call that the runtime makes for the program: what it may write must be writable. */
    void (*call_begins)(run_thread *t, const weave_context *c);
    void (*call_ends)(run_thread *t, long answer);
    void (*no_more)(void);             /* from now on the kernel may write at any time */
    void (*thread_ends)(run_thread *); /* the kernel writes when a thread has ended */
    /* The call rseq, and a signal is about to be delivered: a restartable sequence that it finds is aborted. */
    long (*sequences)(run_thread *, const weave_context *);
    void (*interrupted)(run_thread *);
    /* An address that the processor has noted of the code that ran, as the program is to see it. */
    uint64_t (*pointer_shown)(uint64_t noted);
    /* Around a fork (L): in the parent before it and after it, in the child. */
    void (*fork_prepare)(void), (*fork_parent)(void), (*fork_child)(void);
} run_watch;

struct run_action;
typedef struct run_engine {
    uint64_t (*dispatch)(run_thread *t); /* serves t->leave; the address to go to with ctx loaded */
    /* Inlay's handler has been called, on the thread's own signal stack, all but the faults blocked. NULL: the engine
     * has handlers of its own, by `install`. */
    void (*signal)(run_thread *t, int signo, siginfo_t *info, void *uc, uint64_t tls_base);
    /* The signal is about to be delivered; it may be changed. False: it is not. NULL: always. */
    bool (*delivers)(run_thread *t, siginfo_t *info);
    void (*install)(int signo, const struct run_action *); /* tells the kernel what it comes down to; NULL: the usual */
    void (*gate)(void);                                    /* goes into t->syscall_gate */
    /* The analysis routine that runs is given up, with what called it: the program goes on with t->ctx. Returns only
     * where that cannot be. */
    void (*resume)(run_thread *t);
    /* Code may be instrumented in several ways: the calling thread goes on in another one. NULL: there is one. */
    void (*switch_version)(run_thread *t, unsigned version);
    unsigned (*version)(const run_thread *t); /* that it runs in; NULL, with lock held: being translated */
    /* An analysis routine calls a procedure of the program's: t->ctx, which has its arguments in registers and its
     * address, becomes what it begins with, for `resume`. When it returns, run_client.returned is called. False: it
     * cannot be. `called`: it is over, however; NULL: nothing to do. */
    bool (*call)(run_thread *t, run_call *);
    void (*called)(run_thread *t, const run_call *);
    const char *const *program_calls;  /* behind its system calls that are the program's; NULL ends them */
    void (*thread_made)(run_thread *); /* a block is about to be used; NULL: nothing to do */
    size_t room;                       /* behind each block, of its own, not mapped unless the engine does */
    const run_watch *watch;            /* NULL: it has no copies of the program's code */
    /* The program's code runs natively. In the runtime all signals but faults are blocked then, counters are all
     * known from the start, and a process cannot be let go. */
    bool is_native;
} run_engine;

/* procagain.c: what has been put in place of a file of /proc; inode 0: none. */
enum { RUN_PROC_COPIES = 8 };
typedef struct run_proc_copy {
    int fd, kind;
    uint64_t inode, device;
    char path[48]; /* of the file itself, in /proc */
} run_proc_copy;

/* The process: taken down with it, and set up anew by run_begin. Assembly and signal handlers must find it without a
 * thread, and the kernel has one table of handlers a process: hence one, and in one place. */
typedef struct run_process {
    inl_lock lock;
    const run_engine *engine;
    run_client client;
    run_start_state start;
    module_set *modules;
    run_thread *threads;      /* all live threads */
    run_thread *free_threads; /* blocks to reuse */
    uint32_t thread_count, next_thread_number;
    uint64_t dead_counters_high; /* counters in use: [0, high) */
    uint64_t banked_high;        /* of those with banks */
    uint64_t *dead_counters;     /* sums of ended threads */
    inl_room dead_room;          /* they lie in; it has as many as a thread that has ended had */
    struct run_signals *signals;
    bool exiting, born_traced;
    bool shares_files;   /* descriptors, with the process that forked it (clone with CLONE_FILES, without CLONE_VM) */
    bool memory_refused; /* syscall_memory.c: it has been said */
    bool memory_opened;  /* syscall_file.c: its own memory as a file, for writing */
    inl_ranges not_copied, wiped; /* syscall_memory.c: what a child of fork has nothing of, or zeros */
    bool may_imply_exec; /* syscall_memory.c: a thread may have the personality by which what is readable is executable
                          */
    int pid;
    uint64_t strings[3]; /* procfile.c: of a program that was loaded: its arguments' begin and end, its environment's */
    int proc_root;       /* procfile.c: /proc, kept open; -1: it could not be opened; 0: not yet */
    run_proc_copy proc_copies[RUN_PROC_COPIES]; /* procagain.c */
    bool proc_read;                             /* reads are looked at, since there may be some */
    inl_ranges owned;                           /* own.c */
    inl_lock owned_lock;
    uint64_t guarded_calls[RUN_SYSCALLS / 64], kept_calls[RUN_SYSCALLS / 64]; /* syscall.c */
    uint64_t looked_calls[RUN_SYSCALLS / 64]; /* made by the gate but for run_syscall_look */
    uint64_t brk_now;                         /* syscall_memory.c: the program break that Inlay emulates, */
    uint64_t brk_known;                       /* and its top the last time that it was asked for */
    inl_map attached;                         /* System V shared memory: address -> size */
    struct run_worker *workers;               /* worker.c */
    uint32_t workers_pause;                   /* so many want them to */
} run_process;
extern run_process run_here;

/* --- life.c --- */
/* Is this a processor on which a program can be run under Inlay? */
inl_status run_check_processor(inl_error *);
/* From here on run_engine.dispatch is called with the program's thread pointer where setting it is dear, and the thread
 * left by RUN_LEAVE_EXIT or RUN_LEAVE_INDIRECT: the C library is not asked for anything before inl_libc_ready. The
 * first thread is about to enter its code. */
void run_bases_late(void);
void run_bases_by_call(void); /* before there is a thread: as if the kernel did not let programs set theirs */
/* Sets the runtime up in this process: `start->ctx` is where the program goes on, `start->sigmask` its mask. The caller
 * becomes its first thread, on the tool's own stack, with the tool's FS base, by run_first_thread; then run_go never
 * returns. */
inl_status run_begin(const run_engine *, const run_client *, const run_start_state *, inl_error *);
inl_status run_first_thread(inl_error *);
void run_go(void) __attribute__((noreturn));
/* Gives everything back that run_begin and run_first_thread have taken, the kernel's actions for signals included: the
 * process is as it was, and can begin anew. The caller is its only thread, and stands on a stack of its own. */
void run_end(void);
/* One line to the user, not from a signal handler. */
void run_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The call that is under way and has just come back, by t->ctx; NULL: none has. */
run_call *run_call_back(const run_thread *t);

/* --- own.c --- */
/* Does [low, high) touch memory that is Inlay's own (cache, tool, stacks, blocks)? */
bool run_is_ours(uint64_t low, uint64_t high);
void run_own_locked(uint64_t low, uint64_t high, bool add); /* registers Inlay's own ranges; the lock is held */
/* The end of what is Inlay's at `at` (`at` itself where nothing is), at most `high`; *next: where more of it begins. */
uint64_t run_ours_ends(uint64_t at, uint64_t high, uint64_t *next);
uint64_t run_ours_begins(uint64_t low, uint64_t high); /* of the first that [low, high) touches; `high`: of none */

/* --- syscall.c --- */
/* Carries out the system call in t->ctx (rax = number; ctx.pc behind it; leave_arg = its address). */
void run_syscall(run_thread *t);
/* Bit set: the call may run in the native gate. Read by assembly, which finds the words through run_gate_calls. */
extern uint64_t run_direct_calls[8];
extern const uint64_t *run_gate_calls;
void run_syscall_keep(long nr);          /* from now on the gate does not make it */
void run_syscall_look(long nr, bool on); /* (L) nor while this is on */
void run_syscalls_keep_all(void);
void run_syscalls_guard(bool on); /* on: of those, only the calls that write nothing */

/* --- signal.c --- */
void run_signals_init(void);
void run_signals_init_thread(run_thread *t);
/* Called by the dispatcher before it enters the cache, lock not held: delivers a pending signal by
 * building its frame and changing ctx. Returns true when ctx changed. */
bool run_signal_deliver_pending(run_thread *t);
/* Delivers a fault that the runtime found out itself (no code at pc, bad frame...). */
void run_signal_raise(run_thread *t, int signo, int code, uint64_t addr);
void run_signal_force(run_thread *t, const siginfo_t *); /* likewise, whatever it is */
void run_signal_give(run_thread *t, int signo);          /* as if it had arrived; run_engine.delivers is not asked */
long run_sys_sigaction(run_thread *t, int signo, uint64_t act, uint64_t old, uint64_t size);
long run_sys_sigaltstack(run_thread *t, uint64_t ss, uint64_t old);
void run_sys_sigreturn(run_thread *t);
void run_signals_fork_child(run_thread *t);

/* --- thread.c --- */
run_thread *run_thread_new(inl_error *);       /* block, stacks, TLS; not yet in the list */
run_thread *run_thread_new_apart(inl_error *); /* likewise, of none of the program's: it has no number among them */
void run_thread_free(run_thread *);
/* A thread that ran natively before, and stands still at `c`: a block for it, in the list. */
run_thread *run_thread_adopt(int tid, const weave_context *c, uint64_t sigmask, const stack_t *alternate, inl_error *);
long run_sys_clone(run_thread *t, bool is_clone3);                         /* clone, clone3, fork, vfork, from ctx */
void run_thread_exit(run_thread *t, int status) __attribute__((noreturn)); /* the exit system call */
uint64_t run_counter_sum_now(uint32_t index); /* over live and ended threads; the lock is held, or nobody else runs */
static inline uint64_t run_counter_of(const run_thread *t, uint32_t index)
{
    unsigned banks = index >= t->counter_room ? 0 : index < WEAVE_BANKED ? WEAVE_BANKS : 1;
    uint64_t sum = 0;
    for (unsigned bank = 0; bank < banks; bank++) {
        const char *at = (const char *)t + weave_counter_at(WEAVE_COUNTERS, index, bank);
        sum += __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);
    }
    return sum;
}
/* `addr` lies behind the counters of `t` that are mapped: now they go as far. async-signal-safe; false: it does
 * not, or there is no memory. */
bool run_counters_reach(run_thread *t, uint64_t addr);
/* Lock held: the first `count` are mapped, in all blocks that there are and will be. */
bool run_counters_extend(uint32_t count);
void run_counters_reset(void); /* all to zero (fork child) */

/* --- process.c --- */
void run_process_exit(run_thread *t, int status) __attribute__((noreturn)); /* exit_group */
void run_process_die(run_thread *t, int signo) __attribute__((noreturn));   /* the kernel's own */
void run_process_die_of(run_thread *t, const siginfo_t *info) __attribute__((noreturn));
enum { RUN_EXEC_CHECK = 0x10000 }; /* AT_EXECVE_CHECK, Linux 6.14: it is only asked whether the file may be executed */
long run_sys_execve(run_thread *t, int dirfd, uint64_t path, uint64_t argv, uint64_t envp, int flags);
void run_fork_child(run_thread *t); /* in the child: own cache, locks, one thread, tid */

/* --- descriptors Inlay keeps (fd.c): high numbers, hidden from the program --- */
int run_fd_hide(int fd); /* moves it to a hidden number; -errno */
bool run_fd_is_hidden(int fd);
long run_fd_close(int fd); /* also one that is not hidden */
void run_fd_close_all(int but);
bool run_fd_are_own(int tid, int other); /* has the thread other descriptors than that one? */
void run_fd_close_own(void); /* then, by a thread whose descriptors are its own: those that it has of them */

/* --- <isa>/border.S, <isa>/kernel.S --- */
void run_leave_code(void);                                    /* stubs jump here through gs */
void run_enter_code(run_thread *t) __attribute__((noreturn)); /* from ctx, to t->enter_pc */
/* The signal handler sets a thread's rip to this (anything else of its registers but GS and the vector
 * state is of no matter) after filling ctx and leave: saves the vector state, goes to the dispatcher. */
void run_redispatch(void);
/* The thread, in its runtime, goes to the dispatcher with ctx, and its vector state, as they are. */
void run_dispatch_again(void) __attribute__((noreturn));
extern const char run_enter_begin[], run_enter_end[]; /* window after the pending check */
void run_signal_entry(int, siginfo_t *, void *);      /* what the kernel calls: swaps FS, calls run_signal */
void run_signal(int signo, siginfo_t *info, void *ucontext, uint64_t tls_base); /* signal.c */
/* Called by run_leave_code on the private stack; the address to enter the program's code at. */
uint64_t run_dispatch(run_thread *t);
void run_signal_restorer(void);
/* Raw clone whose child starts on block `child` (registers from child->ctx) and never returns here.
 * Returns the kernel's answer in the parent. For fork without CLONE_VM `child` is the caller's own. */
long run_raw_clone(long nr, long a, long b, long c, long d, long e, run_thread *child);

#endif
