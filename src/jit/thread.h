/* A thread of the program under the JIT: its block of memory, reached through GS.
 *
 *   block + 0                      struct jit_thread (begins with the weave_frame)
 *   block + WEAVE_IBL              65536 execute addresses, indexed by the low 16 bits of an
 *                                  indirect branch's target; empty entries hold the miss routine
 *   block + WEAVE_COUNTERS         counters
 *
 * Elsewhere: the private stack (runtime code and analysis routines run on it), and the stack on
 * which the kernel delivers signals to Inlay. Each has a guard page.
 *
 * Where a thread is, at any time (`where`):
 *   JIT_IN_CACHE    in translated code, registers are the program's (map of the fragment)
 *   JIT_IN_RUNTIME  in the dispatcher or below; the program's registers are in `ctx`; FS is the tool's
 * An analysis routine is JIT_IN_CACHE with frame.in_tool set.
 */
#ifndef INL_JIT_THREAD_H
#define INL_JIT_THREAD_H

#include "base/lock.h"
#include "base/region.h"
#include "weave/x86_64/frame.h"

#include <signal.h>
#include <stdbool.h>

enum { JIT_IN_CACHE = 0, JIT_IN_RUNTIME = 1 };
enum { JIT_HELD = 6 };

/* Why the cache was left; set by the stub that leaves it (see dispatch.S). */
enum jit_leave {
    JIT_LEAVE_EXIT = 0,     /* direct exit: leave_arg = index of the exit record */
    JIT_LEAVE_INDIRECT,     /* indirect branch missed: ctx.pc = target */
    JIT_LEAVE_SYSCALL,      /* at a syscall: ctx.pc = address BEHIND it, leave_arg = address of it */
    JIT_LEAVE_SIGNAL,       /* the signal handler put the whole context into ctx */
    JIT_LEAVE_START,        /* a new thread or the program's start */
    JIT_LEAVE_SPECIAL,      /* an instruction the runtime must emulate: ctx.pc = its address */
    JIT_LEAVE_STALE,        /* the fragment of ctx.pc found its code changed; leave_arg: it `continues` */
    JIT_LEAVE_STEP,         /* the instruction at ctx.pc writes to a page whose translations, its own among
                               them, have been dropped for it: it runs alone */
    JIT_LEAVE_SYSCALL_DONE, /* without a cache: the call of the number in r11's slot has been made */
};

typedef struct jit_pending { /* one asynchronous signal, taken by our handler, not yet delivered */
    bool present;
    siginfo_t info;
    uint64_t mask;  /* the mask under which it arrived (a temporary one, of sigsuspend ...) */
    bool temporary; /* `mask` is not the program's lasting one */
} jit_pending;

enum { JIT_KILLERS = 4 };
typedef struct jit_hung { /* hung.c: `pending` came while the tool's code was running */
    bool watched, has_timer;
    int timer;
    int64_t since; /* seconds */
    uint32_t again_set;
    siginfo_t again[JIT_KILLERS]; /* what came meanwhile, of those that ask to end */
} jit_hung;

typedef struct jit_fault { /* a fault of the program's own code, to deliver before anything else */
    bool present;
    siginfo_t info;
} jit_fault;

typedef struct jit_thread {
    union { /* gs:0 */
        weave_frame frame;
        uint8_t frame_room[WEAVE_FRAME_SIZE];
    };
    /* --- gs:WEAVE_FRAME_SIZE: offsets used by assembly are in x86_64/offsets.h, checked statically */
    weave_context ctx; /* the program's registers while JIT_IN_RUNTIME */
    uint64_t where;
    uint64_t leave, leave_arg;
    uint64_t runtime_stack;  /* top of the private stack for the dispatcher */
    uint64_t dispatch_entry; /* address of jit_leave_cache: stubs do `jmp gs:[this]` */
    uint64_t enter_pc;       /* execute address to jump to when the cache is entered */
    union {
        uint64_t ibl_table2;  /* second-level hash table of the whole process (see ibl.c) */
        uint64_t native_mask; /* without a cache: the program's mask, on the way through the gate */
    };
    uint64_t in_gate;        /* 1 while a system call is made: the thread then holds no address of the
                                cache, and number and arguments are in the registers' slots */
    uint64_t ibl_miss;       /* address of the miss routine */
    uint64_t syscall_gate;   /* address of the syscall gate */
    uint64_t syscall_resume; /* application address behind the syscall that runs natively */
    uint64_t epoch;          /* the cache epoch this thread entered the cache in; 0: it is not in
                                the cache (kept under jit's lock) */
    jit_pending pending;     /* an asynchronous signal that waits for the next boundary */

    int tid;
    struct jit_thread *next; /* list of threads, under jit's lock */
    void *tls;               /* the private libc's TLS block of this thread */
    inl_room room;           /* stacks, block and counters: thread.c */
    uint32_t counter_room;   /* counters that are mapped; the others are 0 */
    void *stack_low;
    size_t stack_size;
    void *signal_stack;
    size_t signal_stack_size;
    bool dying, is_vfork_child;
    uint32_t tlb_generation;

    /* signals (signal*.c) */
    uint64_t sigmask;                  /* the program's mask, while we run with more blocked */
    bool clears_signals;               /* begins without its parent's handlers (CLONE_CLEAR_SIGHAND) */
    bool mask_is_ours;                 /* the kernel's mask is wider than `sigmask` now */
    stack_t altstack;                  /* the program's sigaltstack, virtual */
    struct jit_fragment *unlinked;     /* fragment whose exits were unlinked for a pending signal */
    bool ibl_blocked;                  /* the IBL table is PROT_NONE for a pending signal */
    bool ibl_stale;                    /* entries could not be removed while it was: clear all of it */
    uint64_t rseq, rseq_len, rseq_sig; /* what the program registered, 0 if none */
    uint64_t clear_tid, robust;        /* where the kernel writes when the thread has ended; its list of mutexes */

    jit_fault fault;
    jit_hung hung;
    siginfo_t held[JIT_HELD]; /* sent signals of the synchronous kind that the program blocks */
    uint64_t held_set;        /* mask of those present in `held` */
    uint64_t temp_mask;       /* the mask of ppoll, sigsuspend ... while it runs */
    bool temp_active;
    uint64_t trapno, trap_err, trap_addr; /* of the last fault: what the kernel shows in every frame */
    const struct jit_filter *filters;     /* of system calls, that the program installed; the newest first */
    struct jit_signals *signals;          /* dispositions; shared by the threads of a process */
    uint32_t busy;                        /* 0 from the moment an ended thread no longer uses its stacks */
    bool parent_waits;                    /* vfork: the parent sleeps and takes the block back afterwards */
    void *exec_argv;                      /* of an exec in a process that shares memory, freed by the parent */

    uint64_t own_cycles; /* spent in the dispatcher and below, the program's system calls excepted */
    bool no_cycles;      /* the program has the time-stamp counter switched off: they are not counted */
    uint64_t dynamic;    /* features that must be asked for and that the thread has used */
    bool unaligned;      /* an unaligned access is stepped over; the mask before */
    uint64_t unaligned_mask;

    /* Without a cache: steps made while a signal waits, the address before; no more waiting; a step was
     * made with the trap flag, whose trap may come late. */
    uint32_t native_steps;
    bool native_forced, native_stepped;
    uint64_t native_last;

    void *client; /* the tool part's per-thread data */
} jit_thread;

static inline jit_thread *jit_self(void)
{
    jit_thread *t;
    __asm__("mov %%gs:0, %0" : "=r"(t));
    return t;
}

#endif
