/* A thread of the program: its block of memory, which woven code reaches at any time.
 *
 *   block + 0                      struct run_thread (begins with the weave_frame)
 *   block + WEAVE_IBL              a table of the JIT engine's (jit/ibl.c)
 *   block + WEAVE_COUNTERS         counters
 *
 * Elsewhere: the private stack (runtime code and analysis routines run on it), and the stack on
 * which the kernel delivers signals to Inlay. Each has a guard page.
 *
 * Where a thread is, at any time (`where`):
 *   RUN_IN_CODE     in the program's code, as the engine has it: registers are the program's, by the code's map
 *   RUN_IN_RUNTIME  in the dispatcher or below; the program's registers are in `ctx`; FS is the tool's
 * An analysis routine is RUN_IN_CODE with frame.in_tool set.
 */
#ifndef INL_RUN_THREAD_H
#define INL_RUN_THREAD_H

#include "base/arch.h"
#include "base/lock.h"
#include "base/region.h"
#include INL_ARCH_HEADER(weave, frame)

#include <signal.h>
#include <stdbool.h>

enum { RUN_IN_CODE = 0, RUN_IN_RUNTIME = 1 };
enum { RUN_HELD = 6 };
enum { RUN_ENGINE_BYTES = 448 };

/* Why the cache was left; set by the stub that leaves it (see dispatch.S). */
enum run_leave {
    RUN_LEAVE_EXIT = 0,     /* direct exit: leave_arg = index of the exit record */
    RUN_LEAVE_INDIRECT,     /* indirect branch missed: ctx.pc = target */
    RUN_LEAVE_SYSCALL,      /* at a syscall: ctx.pc = address BEHIND it, leave_arg = address of it */
    RUN_LEAVE_SIGNAL,       /* the signal handler put the whole context into ctx */
    RUN_LEAVE_START,        /* a new thread or the program's start */
    RUN_LEAVE_SPECIAL,      /* an instruction the runtime must emulate: ctx.pc = its address */
    RUN_LEAVE_STALE,        /* the fragment of ctx.pc found its code changed; leave_arg: it `continues` */
    RUN_LEAVE_STEP,         /* the instruction at ctx.pc writes to a page whose translations, its own among
                               them, have been dropped for it: it runs alone */
    RUN_LEAVE_SYSCALL_DONE, /* without a cache: the call of the number in r11's slot has been made */
    RUN_LEAVE_FLAGS,   /* the instruction at ctx.pc would make the program step itself: the runtime carries it out */
    RUN_LEAVE_SECTION, /* about a restartable sequence (jit/sections.c); leave_arg: what */
};

typedef struct run_pending { /* one asynchronous signal, taken by our handler, not yet delivered */
    bool present;
    bool passes; /* the thread enters code nevertheless: soon it comes back */
    siginfo_t info;
    uint64_t mask;  /* the mask under which it arrived (a temporary one, of sigsuspend ...) */
    bool temporary; /* `mask` is not the program's lasting one */
} run_pending;

/* A system call's registers as the program has set them: what a client changes is for the kernel alone (abi.h). */
typedef struct run_asked {
    uint64_t sp, number, args[6];
} run_asked;

enum { RUN_KILLERS = 4 };
typedef struct run_hung { /* hung.c: `pending` came while the tool's code was running */
    bool watched, has_timer;
    int timer;
    int64_t since; /* milliseconds */
    uint32_t again_set;
    siginfo_t again[RUN_KILLERS]; /* what came meanwhile, of those that ask to end */
} run_hung;

/* A procedure of the program's that the tool calls (tool/wrap.c); in a list of the thread's, the innermost first. */
typedef struct run_call {
    struct run_call *outer;
    uint64_t frame;  /* where on the program's stack the return address is, */
    uint64_t behind; /* which is this */
    uint64_t entry;
    const uint64_t *stack; /* arguments behind those in registers, so many */
    unsigned words;
    bool waits;   /* it is under way */
    bool goes_on; /* behind it the routine goes on to the code that called it; the engine keeps of that: */
    uint64_t kept[2];
    uint64_t begin_sp, sp; /* the stack pointer with which it begins, and comes back */
} run_call;

/* A call that waits for a span of time (syscall_wait.c), which ends at `until`, in nanoseconds of its clock. */
typedef struct run_waiting {
    bool interrupted; /* by a nudge: the same call goes on */
    uint64_t pc, sp, args[6];
    int64_t until;
} run_waiting;

typedef struct run_divert { /* of calls that are made outside of some code: divert.c */
    bool on;
    uint64_t low, size, selector;
} run_diversion;

typedef struct run_fault { /* a fault of the program's own code, to deliver before anything else */
    bool present;
    siginfo_t info;
} run_fault;

typedef struct run_thread {
    union { /* gs:0 */
        weave_frame frame;
        uint8_t frame_room[WEAVE_FRAME_SIZE];
    };
    /* --- gs:WEAVE_FRAME_SIZE: offsets used by assembly are in x86_64/offsets.h, checked statically */
    weave_context ctx; /* the program's registers while RUN_IN_RUNTIME */
    uint64_t where;
    uint64_t leave, leave_arg;
    uint64_t runtime_stack;                /* top of the private stack for the dispatcher */
    uint64_t dispatch_entry;               /* address of run_leave_code: stubs do `jmp gs:[this]` */
    uint64_t enter_pc;                     /* execute address to jump to when the cache is entered */
    struct run_thread *next;               /* list of threads, under the process's lock */
    void *tls;                             /* the private libc's TLS block of this thread */
    void *client;                          /* the tool part's per-thread data */
    uint64_t syscall_gate;                 /* address of the syscall gate; rewritten code knows the offset */
    run_pending pending;                   /* an asynchronous signal that waits for the next boundary */
    uint64_t engine[RUN_ENGINE_BYTES / 8]; /* the engine's own: jit_of, moved_of */

    int tid;
    inl_room room;         /* stacks, block and counters: thread.c */
    uint32_t counter_room; /* counters that are mapped; the others are 0 */
    void *stack_low;
    size_t stack_size;
    void *signal_stack;
    size_t signal_stack_size;
    bool is_vfork_child;
    bool has_ended; /* no longer counted; under the process's lock */

    /* signals (signal*.c) */
    uint64_t sigmask;           /* the program's mask, while we run with more blocked */
    bool clears_signals;        /* begins without its parent's handlers (CLONE_CLEAR_SIGHAND) */
    bool mask_is_ours;          /* the kernel's mask is wider than `sigmask` now */
    bool execs;                 /* the mask is the program's though the thread is in the runtime: an exec is due */
    stack_t altstack;           /* the program's sigaltstack, virtual */
    uint64_t clear_tid, robust; /* where the kernel writes when the thread has ended; its list of mutexes */

    run_call *calls;
    run_fault fault;
    run_hung hung;
    siginfo_t held[RUN_HELD]; /* sent signals of the synchronous kind that the program blocks */
    uint64_t held_set;        /* mask of those present in `held` */
    uint64_t temp_mask;       /* the mask of ppoll, sigsuspend ... while it runs */
    bool temp_active;
    uint64_t trapno, trap_err, trap_addr; /* of the last fault: what the kernel shows in every frame */
    uint16_t returns_to;                  /* x86-64: the code segment that the last handler's frame named */
    const struct run_filter *filters;     /* of system calls, that the program installed; the newest first */
    struct run_signals *signals;          /* dispositions; shared by the threads of a process */
    run_diversion divert;
    run_waiting waiting;
    uint32_t busy;     /* 0 from the moment an ended thread no longer uses its stacks */
    bool parent_waits; /* vfork: the parent sleeps and takes the block back afterwards */
    void *exec_argv;   /* of an exec in a process that shares memory, freed by the parent */

    bool no_cycles;   /* the program has the time-stamp counter switched off: they are not counted */
    uint64_t dynamic; /* features that must be asked for and that the thread has used */
    bool unaligned;   /* an unaligned access is stepped over; the mask before */
    uint64_t unaligned_mask;
    struct run_worker *worker; /* it is none of the program's, but this one's (worker.h); NULL: it is */
} run_thread;

#include INL_ARCH_HEADER(run, self) /* run_self: the block of the thread that runs */

#endif
