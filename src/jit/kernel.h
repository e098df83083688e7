/* What the files on the kernel's side of the engine share: system calls, signals, threads, processes,
 * descriptors. The architecture's own part stands behind the functions at the end. */
#ifndef INL_JIT_KERNEL_H
#define INL_JIT_KERNEL_H

#include "jit/jit.h"

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

/* Signals that a fault raises. The kernel's mask never holds them while the program's code runs,
 * whatever the program asked for: Inlay's own faults (write-protected code, a blocked table of
 * indirect branches) must arrive. */
#define JIT_BIT(signo) (1ull << ((signo)-1))
#define JIT_FAULTS                                                                                                     \
    (JIT_BIT(SIGSEGV) | JIT_BIT(SIGBUS) | JIT_BIT(SIGILL) | JIT_BIT(SIGFPE) | JIT_BIT(SIGTRAP) | JIT_BIT(SIGSYS))
#define JIT_UNBLOCKABLE (JIT_BIT(SIGKILL) | JIT_BIT(SIGSTOP))

typedef struct jit_action { /* the kernel's struct sigaction */
    uint64_t handler, flags, restorer, mask;
} jit_action;

typedef struct jit_signals { /* what the program set; one for all threads that share handlers */
    inl_lock lock;
    uint32_t users;
    jit_action action[65];
} jit_signals;

/* Answers of a system call's handler that are not the program's. */
#define JIT_RESTART   INT64_MIN       /* a signal came first: the call has not been started */
#define JIT_NO_ANSWER (INT64_MIN + 1) /* the handler has set the whole context */

/* --- syscall.c --- */
enum { JIT_SYSCALLS = 512 }; /* numbers that are told apart */
typedef long jit_syscall_handler(jit_thread *t, weave_context *c);
typedef struct jit_syscall_row {
    uint16_t nr;
    const char *name;
    jit_syscall_handler *run;
} jit_syscall_row;
extern const jit_syscall_row jit_memory_syscalls[], jit_file_syscalls[], jit_signal_syscalls[], jit_process_syscalls[],
    jit_sending_syscalls[]; /* each ends with a row whose `run` is NULL */
void jit_syscalls_init(void);
/* Makes the call of `c` with its own arguments, or JIT_RESTART when a signal waits. */
long jit_pass(jit_thread *t, const weave_context *c);
long jit_pass_args(jit_thread *t, long nr, const long args[6]);

/* --- guard.c --- */
void jit_guard_keys(void); /* the program uses protection keys: pages are guarded whenever they can be */

/* --- dispatch.c --- */
inl_status jit_check_processor(inl_error *);
inl_status jit_first_thread(inl_error *);

/* --- signal.c --- */
void jit_kernel_mask_set(uint64_t mask);
bool jit_kills_by_default(int signo);
bool jit_signal_is_fault(int signo, const siginfo_t *info);
void jit_signal_die_of_bug(const char *where, int signo, uint64_t pc, uint64_t addr);
uint64_t jit_kernel_mask_all(void);                /* blocks everything; the mask before */
void jit_mask_apply(jit_thread *t);                /* the program's mask becomes the kernel's, but for faults */
jit_signals *jit_signals_clone(jit_signals *from); /* NULL when out of memory */
void jit_signals_release(jit_signals *);
void jit_signals_adopt_kernel(jit_signals *s);
void jit_signals_clear(jit_signals *); /* as CLONE_CLEAR_SIGHAND has it; the kernel's own too */

/* --- hung.c; async-signal-safe --- */
/* The pending signal waits for the tool's code: from now on `mask` lets those through that ask to end. */
void jit_hung_watch(jit_thread *t, uint64_t *mask);
/* A signal came while another waits; true: it has been seen to. `in_tool`: still in the tool's code, at pc. */
bool jit_hung_again(jit_thread *t, const siginfo_t *info, uint64_t pc, bool in_tool);
void jit_hung_end(jit_thread *t);              /* what waited is about to be delivered */
bool jit_hung_is_timer(const siginfo_t *info); /* Inlay's own; nothing for the program */

/* --- sending.c --- */
void jit_signal_send_back(const siginfo_t *info); /* into the kernel's queue of this thread, as it was */
/* Sent signals whose siginfo looks like a fault's are marked on their way through the kernel; false: it does
 * not. The opposite, for what has arrived: true: it was marked, so it was sent. */
bool jit_signal_mark(siginfo_t *info);
bool jit_signal_unmark(siginfo_t *info);
long jit_sys_queue(jit_thread *t, weave_context *c); /* the calls that send one */

/* Something is to be delivered before the program goes on. */
static inline bool jit_signal_waits(const jit_thread *t)
{
    return t->pending.present || t->fault.present || t->held_set & ~t->sigmask;
}

/* --- thread.c --- */
void jit_own(uint64_t low, size_t size, bool add); /* jit_memory_own; takes the lock */
void jit_thread_link(jit_thread *t);               /* lock held */
void jit_thread_begin(jit_thread *t);              /* in the new thread, called by assembly */
void jit_threads_after_fork(jit_thread *t);

/* --- process.c --- */
typedef struct jit_clone_args { /* the kernel's struct clone_args, with room for what is to come */
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    uint64_t rest[24];
} jit_clone_args;
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ull
#endif
/* What Inlay sees to itself in the child: where thread-local storage is, and handlers, which are virtual. */
#define JIT_CLONE_OURS (CLONE_SETTLS | CLONE_CLEAR_SIGHAND)
/* A child with its own memory; `size` is of clone3's structure, 0: by clone. */
long jit_fork(jit_thread *t, const jit_clone_args *a, size_t size);
/* All signals blocked and none waiting: true. False: the call must start anew, after delivery. */
bool jit_quiet_begin(jit_thread *t);
void jit_quiet_end(jit_thread *t);
/* The callbacks at the process's end, once; the loser of a race never returns. */
void jit_process_end(jit_thread *t, int status, int signo);

/* --- letgo.c --- */
/* The process goes on natively from `ctx`; returns only where that is not possible. */
void jit_let_go(jit_thread *t);

/* --- exec.c --- */
bool jit_is_traced(void); /* somebody has attached to this process by ptrace */

/* --- procfile.c, maps.c, fd.c --- */
/* By a path's last part: which of the files of /proc that tell of Inlay it may be; -1: none of them. */
int jit_proc_kind(const char *path);
/* `fd` has been opened by a path of such a kind: if it is the process's own file, puts one in its place
 * that leaves Inlay out. The descriptor. */
long jit_proc_replace(int fd, int kind, int flags);
/* What `fd` is, when it is a file or folder below the process's own in /proc: the path from there on. */
bool jit_proc_own_path(int fd, char *out, size_t size);
/* The kernel's files of this process, wherever the program's root is now: "self/maps" ... */
void jit_proc_init(void);
long jit_proc_open(const char *below);
bool jit_proc_fd_path(int fd, char *out, size_t size); /* what a descriptor shows; false: cut off, or nothing */
bool jit_proc_put(int out, const char *text, size_t n);
bool jit_maps_put(int out, char *text);
bool jit_is_break(uint64_t low, uint64_t high); /* a part of the program break that Inlay emulates */
bool jit_smaps_put(int out, char *text);
/* Is `fd` the folder of this process's descriptors? What getdents64 answers there, less the hidden ones. */
bool jit_lists_descriptors(int fd);
long jit_list_descriptors(jit_thread *t, weave_context *c);
long jit_close_range(jit_thread *t, uint64_t first, uint64_t last, uint64_t flags);
enum { JIT_FD_PLACES = 64 };
extern uint32_t jit_fd_base; /* read by the gate */
void jit_fd_init(void);
bool jit_fd_is_refused(long nr, const uint64_t args[6]); /* the call is on a hidden descriptor */
void jit_fd_seal(void);                                  /* the hidden ones are not handed on by exec */

/* --- assembly (x86_64/kernel.S) --- */
/* The only way in which the runtime makes a call that may sleep on the program's behalf. The handler
 * knows the window from `check` to the instruction: a signal there makes it answer JIT_RESTART. */
long jit_blocking_syscall(const bool *pending, long nr, const long args[6]);
extern const char jit_blocking_check[], jit_blocking_insn[], jit_blocking_after[], jit_blocking_interrupted[];
/* Copies from or to memory that may not be there; answers how many bytes were left. */
size_t jit_safe_copy(void *to, const void *from, size_t size);
extern const char jit_safe_copy_insn[], jit_safe_copy_done[];
/* rt_sigreturn, with the stack pointer of a handler that has just returned; `for_good`: Inlay is left too. */
void jit_sigreturn_now(uint64_t sp, uint64_t fs_base) __attribute__((noreturn));
void jit_sigreturn_for_good(uint64_t sp, uint64_t fs_base, uint64_t gs_base) __attribute__((noreturn));
/* Stores 0 to *busy and makes the exit call `nr` without touching any stack. */
void jit_exit_raw(uint32_t *busy, long nr, long status) __attribute__((noreturn));

static inline bool jit_read(void *to, uint64_t from, size_t size)
{
    return !jit_safe_copy(to, (const void *)from, size);
}
static inline bool jit_write(uint64_t to, const void *from, size_t size)
{
    return !jit_safe_copy((void *)to, from, size);
}
/* Copies a string of the program; its length, or -EFAULT, -ENAMETOOLONG. */
long jit_read_string(char *to, uint64_t from, size_t size);

/* --- the architecture's part (x86_64/special.c, x86_64/sigframe.c, x86_64/sigcontext.c, x86_64/settings.c) --- */
/* A fault of Inlay's own code, or of the tool's, that only the program's settings raise: the code goes on. */
bool jit_settings_fault(jit_thread *t, int signo, void *uc);
/* Makes what may only be executed readable for this thread, and the opposite. */
uint32_t jit_rights_open(void);
void jit_rights_close(uint32_t rights);
/* The trap behind an instruction that such a fault was at: it goes on as before. */
bool jit_stepped_over(jit_thread *t, int signo, const siginfo_t *info, void *uc);
/* The instruction at ctx.pc is one that the cache cannot hold: carries it out, or refuses it aloud. */
void jit_special(jit_thread *t);
void jit_sigframe_init(void);
/* The vector state (x86_64/sigvectors.c): a new thread's, that of a program's begin and of a handler's, a child's. */
size_t jit_vector_room(void);
void jit_vectors_begin(jit_thread *t);
void jit_vectors_init(jit_thread *t);
void jit_vectors_inherit(jit_thread *child, const jit_thread *t);
/* The kernel's frame at a signal of Inlay's tells which of the features that must be asked for the thread uses. */
void jit_vectors_note(jit_thread *t, const void *uc);
/* The program has been granted some: from now on they are saved. */
void jit_vectors_permitted(void);
/* Builds the frame the kernel would build and points `ctx` at the handler; `saved` is the mask to
 * return to. False: the stack cannot take it. */
bool jit_sigframe_push(jit_thread *t, int signo, const siginfo_t *info, const jit_action *a, uint64_t saved);
/* The opposite: context, vector state, alternate stack; the mask goes to *mask. */
bool jit_sigframe_pop(jit_thread *t, uint64_t *mask);
bool jit_altstack_active(const jit_thread *t, uint64_t sp);
long jit_arch_prctl(jit_thread *t, int option, uint64_t value);
void jit_trap_set(jit_thread *t, int signo, uint64_t addr); /* for faults found by the runtime */

uint64_t jit_uc_pc(const void *uc);
void jit_uc_set_pc(void *uc, uint64_t pc);
uint64_t *jit_uc_mask(void *uc);
void jit_uc_set_answer(void *uc, long answer); /* of the system call that was trapped */
bool jit_uc_is_write(const void *uc);          /* the page fault was a write */
void jit_uc_keep_trap(jit_thread *t, const void *uc);
void jit_uc_context(const void *uc, jit_thread *t, uint64_t fs_base, weave_context *out);
/* The instruction that trapped at `app` is done when its signal comes: where the program goes on. */
uint64_t jit_after_trap(uint64_t app);
/* Registers of `spilled` and saved flags come from the thread's frame. */
void jit_uc_unspill(const jit_thread *t, weave_context *c, uint32_t spilled, bool flags_saved);
/* At the gate, before or right after the system call: the program's context at `pc`. */
void jit_uc_gate_context(const void *uc, jit_thread *t, uint64_t fs_base, uint64_t pc, weave_context *out);
/* An indirect branch that hit the blocked table: the program's context at the branch's target. */
void jit_uc_ibl_context(const void *uc, jit_thread *t, uint64_t fs_base, weave_context *out);

#endif
