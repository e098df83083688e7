/* The JIT engine: runs the program from a code cache. A run_engine (run/run.h), and nothing else.
 *
 *     translate.c   superblock at an application address -> run -> client -> weaver -> fragment
 *     lower.c       control transfers: direct exits and their stubs, calls, indirect branches, returns,
 *                   syscalls (the engine's side of weave_engine)
 *     cache.c       arenas near the modules, two views of one memory (write, execute), growth, drop
 *     dump.c        the stages of a translation as text
 *     fragment.c    fragments: by application address, by cache address; links; map lookup
 *     ibl.c         the two tables of indirect-branch targets
 *     memory.c      what of the address space is executable
 *     kept.c       translations of earlier runs; kept_file.c: their files
 *     guard.c       who writes to code, and what must be dropped
 *     dispatch.S    indirect branches that miss; the gate of system calls
 *     dispatch.c    the loop: why was the cache left, what next
 *     sections.c    restartable sequences (rseq)
 *     wanted.c      what is dead where an exit leads
 *     join.c        a process that ran before
 *     leave.c       out of the process again
 *     stops.c       a debugger's breakpoints, steps and signals
 *     signal.c      a signal in translated code: how the thread gets to a boundary; faults' contexts
 *
 * All of it is under the process's lock unless said otherwise.
 */
#ifndef INL_JIT_JIT_H
#define INL_JIT_JIT_H

#include "base/map.h"
#include "run/run.h"
#include "weave/weave.h"

struct jit_fragment;
/* Translations from earlier runs (kept.c). arg: the client's; lock held. */
typedef struct jit_keeping {
    const char *key; /* all that translations depend on and the engine does not know of; NULL: none are kept */
    int folder;      /* its descriptor: the user's own, and nobody else's to write to */
    uint32_t counters, banked;  /* those below are the same in each run; banked: of those with banks */
    bool (*allowed)(void *arg); /* at this moment: may the client's part in a translation be left out? */
    void (*taken)(void *arg, uint64_t block, bool head); /* or NULL. A block's translation comes from there */
} jit_keeping;
/* A debugger (stops.c). A stop is at a boundary: all of the thread's registers are in its context. */
enum jit_stop_why {
    JIT_STOP_NONE,
    JIT_STOP_BEGIN, /* before the first instruction */
    JIT_STOP_ASKED,
    JIT_STOP_POINT,
    JIT_STOP_WATCH,  /* what is at `addr` has changed */
    JIT_STOP_STEP,   /* the step is done */
    JIT_STOP_SIGNAL, /* it is about to be delivered */
};
typedef struct jit_stop {
    enum jit_stop_why why;
    const siginfo_t *info;
    uint64_t addr;
} jit_stop;
typedef struct jit_debugger {
    /* Thread `t` has stopped, and so have all the others but for those that do not come; the lock is not held. Returns
     * when all are to go on as jit_stops_go has it; threads that nothing is said of do what they did. */
    void (*stopped)(void *arg, run_thread *t, const jit_stop *);
    void *arg;
} jit_debugger;

/* Somebody asks for the tool's report while the program runs (live/ask_jit.c). */
typedef struct jit_reporter {
    /* Makes it, in thread `t`; no other is in the tool's code. With `late` one does not come out of it, or of a
     * procedure that a function of the tool's stands in for: there is to be none. The lock is not held. */
    void (*make)(run_thread *t, uint32_t who, const run_thread *late);
    void (*taken)(uint32_t who); /* he has what was made for him */
} jit_reporter;

typedef struct jit_options {
    void (*instrument)(void *arg, weave_run *run); /* adds snippets; lock held; arg: the client's */
    /* One, or some, of those at the instruction cannot be woven, and have been left out; likewise. */
    void (*refused)(void *arg, const weave_insn *, const char *why);
    uint32_t stress; /* JIT_STRESS_* */
    weave_options weave;
    size_t arena_bytes;                   /* size of one arena's reservation, 0 for the default */
    size_t cache_limit;                   /* flush all above this, 0 for none */
    unsigned max_block_insns, max_blocks; /* limits of a superblock, 0 for the defaults */
    bool chain_jumps;                     /* follow direct jumps within a superblock */
    uint32_t dump;                        /* JIT_DUMP_*: stages of each translation to show */
    uint64_t dump_low, dump_high;         /* only of runs that have code in there; high 0: of all */
    bool (*dump_wanted)(uint64_t addr);   /* and some that this names (lock held); NULL: all */
    /* Lock held; arg: the client's; or NULL. A translation stands; all of them are gone. */
    void (*made)(void *arg, const struct jit_fragment *, const weave_run *, const weave_output *);
    void (*flushed)(void *arg);
    jit_keeping keeping;
    jit_debugger debugger; /* `stopped` NULL: there is none */
    jit_reporter reporter; /* `make` NULL: likewise */
    bool stats;            /* indirect branches are counted, and translation is timed */
    bool shows;            /* snippets may read registers and flags that the instruction at their point does not */
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
    JIT_STRESS_NO_LINK = 8,          /* every exit goes through the dispatcher */
    JIT_STRESS_ONE_BLOCK = 16,       /* no superblocks */
    JIT_STRESS_CHECK = 1 << 8,       /* code that could be written to is checked, never guarded */
    JIT_STRESS_PAIRED = 1 << 10,     /* calls and returns are paired in each program */
    JIT_STRESS_BASE_CALLS = 1 << 11, /* bases are set as under a kernel that must be asked for it */
    JIT_STRESS_ELSEWHERE = 1 << 9,   /* woven for another place, and brought to its own by its fix-ups */
};

/* Fragments. */
typedef struct jit_exit { /* a direct exit of a fragment */
    uint64_t target;      /* application address */
    struct jit_fragment *from;
    struct jit_fragment *to;  /* linked to, or NULL */
    struct jit_exit *next_in; /* in to's list of incoming exits */
    uint32_t rel32_at;        /* offset of the patchable displacement from from->exec */
    uint32_t stub_at;         /* offset of its stub */
    bool continues;           /* the run was cut for length here */
    uint8_t told_by;          /* bytes of the instruction in front, which has told an address of the cache's; 0: it has
                                 not. Then the exit is linked to nothing. */
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
    const weave_inlined *inlined; /* index: what the instruction's address is more than `app` */
    uint16_t fault_count, count_count, inlined_count;
    uint32_t hold;          /* threads that wait for it to be left: its exits stay unlinked */
    uint16_t check_bytes;   /* of code at its entry which compares: between it and the body proper, */
    uint16_t section_bytes; /* of which the first are what enters a restartable sequence */
    bool dropped;
    bool continues; /* entered by an exit of a run that was cut for length */
    uint8_t version;
} jit_fragment;

/* Indirect branches, by what they are. */
enum { JIT_KIND_RETURN, JIT_KIND_CALL, JIT_KIND_JUMP, JIT_KIND_SYSCALL /* the way back from one */, JIT_KINDS };

/* A critical section of the program's (rseq), and what the kernel reads of one: sections.c. */
typedef struct jit_section {
    uint64_t descriptor, low, high, abort;
    bool gone; /* the program has something else there now */
} jit_section;
typedef struct jit_sequence {
    uint32_t version, flags;
    uint64_t start, length, abort;
} jit_sequence;
/* With RUN_LEAVE_SECTION, leave_arg: by the kernel's hand or at a guard; at an exit; at an entry, 1 more where the
 * fragment `continues`. */
enum { JIT_SECTION_ABORTED, JIT_SECTION_LEFT, JIT_SECTION_ENTERED };

/* The instruction that a program executes which steps itself: step.c. */
enum {
    JIT_STEP_INDIRECT = 1, /* leaves by the table of indirect branches */
    JIT_STEP_CALLS = 2,    /* a system call */
    JIT_STEP_POPS = 4,     /* loads the flags */
    JIT_STEP_PUSHES = 8,   /* stores them */
    JIT_STEP_SILENT = 16,  /* no trap comes behind it */
};
typedef struct jit_stepping {
    bool on, again; /* again: the same instruction goes on, and what stands before it has run */
    bool program;   /* the program wants to be told, not only a debugger */
    uint8_t kind;
    uint64_t pc, rest; /* rest: repetitions that are still to come */
} jit_stepping;

/* Registers and flags may be missing that are dead at an exit's target (wanted.c). */
typedef struct jit_settling {
    bool on;     /* the thread is in a piece behind which only `rest` are */
    uint64_t at; /* the target; 0: the thread has all that the program has */
    uint64_t regs, rest_regs;
    uint32_t flags, rest_flags;
} jit_settling;

/* What an instruction is that is not there: the signal, and where. signo 0: none. */
typedef struct jit_fault {
    int signo, code;
    uint64_t at;
} jit_fault;

/* What a thread has under this engine; offsets used by assembly are in x86_64/layout.h. */
typedef struct jit_own {
    uint64_t ibl_table2;           /* second-level hash table of the whole process (see ibl.c) */
    uint64_t ibl_miss;             /* address of the miss routine */
    uint64_t in_gate;              /* 1 while a system call is made: the thread then holds no address of the
                                      cache, and number and arguments are in the registers' slots */
    uint64_t syscall_resume;       /* application address behind the syscall that runs natively */
    uint64_t epoch;                /* the cache epoch this thread entered the cache in; 0: it is not in
                                      the cache (kept under the process's lock) */
    struct jit_fragment *unlinked; /* fragment whose exits were unlinked for a pending signal */
    bool ibl_blocked;              /* the IBL table is PROT_NONE for a pending signal */
    bool ibl_stale;                /* entries could not be removed while it was: clear all of it */
    uint64_t kind, scratch;        /* with jit_options.stats: of the last indirect branch; the miss routine's */
    uint64_t executed[JIT_KINDS], missed[JIT_KINDS];
    /* Restartable sequences: where the program's pointer to a descriptor is, 0: not registered; the thread's own
     * descriptor, its address and the opposite of that. */
    uint64_t sequence_field, sequence_self, sequence_minus;
    jit_sequence sequence;
    const jit_section *section, *armed; /* that it is in, if armed; the last that it has armed */
    uint64_t section_abort;             /* where its abort code goes on */
    uint64_t whole;                     /* at the guard all registers are in their slots */
    uint64_t sequence_seen;             /* the last descriptor of another that was found in the program's pointer */
    uint32_t signature;
    jit_stepping stepping;
    uint64_t cycles_before;   /* of own_cycles: told already */
    uint64_t held;            /* the oldest of epochs whose code it goes back to behind calls of the tool's; 0: none */
    uint32_t version, wanted; /* of the translations that it runs in, and is to run in from its next exit on */
    bool leaves;              /* it waits for the others to leave Inlay; under the process's lock */
    uint64_t leave_sp;        /* of the frame by which it will */
    bool begins;              /* the tool is to be told of it, by itself (join.c) */
    uint64_t restarts;        /* join.c: what restart_syscall goes on with */
    uint64_t *returns;        /* its table of paired returns (paired.c); NULL: none */
    uint64_t step_low, step_size; /* stops.c: a step goes on while the counter is in there */
    uint8_t go, signo;            /* jit_go; the signal that it gets on its way */
    bool parked, stepped;         /* it waits at a boundary; it has been in the cache since it was let go */
    jit_settling settling;
    jit_fault missing; /* what a byte is that could not be copied (memory.c) */
} jit_own;
_Static_assert(sizeof(jit_own) <= RUN_ENGINE_BYTES, "a thread's block has room for it");
static inline jit_own *jit_of(const run_thread *t) { return (jit_own *)(uintptr_t)t->engine; }

/* --- dispatch.c --- */
uint64_t jit_dispatch(run_thread *t); /* run_engine.dispatch */
/* Sets the engine up in this process; the caller is the first thread, on the tool's own stack, with
 * the tool's FS base. Then jit_run never returns. */
inl_status jit_init(const run_client *, const jit_options *, const run_start_state *, inl_error *);
void jit_run(void) __attribute__((noreturn));
/* Instead of jit_run, in a process that ran before: for each thread, the caller first. It stands still at `ctx`, and
 * will go on at run_leave_code, with these registers and its block. NULL with the error filled: no memory. */
typedef struct jit_joining {
    int tid;
    uint64_t sigmask, clear_tid, robust;
    stack_t alternate;
    uint64_t rseq; /* its area, registered with this signature; 0: none */
    uint32_t rseq_signature;
    uint64_t restarts; /* the number of the call that it goes on with by restart_syscall */
    const weave_context *ctx;
} jit_joining;
run_thread *jit_join(const jit_joining *, bool first, inl_error *);
void jit_joined(void); /* all are there */
/* The opposite of jit_init, with run_end: nothing of the engine is left in the process. */
void jit_end(void);
/* --- leave.c --- */
const char *jit_leave_barred(void); /* why it cannot be; NULL: it can */
/* All threads are to go back to the program's own code, soon; the tool's exit callbacks are called, and nothing of
 * Inlay's is left. From anywhere. */
void jit_leave_ask(void);
/* --- stops.c: for the debugger while it is told of a stop --- */
enum jit_go { JIT_GO_RUN, JIT_GO_STEP, JIT_GO_HOLD };
/* A step ends where the counter is not in [low, high); signo: what the thread gets first, or 0. */
void jit_stops_go(run_thread *t, enum jit_go, int signo, uint64_t low, uint64_t high);
bool jit_stops_point(uint64_t app, bool on); /* false: no memory */
/* Stops behind the instruction or call with which these bytes change. False: too many, too large, or there is none. */
bool jit_stops_watch(uint64_t low, uint32_t size, bool on);
void jit_stops_pass(uint64_t signals);               /* it is not told of these */
void jit_stops_written(uint64_t low, uint64_t high); /* the debugger has changed the program's memory */
run_thread *jit_stops_thread(int tid);               /* NULL: there is none */
unsigned jit_stops_threads(int *tids, unsigned room);
void jit_stops_end(void); /* there is no debugger any more */
/* From a thread that is not at a boundary: while another's stop lasts. */
void jit_stops_quiet(run_thread *t);
/* What a nudge's value may be, in its low 32 bits; from JIT_NUDGE_FIRST on: a stop is asked for, and a greater number
 * is another request. With _REPORT and _TAKEN the high ones are who asks, which is not 0. */
enum { JIT_NUDGE_TAKEN = -2, JIT_NUDGE_COME, JIT_NUDGE_LEAVE, JIT_NUDGE_REPORT, JIT_NUDGE_FIRST };
/* --- kept.c --- */
void jit_kept_save(void); /* lock not held: at the end of the process */
/* --- stats.c --- */
enum { JIT_REASONS = RUN_LEAVE_SECTION + 1 };
typedef struct jit_stats {
    uint64_t superblocks, kept, cut, checked, blocks, instructions, code_bytes, stub_bytes, landings;
    uint64_t links, drops, flushes, writes; /* writes: to guarded pages */
    uint64_t dispatches[JIT_REASONS];       /* by RUN_LEAVE_* */
    uint64_t executed[JIT_KINDS];           /* indirect branches (JIT_KIND_SYSCALL: not counted), */
    uint64_t missed[JIT_KINDS];             /* of which the thread's own table did not know the target, */
    uint64_t unknown[JIT_KINDS];            /* nor the process's */
    uint64_t sent, faults;                  /* signals that arrived */
    uint64_t aborted;                       /* restartable sequences */
    uint64_t dispatcher_cycles, translation_cycles, cycles;
} jit_stats;
void jit_stats_take(jit_stats *out); /* lock not held */

/* --- fragment.c --- */
jit_fragment *jit_fragment_of_cache(uint64_t exec); /* async-signal-safe; NULL: not in a fragment */
/* What the program's state is at cache address `exec` of `f`: index of the instruction, filled entry.
 * `*in_snippet`: code of snippets before the instruction is running. async-signal-safe. */
bool jit_fragment_map(const jit_fragment *f, uint64_t exec, weave_map_entry *entry, bool *in_snippet);
/* Is it an instruction of an inlined routine, which may fault? Of which, and at which instruction of the program's. */
bool jit_fragment_inlined(const jit_fragment *f, uint64_t exec, uint64_t *app, uint64_t *routine);
/* The instruction at `exec` faulted: what counters hold in advance for those that did not execute, see
 * weave_undo. async-signal-safe. */
void jit_fragment_undo(const jit_fragment *f, uint64_t exec, bool begun,
                       void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg);
void jit_link(jit_exit *, jit_fragment *to); /* lock held */
void jit_unlink_exits(jit_fragment *);       /* all its direct exits go to their stubs; async-signal-safe */
void jit_drop_fragment(jit_fragment *);      /* lock held: unreachable from now on */
/* Lock held: all that cover application code in it, which may be other code now, or is to be shown to the tool again.
 */
void jit_drop_range(uint64_t low, uint64_t high);
void jit_drop_shown(uint64_t low, uint64_t high);
void jit_flush_all(void); /* lock held */

/* --- ibl.c --- */
void jit_ibl_init_thread(run_thread *);
bool jit_ibl_take_version(run_thread *); /* the one that it wants (lock held); false: no memory */
void jit_ibl_add(jit_fragment *);        /* lock held: to the second-level table */
void jit_ibl_remove(jit_fragment *);     /* lock held: from both, in all threads */
/* For a pending signal: make every indirect branch of this thread trap; undo. async-signal-safe. */
void jit_ibl_block(run_thread *);
void jit_ibl_unblock(run_thread *);

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
uint64_t jit_memory_mapped_behind(uint64_t addr); /* bytes up to the end of what is mapped there, 0: nothing is */
int jit_memory_prot(uint64_t addr);               /* what the program believes it to be (lock held) */
bool jit_memory_shared(uint64_t addr);            /* mapped MAP_SHARED (lock held) */

/* --- guard.c --- */
void jit_guard_keys(void); /* the program uses protection keys: pages are guarded whenever they can be */
/* A call is about to be made, and has been: where it may write nothing is guarded. */
void jit_guard_call(run_thread *t, const weave_context *c);
void jit_guard_call_end(run_thread *t, long answer);
void jit_guard_own_write(uint64_t addr);        /* code has written to its own page, and will again: that is checked */
void jit_guard_no_more(void);                   /* the kernel may write at any time: code is checked from now on */
void jit_guard_thread_end(const run_thread *t); /* likewise for what the kernel writes when a thread has ended */

/* --- signal.c --- */
/* run_engine.switch_version: the calling thread goes on in other translations, from its next exit on. */
void jit_switch_version(run_thread *t, unsigned version);
/* run_engine.signal: on the thread's own signal stack, all but the faults blocked. */
void jit_signal(run_thread *t, int signo, siginfo_t *info, void *uc, uint64_t tls_base);

/* --- <isa>/dispatch.S --- */
void jit_ibl_watched(void);
void jit_ibl_miss_counted(void);
void jit_return_miss(void);
void jit_ibl_miss(void); /* the target and the program's registers lie as x86_64/dispatch.S says */
void jit_syscall_gate(void);
extern const char jit_gate_check[], jit_gate_syscall[], jit_gate_after[]; /* the gate's window */
extern const char jit_gate_stack[], jit_gate_flags[]; /* in it: from here on sp is in its slot, flags in a register */

/* --- <isa>/context.c --- */
/* At the gate, before or right after the system call: the program's context at `pc`. */
void jit_uc_gate_context(const void *uc, run_thread *t, uint64_t tls_base, uint64_t pc, weave_context *out);
/* An indirect branch or a paired return that hit a blocked table: the program's context at the branch's target. */
void jit_uc_ibl_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out);
/* A paired call (paired.c) that was about to write to the blocked table goes on without; false: it is none. */
bool jit_uc_skip_landing(void *uc);

#endif
