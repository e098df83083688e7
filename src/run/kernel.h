/* What the files on the kernel's side of the engine share: system calls, signals, threads, processes,
 * descriptors. The architecture's own part stands behind the functions at the end. */
#ifndef INL_RUN_KERNEL_H
#define INL_RUN_KERNEL_H

#include "isa/isa.h"
#include "run/run.h"

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

/* Signals that a fault raises. The kernel's mask never holds them while the program's code runs,
 * whatever the program asked for: Inlay's own faults (write-protected code, a blocked table of
 * indirect branches) must arrive. */
#define RUN_BIT(signo) (1ull << ((signo)-1))
#define RUN_FAULTS                                                                                                     \
    (RUN_BIT(SIGSEGV) | RUN_BIT(SIGBUS) | RUN_BIT(SIGILL) | RUN_BIT(SIGFPE) | RUN_BIT(SIGTRAP) | RUN_BIT(SIGSYS))
#define RUN_UNBLOCKABLE (RUN_BIT(SIGKILL) | RUN_BIT(SIGSTOP))

typedef struct run_action { /* the kernel's struct sigaction */
    uint64_t handler, flags, restorer, mask;
} run_action;

typedef struct run_signals { /* what the program set; one for all threads that share handlers */
    inl_lock lock;
    uint32_t users;
    run_action action[65];
} run_signals;

/* Answers of a system call's handler that are not the program's. */
#define RUN_RESTART   INT64_MIN       /* a signal came first: the call has not been started */
#define RUN_NO_ANSWER (INT64_MIN + 1) /* the handler has set the whole context */

/* --- syscall.c --- */
typedef long run_syscall_handler(run_thread *t, weave_context *c);
typedef struct run_syscall_row {
    uint16_t nr;
    const char *name;
    run_syscall_handler *run;
} run_syscall_row;
extern const run_syscall_row run_memory_syscalls[], run_file_syscalls[], run_signal_syscalls[], run_process_syscalls[],
    run_sending_syscalls[], run_waiting_syscalls[], run_isa_syscalls[]; /* each ends with a row whose `run` is NULL */
void run_syscalls_init(void);
void run_file_calls_direct(void (*make_direct)(unsigned nr)); /* syscall_file.c */
/* syscall_memory.c. Would the call take memory of Inlay's away, or replace it, or the vdso? And makes it so that it
 * does not, with the lock not held. */
bool run_memory_concerns(const weave_context *c);
void run_memory_begin(void);
void run_memory_fork_child(void); /* in the child (L): what it has nothing of, or zeros, is told to who watches */
long run_memory_call(run_thread *t, weave_context *c);
/* Makes the call of `c` with its own arguments, or RUN_RESTART when a signal waits. */
long run_pass(run_thread *t, const weave_context *c);
long run_pass_args(run_thread *t, long nr, const long args[6]);

/* --- divert.c --- */
long run_divert_set(run_thread *t, const weave_context *c); /* prctl, with PR_SET_SYSCALL_USER_DISPATCH */
bool run_divert(run_thread *t); /* the program hears of the call of t->ctx, which is not to be made */

/* --- signal.c --- */
void run_kernel_mask_set(uint64_t mask);
bool run_kills_by_default(int signo);
#define RUN_DEFAULT ((uint64_t)(uintptr_t)SIG_DFL)
#define RUN_IGNORE  ((uint64_t)(uintptr_t)SIG_IGN)
/* Does the program's action concern Inlay: does it handle the signal, or die by it? */
bool run_signal_matters(int signo, const struct run_action *);
/* The kernel's default action from now on. And sends this thread a signal. */
void run_signal_default(int signo);
void run_signal_self(int signo);
bool run_signal_is_fault(int signo, const siginfo_t *info);
/* A fault that is not the program's, with the tool's FS base: it is told, and when the handler returns the process dies
 * of it. And who is told when another signal is the end. */
void run_signal_die_of_bug(run_thread *t, const run_crash *);
void run_signal_tell_crash(run_thread *t, const run_crash *);
uint64_t run_kernel_mask_all(void);                /* blocks everything; the mask before */
uint64_t run_kernel_mask_sent(void);               /* blocks all but the faults; the mask before */
uint64_t run_kernel_mask_faults(void);             /* lets the faults in; the mask before */
void run_mask_apply(run_thread *t);                /* the program's mask becomes the kernel's, but for faults */
run_signals *run_signals_clone(run_signals *from); /* NULL when out of memory */
void run_signals_release(run_signals *);
void run_signals_adopt_kernel(run_signals *s);
void run_signals_give_back(const run_signals *); /* they are the kernel's actions again */
/* What is ignored the next program ignores too; `has_failed`: there is none after all. */
void run_signals_for_exec(run_signals *, bool has_failed);
void run_signals_clear(run_signals *); /* as CLONE_CLEAR_SIGHAND has it; the kernel's own too */

/* --- hung.c; async-signal-safe --- */
/* The pending signal waits for the tool's code: from now on `mask` lets those through that ask to end. */
void run_hung_watch(run_thread *t, uint64_t *mask);
/* A signal came while another waits; true: it has been seen to. `in_tool`: still in the tool's code, where uc has it.
 * With the tool's FS base. */
bool run_hung_again(run_thread *t, const siginfo_t *info, const void *uc, bool in_tool);
/* A callback begins where all signals but faults are blocked: those that ask to end, but for `blocked`, come from now
 * on, and go to run_hung_arrived (false: it is another); they are sent again at the callback's end, if it has one. */
void run_hung_let_in(uint64_t blocked);
bool run_hung_arrived(run_thread *t, const siginfo_t *info, void *uc);
void run_hung_let_out(run_thread *t);
void run_hung_end(run_thread *t);              /* what waited is about to be delivered */
bool run_hung_is_timer(const siginfo_t *info); /* Inlay's own; nothing for the program */

/* --- sending.c --- */
void run_signal_send_back(const siginfo_t *info); /* into the kernel's queue of this thread, as it was */
/* One that ends the process, all signals blocked: the kernel has it, for when the mask lets it in. false: it was
 * refused. */
bool run_signal_send_last(const run_thread *t, const siginfo_t *info);
/* Sent signals whose siginfo looks like a fault's are marked on their way through the kernel; false: it does
 * not. The opposite, for what has arrived: true: it was marked, so it was sent. */
bool run_signal_mark(siginfo_t *info);
bool run_signal_unmark(siginfo_t *info);
long run_sys_queue(run_thread *t, weave_context *c); /* the calls that send one */

/* Inlay's own, from a thread or another process: it only brings a thread to the engine (jit/leave.c). */
enum { RUN_NUDGE = -0x1ea7e };
static inline bool run_signal_is_nudge(const siginfo_t *info)
{
    return info->si_signo == SIGSYS && info->si_code == RUN_NUDGE;
}

/* Something is to be delivered before the program goes on. */
static inline bool run_signal_waits(const run_thread *t)
{
    return t->pending.present || t->fault.present || t->held_set & ~t->sigmask;
}

/* --- own.c --- */
void run_own(uint64_t low, size_t size, bool add); /* run_own_locked; takes the lock */

/* --- thread.c --- */
void run_threads_free(void);                  /* all blocks, and the sums of counters */
void run_thread_link(run_thread *t);          /* lock held */
void run_thread_retire_locked(run_thread *t); /* its counts are kept, its block can be used again when it is not busy */
void run_thread_begin(run_thread *t);         /* in the new thread, called by assembly */
void run_threads_after_fork(run_thread *t);

/* --- process.c --- */
typedef struct run_clone_args { /* the kernel's struct clone_args, with room for what is to come */
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    uint64_t rest[24];
} run_clone_args;
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ull
#endif
/* What Inlay sees to itself in the child: where thread-local storage is, and handlers, which are virtual. */
#define RUN_CLONE_OURS (CLONE_SETTLS | CLONE_CLEAR_SIGHAND)
/* A child with its own memory; `size` is of clone3's structure, 0: by clone. */
long run_fork(run_thread *t, const run_clone_args *a, size_t size);
/* All signals blocked and none waiting: true. False: the call must start anew, after delivery. */
bool run_quiet_begin(run_thread *t);
void run_quiet_end(run_thread *t);
/* The callbacks at the process's end, once; the loser of a race never returns. */
void run_process_end(run_thread *t, int status, int signo);

/* --- letgo.c --- */
/* The process goes on natively from `ctx`; returns only where that is not possible. */
void run_let_go(run_thread *t);
void run_signals_queue(run_thread *t); /* what waits in the runtime is the kernel's to deliver */

/* --- exec.c --- */
bool run_is_traced(void); /* somebody has attached to this process by ptrace */

/* --- procfile.c, procagain.c, maps.c, fd.c --- */
/* By a path's last part: which of the files of /proc that tell of Inlay it may be; -1: none of them. */
int run_proc_kind(const char *path);
/* `fd` has been opened by a path of such a kind: if it is the process's own file, puts one in its place
 * that leaves Inlay out. The descriptor. */
long run_proc_replace(int fd, int kind, int flags);
/* What `fd` is, when it is a file or folder below the process's own in /proc: the path from there on. */
bool run_proc_own_path(int fd, char *out, size_t size);
/* The kernel's files of this process, wherever the program's root is now: "self/maps" ... */
void run_proc_init(void);
void run_proc_end(void);
long run_proc_open(const char *below);
long run_proc_open_memory(void);                       /* that can be written to whatever its protection is */
bool run_proc_fd_path(int fd, char *out, size_t size); /* what a descriptor shows; false: cut off, or nothing */
/* A file in the making: a system call for each line would take as long as a hundred of the kernel's. */
typedef struct run_proc_file {
    int fd;
    size_t used;
    char text[16 << 10];
} run_proc_file;
bool run_proc_put(run_proc_file *out, const char *text, size_t n);
/* What is written to `made` instead of what `real` says. */
bool run_proc_fill(int real, int made, int kind);
/* `fd` has been replaced, and `below` is its path in the process's folder. Before each read: where it is one of them,
 * and read from its beginning, it is made anew. */
void run_proc_note(int fd, int kind, const char *below);
#define RUN_PROC_HERE UINT64_MAX /* where the descriptor stands */
void run_proc_read_again(int fd, uint64_t at);
void run_proc_forget(int fd);   /* it is closed */
void run_proc_forget_all(void); /* in a child of fork */
void run_proc_readers_direct(void (*make_direct)(unsigned nr));
long run_proc_open_copy(int fd); /* that can be written to */
bool run_maps_put(run_proc_file *out, char *text);
bool run_is_break(uint64_t low, uint64_t high); /* a part of the program break that Inlay emulates */
bool run_smaps_put(run_proc_file *out, char *text);
/* Is `fd` the folder of this process's descriptors, or threads? What getdents64 answers there, less the hidden ones. */
bool run_lists_hidden(int fd);
long run_list_unhidden(run_thread *t, weave_context *c);
long run_close_range(run_thread *t, uint64_t first, uint64_t last, uint64_t flags);
enum { RUN_FD_PLACES = 64 };
extern uint32_t run_fd_base; /* read by the gate */
void run_fd_init(void);
bool run_fd_is_refused(long nr, const uint64_t args[6]); /* the call is on a hidden descriptor */
/* A thread that has descriptors of its own is going to need those that are hidden. */
void run_fd_take_over(const run_thread *t);
void run_fd_seal(void); /* the hidden ones are not handed on by exec */

/* syscall_wait.c: a nudge has interrupted the call that the context is behind, with its registers as they were
 * (async-signal-safe); it is made again, by what is left of its time. */
void run_wait_interrupted(run_thread *, const weave_context *);
long run_wait_on(run_thread *, const long args[6]);
static inline bool run_is_nudged(const run_thread *t, long answer)
{
    return answer == RUN_RESTART && t->pending.present && run_signal_is_nudge(&t->pending.info);
}

/* --- worker.c; of the client: worker.h --- */
void run_worker_begin(run_thread *t) __attribute__((noreturn));
void run_worker_pass_on(const siginfo_t *info, void *uc); /* to the program; from a handler in a worker */
void run_workers_after_fork(void);                        /* lock held */
long run_sys_alone(run_thread *t, weave_context *c);

/* quiet.c: a call of Inlay's own that writes. What it writes in vain is no signal for the program. */
long run_call_quietly(long nr, long a, long b, long c, long d);
long run_write_quietly(int fd, const void *bytes, size_t size); /* perhaps less of it */

/* --- assembly (x86_64/kernel.S) --- */
/* The only way in which the runtime makes a call that may sleep on the program's behalf. The handler
 * knows the window from `check` to the instruction: a signal there makes it answer RUN_RESTART. */
long run_blocking_syscall(const bool *pending, long nr, const long args[6]);
extern const char run_blocking_check[], run_blocking_insn[], run_blocking_after[], run_blocking_interrupted[];
/* Copies from or to memory that may not be there; answers how many bytes were left. */
size_t run_safe_copy(void *to, const void *from, size_t size);
extern const char run_safe_copy_insn[], run_safe_copy_done[];
static inline bool run_in_safe_copy(uint64_t pc) /* it copies there: after a fault it goes on at `done` */
{
    return pc >= (uint64_t)(uintptr_t)run_safe_copy_insn && pc < (uint64_t)(uintptr_t)run_safe_copy_done;
}
/* rt_sigreturn, with the stack pointer of a handler that has just returned; `for_good`: Inlay is left too. */
void run_sigreturn_now(uint64_t sp, uint64_t tls_base) __attribute__((noreturn));
void run_sigreturn_for_good(uint64_t sp, const weave_context *before) __attribute__((noreturn));
/* Stores 0 to *busy and makes the exit call `nr` without touching any stack. */
void run_exit_raw(uint32_t *busy, long nr, long status) __attribute__((noreturn));

static inline bool run_read(void *to, uint64_t from, size_t size)
{
    return !run_safe_copy(to, (const void *)from, size);
}
static inline bool run_write(uint64_t to, const void *from, size_t size)
{
    return !run_safe_copy((void *)to, from, size);
}
/* Copies a string of the program; its length, or -EFAULT, -ENAMETOOLONG. */
long run_read_string(char *to, uint64_t from, size_t size);

/* --- the architecture's part (x86_64/special.c, x86_64/sigframe.c, x86_64/sigcontext.c, x86_64/settings.c) --- */
/* A fault of Inlay's own code, or of the tool's, that only the program's settings raise: the code goes on. */
bool run_settings_fault(run_thread *t, int signo, void *uc);
/* Makes what may only be executed readable for this thread, and the opposite. */
uint32_t run_rights_open(void);
void run_rights_close(uint32_t rights);
/* The trap behind an instruction that such a fault was at: it goes on as before. */
bool run_stepped_over(run_thread *t, int signo, const siginfo_t *info, void *uc);
/* The instruction at ctx.pc is one that the cache cannot hold: carries it out, or refuses it aloud. */
void run_special(run_thread *t);
/* This thread of execution takes block `t`; the tool's TLS stays what it is. */
void run_adopt_block(run_thread *t);
void run_leave_block(void); /* it has none any more */
/* The thread ran natively, with these registers: what of them woven code wants for itself. */
void run_bases_take(run_thread *, const weave_context *);
/* What more the kernel would copy. False: so that the child finds its block there is no way. */
bool run_bases_inherit(run_thread *child, const run_thread *t, uint64_t flags);
void run_sigframe_init(void);
/* The vector state (x86_64/sigvectors.c): a new thread's, that of a program's begin and of a handler's, a child's. */
size_t run_vector_room(void);
void run_vectors_begin(run_thread *t);
void run_vectors_init(run_thread *t);
void run_vectors_inherit(run_thread *child, const run_thread *t);
/* The kernel's frame at a signal of Inlay's tells which of the features that must be asked for the thread uses. */
void run_vectors_note(run_thread *t, const void *uc);
/* altstack.c. The kernel's, which is Inlay's: where the program's code runs natively it is taken away for the time of
 * a handler, since frames of faults in there may come anywhere. */
stack_t run_altstack_own(const run_thread *t);
bool run_altstack_disarms(void); /* false: the kernel cannot take it away by itself (SS_AUTODISARM) */
/* An exec takes the stack away, and not that it disarms itself: for that time, until `back`, the mode is the program's.
 */
void run_altstack_for_exec(const run_thread *t, bool back);
bool run_altstack_holds(const run_thread *t, uint64_t sp);
bool run_altstack_active(const run_thread *t, uint64_t sp);
/* Below which address the frame of a signal goes that comes at `sp`; bounded: it must end on the alternate stack. */
uint64_t run_altstack_top(const run_thread *t, const run_action *a, uint64_t sp, bool *bounded);
/* It becomes what a handler's frame says, whose code had `sp`. */
void run_altstack_take(run_thread *t, const stack_t *s, uint64_t sp);
/* Builds the frame the kernel would build and points `ctx` at the handler; `saved` is the mask to
 * return to. False: the stack cannot take it. */
bool run_sigframe_push(run_thread *t, int signo, const siginfo_t *info, const run_action *a, uint64_t saved);
/* The opposite: context, vector state, alternate stack; the mask goes to *mask. False: the frame, or its vector state,
 * is no good; of the latter the context and the mask have been taken all the same, as the kernel does. */
bool run_sigframe_pop(run_thread *t, uint64_t *mask);
void run_trap_set(run_thread *t, int signo, int code, uint64_t addr); /* for faults found by the runtime */
/* A handler has returned: where its frame names segments with which nothing can go on, the program is told. */
void run_segments_look(run_thread *t);

uint64_t run_uc_pc(const void *uc);
uint64_t run_uc_sp(const void *uc);
void run_uc_set_pc(void *uc, uint64_t pc);
void run_uc_set_sp(void *uc, uint64_t sp);
uint64_t *run_uc_mask(void *uc);
long run_uc_answer(const void *uc);
void run_uc_set_answer(void *uc, long answer); /* of the system call that was trapped */
bool run_uc_is_write(const void *uc);          /* the page fault was a write */
void run_uc_keep_trap(run_thread *t, const void *uc);
void run_uc_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out);
/* Does the counter stand behind the instruction that made the signal? */
bool run_uc_is_behind(const void *uc, int signo);
/* Such an instruction, at `app`, is done when its signal comes: where the program goes on. */
uint64_t run_after_trap(uint64_t app);
/* Registers of `spilled` and saved flags come from the thread's frame. */
void run_uc_unspill(const run_thread *t, weave_context *c, isa_regs spilled, bool flags_saved);

#endif
