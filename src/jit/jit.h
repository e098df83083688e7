/* The JIT engine: runs the program from a code cache.
 *
 *     translate.c   superblock at an application address -> run -> client -> weaver -> fragment
 *     lower.c       control transfers: direct exits and their stubs, calls, indirect branches, returns,
 *                   syscalls (the engine's side of weave_engine)
 *     cache.c       arenas near the modules, two views of one memory (write, execute), growth, drop
 *     dump.c        the stages of a translation as text
 *     fragment.c    fragments: by application address, by cache address; links; map lookup
 *     ibl.c         the two tables of indirect-branch targets
 *     memory.c      what of the address space is executable, who wrote to it, what must be dropped
 *     dispatch.S    the border between translated code and the runtime
 *     dispatch.c    the loop: why was the cache left, what next
 *     syscall*.c    system calls that the engine must see, hide or change
 *     signal*.c     our handler, the program's frames, sigreturn
 *     thread.c      thread blocks, clone, exit
 *     process.c     fork, vfork, exec, exit
 *
 * One lock, `jit.lock`, guards all shared state; translation, the client's callbacks and the private
 * libc run under it or in JIT_IN_RUNTIME with the tool's FS base. Signal handlers never take it.
 */
#ifndef INL_JIT_JIT_H
#define INL_JIT_JIT_H

#include "base/error.h"
#include "base/lock.h"
#include "base/map.h"
#include "image/module.h"
#include "jit/thread.h"
#include "weave/weave.h"

typedef struct jit_exec_plan {
    int fd;      /* of the tool's file, for execveat(AT_EMPTY_PATH) */
    char **argv; /* the launcher's arguments: one malloc'ed block, strings and all */
} jit_exec_plan;

/* What the tool part hangs into the engine. Any may be NULL. All but `instrument_wanted` are called
 * in JIT_IN_RUNTIME; those marked (L) with the lock held. */
typedef struct jit_client {
    void *arg;
    void (*instrument)(void *arg, weave_run *run); /* (L) add snippets */
    void (*module_loaded)(void *arg, module *m);   /* (L) */
    void (*module_gone)(void *arg, module *m);     /* (L) */
    void (*thread_start)(void *arg, jit_thread *t);
    void (*thread_end)(void *arg, jit_thread *t);
    /* May change ctx (number in rax, arguments); true: skip the call, result is already in rax. */
    bool (*syscall_enter)(void *arg, jit_thread *t, weave_context *ctx, long nr);
    void (*syscall_exit)(void *arg, jit_thread *t, weave_context *ctx, long nr);
    void (*signal)(void *arg, jit_thread *t, int signo, const siginfo_t *info, weave_context *ctx);
    void (*fork_before)(void *arg, jit_thread *t);
    void (*fork_parent)(void *arg, jit_thread *t, int child);
    void (*fork_child)(void *arg, jit_thread *t);
    /* The program is about to exec `path`. Fills in how to run it under the tool (see jit_exec_plan);
     * false: run it natively. */
    bool (*exec)(void *arg, jit_thread *t, const char *path, char *const *argv, char *const *envp,
                 struct jit_exec_plan *plan);
    /* The process ends: once, in the thread that ends it; signo != 0: dies by it. */
    void (*exit)(void *arg, jit_thread *t, int status, int signo);
    bool wants_syscalls; /* syscall_enter/exit for every call, no native gate */
    uint32_t counters;   /* so many are used from the start; more only under the JIT */
    /* The private libc's thread-local block for one more thread (made in the parent), its FS base. */
    void *(*tls_new)(void *arg);
    void (*tls_free)(void *arg, void *tls);
    uint64_t (*tls_fs_base)(void *arg, void *tls);
    /* Takes (phase 0) what the private libc and the client must not hold across a fork (malloc's
     * locks ...), releases it in the parent (1) and in the child (2). (L) */
    void (*fork_lock)(void *arg, int phase);
    /* What a link of /proc (its path is absolute) is to show instead of what the kernel says: fills
     * `out`, returns its length, 0 to leave it. For a program that Inlay loaded without ptrace. */
    size_t (*proc_link)(void *arg, const char *path, char *out, size_t size);
    /* Shows the user one line: something about the program that Inlay cannot do. */
    void (*say)(void *arg, const char *text);
} jit_client;

typedef struct jit_options {
    uint32_t stress; /* JIT_STRESS_* */
    weave_options weave;
    size_t arena_bytes;                   /* size of one arena's reservation, 0 for the default */
    size_t cache_limit;                   /* flush all above this, 0 for none */
    unsigned max_block_insns, max_blocks; /* limits of a superblock, 0 for the defaults */
    bool chain_jumps;                     /* follow direct jumps within a superblock */
    uint32_t dump;                        /* JIT_DUMP_*: stages of each translation to show */
    uint64_t dump_low, dump_high;         /* only of runs that have code in there; high 0: of all */
} jit_options;
enum {
    JIT_DUMP_DECODED = 1,
    JIT_DUMP_SNIPPETS = 2,
    JIT_DUMP_LOWERED = 4,
    JIT_DUMP_BYTES = 8,
};
enum {
    JIT_STRESS_TINY_CACHE = 1, /* small arenas: growth and flush happen all the time */
    JIT_STRESS_FLUSH = 2,      /* drop every translation at each dispatch (throttled: every 8th) */
    JIT_STRESS_RANDOM_REGS = 4,
    JIT_STRESS_NO_LINK = 8,    /* every exit goes through the dispatcher */
    JIT_STRESS_ONE_BLOCK = 16, /* no superblocks */
    JIT_STRESS_CHECK = 1 << 8, /* code that could be written to is checked, never guarded */
};

/* What the injection hands over: the program's registers at its entry, and what is not its own. */
typedef struct jit_start_state {
    weave_context ctx;              /* at the entry of the program or its interpreter; FS/GS bases 0 */
    uint64_t tool_low, tool_high;   /* the tool's own mapping */
    uint64_t stack_low, stack_high; /* the tool's first stack */
    uint64_t sigmask;
    uint64_t brk_emulated; /* no-ptrace loading: nonzero */
} jit_start_state;

/* Fragments. */
typedef struct jit_exit { /* a direct exit of a fragment */
    uint64_t target;      /* application address */
    struct jit_fragment *from;
    struct jit_fragment *to;  /* linked to, or NULL */
    struct jit_exit *next_in; /* in to's list of incoming exits */
    uint32_t rel32_at;        /* offset of the patchable displacement from from->exec */
    uint32_t stub_at;         /* offset of its stub */
    bool continues;           /* the run was cut for length here */
} jit_exit;

typedef struct jit_fragment {
    uint64_t app;     /* entry address */
    uint64_t exec;    /* execute address of its body (register state: the program's) */
    uint64_t landing; /* execute address for indirect entry (see ibl.c), 0 if none yet */
    struct jit_arena *arena;
    uint32_t size;          /* bytes of code from its start, landing prologue included */
    uint32_t start_to_exec; /* bytes of landing prologue in front of exec */
    uint32_t exit_count, insn_count, map_bytes;
    uint64_t app_low, app_high; /* all application code it covers lies in here */
    jit_exit *exits;
    jit_exit *incoming;
    const uint8_t *map;        /* encoded weave_map_entry list (fragment.c) */
    const weave_fault *faults; /* of the weaver; offsets from `start` */
    const weave_count *counts;
    uint16_t fault_count, count_count;
    uint32_t hold;        /* threads that wait for it to be left: its exits stay unlinked */
    uint16_t check_bytes; /* of code at its entry which compares: between it and the body proper */
    bool dropped;
    bool continues; /* entered by an exit of a run that was cut for length */
} jit_fragment;

/* What stands in the place of the code cache when the program's own code runs natively (the rewrite
 * engine): only what goes through the gate comes to the runtime. In the runtime all signals but faults are
 * blocked; the program's mask waits in t->sigmask, and in t->native_mask for the gate. */
struct jit_action;
typedef struct jit_native {
    uint64_t (*dispatch)(jit_thread *t);                   /* serves t->leave; the address to go to with ctx loaded */
    void (*install)(int signo, const struct jit_action *); /* tells the kernel what it comes down to */
    void (*gate)(void);                                    /* goes into t->syscall_gate */
    const char *const *program_calls; /* behind its system calls that are the program's; NULL ends them */
} jit_native;

struct jit_arena;
typedef struct jit_state {
    inl_lock lock;
    const jit_native *native; /* NULL under the JIT */
    jit_client client;
    jit_options options;
    jit_start_state start;
    module_set *modules;
    jit_thread *threads;      /* all live threads */
    jit_thread *free_threads; /* blocks to reuse */
    uint32_t thread_count, next_thread_number;
    uint64_t dead_counters_high; /* counters in use: [0, high) */
    uint64_t *dead_counters;     /* sums of ended threads */
    inl_room dead_room;          /* they lie in; it has as many as a thread that has ended had */
    uint64_t epoch;              /* grows with each flush; arenas of an older epoch are freed when no
                                    thread is in it */
    struct jit_arena *arenas, *retired;
    struct jit_memory *memory;
    struct jit_signals *signals;
    bool exiting, born_traced;
    int pid;
} jit_state;
extern jit_state jit; /* the engine is one a process: assembly and handlers must find it */

/* --- native.c --- */
/* jit_init for an engine without a cache: `start->ctx` is where the program goes on, `start->sigmask` its
 * mask. Then jit_native_run never returns. */
inl_status jit_native_init(const jit_native *, const jit_client *, const jit_start_state *, inl_error *);
void jit_native_run(void) __attribute__((noreturn));

/* --- life (dispatch.c) --- */
/* Sets the engine up in this process; the caller is the first thread, on the tool's own stack, with
 * the tool's FS base. Then jit_run never returns. */
inl_status jit_init(const jit_client *, const jit_options *, const jit_start_state *, inl_error *);
void jit_run(void) __attribute__((noreturn));
/* Called by jit_leave_cache (dispatch.S) on the private stack; returns the execute address to enter
 * the cache at (registers are loaded from ctx). */
uint64_t jit_dispatch(jit_thread *t);
/* One line to the user, not from a signal handler. */
void jit_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- translate.c --- */
/* The fragment for `app`, translated when needed (lock held). NULL: no code there (the program must
 * get SIGSEGV at that address) with *fault_signo, *fault_code set. */
jit_fragment *jit_lookup_or_translate(jit_thread *t, uint64_t app, bool indirect, int *fault_signo, int *fault_code);

/* --- fragment.c --- */
jit_fragment *jit_fragment_at(uint64_t app);        /* or NULL; lock held */
jit_fragment *jit_fragment_of_cache(uint64_t exec); /* async-signal-safe; NULL: not in a fragment */
/* What the program's state is at cache address `exec` of `f`: index of the instruction, filled entry.
 * `*in_snippet`: code of snippets before the instruction is running. async-signal-safe. */
bool jit_fragment_map(const jit_fragment *f, uint64_t exec, weave_map_entry *entry, bool *in_snippet);
/* The instruction at `exec` faulted: what counters hold in advance for those that did not execute, see
 * weave_undo. async-signal-safe. */
void jit_fragment_undo(const jit_fragment *f, uint64_t exec, bool begun,
                       void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg);
void jit_link(jit_exit *, jit_fragment *to);      /* lock held */
void jit_unlink_exits(jit_fragment *);            /* all its direct exits go to their stubs; async-signal-safe */
void jit_drop_fragment(jit_fragment *);           /* lock held: unreachable from now on */
void jit_drop_range(uint64_t low, uint64_t high); /* lock held: all that cover application code in it */
void jit_flush_all(void);                         /* lock held */

/* --- ibl.c --- */
void jit_ibl_init_thread(jit_thread *);
void jit_ibl_add(jit_fragment *);    /* lock held: to the second-level table */
void jit_ibl_remove(jit_fragment *); /* lock held: from both, in all threads */
/* For a pending signal: make every indirect branch of this thread trap; undo. async-signal-safe. */
void jit_ibl_block(jit_thread *);
void jit_ibl_unblock(jit_thread *);

/* --- cache.c --- */
inl_status jit_cache_init(inl_error *);
bool jit_cache_contains(uint64_t addr); /* any address Inlay's cache owns; async-signal-safe */
/* Around a fork, lock held: the copy of all cache memory for the child (or none: it is empty then); done with in
 * the parent; taken in the child. */
void jit_cache_fork_prepare(void);
void jit_cache_fork_parent(void);
void jit_cache_fork_child(void);

/* --- memory.c: the program's address space --- */
void jit_memory_init(void);
/* After the call succeeded (lock held). */
void jit_memory_mapped(uint64_t addr, uint64_t size, int prot, int flags, int fd, uint64_t offset);
void jit_memory_unmapped(uint64_t addr, uint64_t size);
void jit_memory_protected(uint64_t addr, uint64_t size, int prot);
/* Before translating code on [addr, addr+size): is it executable for the program; arranges that a
 * later write to it is noticed, or sets *check: the code must be compared at each entry. Returns
 * readable+executable bytes available from addr (0: fault). */
size_t jit_memory_code(uint64_t addr, bool *check);
/* A write fault at `addr` on a page we protected: drops its translations, gives the program its
 * write permission back; false: not ours, it is the program's own fault. async-signal context, takes
 * care of locking itself. */
bool jit_memory_write_fault(uint64_t addr);
int jit_memory_prot(uint64_t addr);    /* what the program believes it to be (lock held) */
bool jit_memory_shared(uint64_t addr); /* mapped MAP_SHARED (lock held) */
/* Does [low, high) touch memory that is Inlay's own (cache, tool, stacks, blocks)? */
bool jit_memory_is_ours(uint64_t low, uint64_t high);
void jit_memory_own(uint64_t low, uint64_t high, bool add); /* registers Inlay's own ranges */

/* --- syscall.c --- */
/* Carries out the system call in t->ctx (rax = number; ctx.pc behind it; leave_arg = its address). */
void jit_syscall(jit_thread *t);
/* Bit set: the call may run in the native gate. Read by assembly, which finds the words through jit_gate_calls. */
extern uint64_t jit_native_syscalls[8];
extern const uint64_t *jit_gate_calls;
void jit_syscall_keep(long nr);   /* from now on the gate does not make it */
void jit_syscalls_guard(bool on); /* on: of those, only the calls that write nothing */

/* --- guard.c --- */
void jit_guard_call(long nr, const uint64_t args[6]); /* about to be made: where it may write nothing is guarded */
void jit_guard_own_write(uint64_t addr);        /* code has written to its own page, and will again: that is checked */
void jit_guard_no_more(void);                   /* the kernel may write at any time: code is checked from now on */
void jit_guard_thread_end(const jit_thread *t); /* likewise for what the kernel writes when a thread has ended */

/* --- signal.c --- */
void jit_signals_init(void);
void jit_signals_init_thread(jit_thread *t);
/* Called by the dispatcher before it enters the cache, lock not held: delivers a pending signal by
 * building its frame and changing ctx. Returns true when ctx changed. */
bool jit_signal_deliver_pending(jit_thread *t);
/* Delivers a fault that the runtime found out itself (no code at pc, bad frame...). */
void jit_signal_raise(jit_thread *t, int signo, int code, uint64_t addr);
long jit_sys_sigaction(jit_thread *t, int signo, uint64_t act, uint64_t old, uint64_t size);
long jit_sys_sigaltstack(jit_thread *t, uint64_t ss, uint64_t old);
void jit_sys_sigreturn(jit_thread *t);
void jit_signals_fork_child(jit_thread *t);

/* --- thread.c --- */
jit_thread *jit_thread_new(inl_error *); /* block, stacks, TLS; not yet in the list */
void jit_thread_free(jit_thread *);
long jit_sys_clone(jit_thread *t, bool is_clone3);                         /* clone, clone3, fork, vfork, from ctx */
void jit_thread_exit(jit_thread *t, int status) __attribute__((noreturn)); /* the exit system call */
uint64_t jit_counter_sum(uint32_t index);     /* over live and ended threads; takes the lock */
uint64_t jit_counter_sum_now(uint32_t index); /* without */
static inline uint64_t jit_counter_of(const jit_thread *t, uint32_t index)
{
    const uint64_t *counters = (const uint64_t *)((const char *)t + WEAVE_COUNTERS);
    return index < t->counter_room ? __atomic_load_n(&counters[index], __ATOMIC_RELAXED) : 0;
}
/* `addr` lies behind the counters of `t` that are mapped: now they go as far. async-signal-safe; false: it does
 * not, or there is no memory. */
bool jit_counters_reach(jit_thread *t, uint64_t addr);
void jit_counters_reset(void); /* all to zero (fork child) */

/* --- process.c --- */
void jit_process_exit(jit_thread *t, int status) __attribute__((noreturn)); /* exit_group */
void jit_process_die(jit_thread *t, int signo) __attribute__((noreturn));
long jit_sys_execve(jit_thread *t, int dirfd, uint64_t path, uint64_t argv, uint64_t envp, int flags);
void jit_fork_child(jit_thread *t); /* in the child: own cache, locks, one thread, tid */

/* --- descriptors Inlay keeps (fd.c): high numbers, hidden from the program --- */
int jit_fd_hide(int fd); /* moves it to a hidden number; -errno */
bool jit_fd_is_hidden(int fd);

/* --- dispatch.S --- */
void jit_leave_cache(void);                                    /* stubs jump here through gs */
void jit_enter_cache(jit_thread *t) __attribute__((noreturn)); /* from ctx, to t->enter_pc */
/* The signal handler sets a thread's rip to this (anything else of its registers but GS and the vector
 * state is of no matter) after filling ctx and leave: saves the vector state, goes to the dispatcher. */
void jit_redispatch(void);
void jit_ibl_miss(void); /* rcx = target; program's rcx, rdx in their slots */
void jit_syscall_gate(void);
extern const char jit_gate_check[], jit_gate_syscall[], jit_gate_after[]; /* the gate's window */
extern const char jit_gate_stack[], jit_gate_flags[]; /* in it: from here on rsp is in its slot, flags in r11 */
extern const char jit_enter_begin[], jit_enter_end[]; /* window after the pending check */
void jit_signal_entry(int, siginfo_t *, void *);      /* what the kernel calls: swaps FS, calls jit_signal_handler */
void jit_signal_handler(int signo, siginfo_t *info, void *ucontext, uint64_t fs_base); /* signal.c */
void jit_signal_restorer(void);
/* Raw clone whose child starts on block `child` (registers from child->ctx) and never returns here.
 * Returns the kernel's answer in the parent. For fork without CLONE_VM `child` is the caller's own. */
long jit_raw_clone(long nr, long a, long b, long c, long d, long e, jit_thread *child);

#endif
