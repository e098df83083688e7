/* How a tool finds a process that ran already when it was put into it: what whoever puts it in tells it, and what it
 * answers. Both are in the process's memory; the carried data leads there (boot.h). */
#ifndef INL_MOVE_LIVE_H
#define INL_MOVE_LIVE_H

#include "base/arch.h"

#include "move/boot.h"
#include "run/debugger.h"

#include <stdint.h>

#include INL_ARCH_HEADER(weave, frame)
#include INL_ARCH_HEADER(move, park)

typedef struct move_live_image {
    move_boot_links links;
    uint64_t unwind;      /* address of the .eh_frame_hdr of its moved code, 0: it has none */
    run_debug_file shown; /* what tells debuggers of that code; size 0: nothing does */
    uint64_t site_count,
        sites; /* what may be a system call in its old code: link-time addresses, ascending; 0: not listed */
} move_live_image;

typedef struct move_live_thread {
    uint64_t tid, sigmask;
    uint64_t stack, stack_flags, stack_size; /* its alternate one, as the kernel has it; answer: as it is to be told */
    weave_context ctx;                       /* as it stands; answer: pc where it is to go on */
    uint64_t block;                          /* answer: its thread block */
    uint64_t slot;                           /* its place in the parking area; 0: none */
} move_live_thread;

/* --- what tells of a tool in a process, for whoever comes later --- */
#define MOVE_TOLD_BASE  0x550800000000ull /* a move_told */
#define MOVE_TOLD_JIT   0x7ee000000000ull /* one of a tool under the JIT engine: above where such lie (tool/places.c) */
#define MOVE_TOLD_OTHER 0x5ff000000000ull /* ... where the program has something there: below where tools lie then */
#define MOVE_ASK_BASE   0x550c00000000ull /* a move_ask, while somebody asks */
#define MOVE_TOLD_MAGIC 0x31766c79616c6e69ull

typedef struct move_told_range {
    uint64_t low, high;
} move_told_range;
/* --- where threads of a held process stand (live/park.c) ---
 *
 *     MOVE_PARK_BASE: code | move_park | a move_park_slot for each thread
 *
 * Should whoever holds the process die, each thread goes on as its slot's frame says; while `works` is not 0, when the
 * first one has come back from what it was sent to do. That one unmaps what is `gone` before. */
enum { MOVE_PARK_GONE_MOST = 4000, MOVE_PARK_DATA_SIZE = 0x10000 };
#define MOVE_PARK_MAGIC 0x356b7261706c6e69ull
typedef struct move_park {
    uint64_t magic;
    uint64_t works, gone_count; /* written together */
    uint64_t first;             /* the first thread's slot */
    uint64_t closes;    /* a descriptor that the holder is to read, and 1 more; 0: none. The first one closes it */
    uint64_t child;     /* the holder's number, where it is the process's child and about to end: waited for; or 0 */
    uint64_t vanishes;  /* it leaves nothing at its end: SIGCHLD's action is put back behind it, */
    uint64_t action[4]; /* which is this, as the kernel has it */
    move_told_range gone[MOVE_PARK_GONE_MOST];
} move_park;

/* A stretch of the tool's work that needs no looking at (moved/alone.c): it begins with a call of getpid that has this
 * for its first argument, and the address of a word for its second. */
#define MOVE_ALONE_MAGIC 0x31656e6f6c616e69ull
enum { MOVE_ALONE_NOT, MOVE_ALONE_GOES, MOVE_ALONE_DONE, MOVE_ALONE_SEEN, MOVE_ALONE_LOST };

typedef struct move_told_patch { /* of old code; ascending */
    uint64_t at, size;
    uint8_t now[16], before[16];
} move_told_patch;
typedef struct move_told_table { /* a jump table's address in new code, and in old */
    uint64_t now, old;
} move_told_table;

/* Whoever looks after what is in the process from outside, a mutator (tool/mutator.h): it may add to it and remove it.
 */
typedef struct move_told_holder {
    uint64_t pid, started; /* its process, as /proc has it; pid 0: nobody does any more */
    uint64_t names;        /* the namespace of processes that pid is a number of */
} move_told_holder;

/* Addresses of lists are in the process. What is marked with an answer is filled in by the tool when it has started. */
typedef struct move_told {
    uint64_t magic, layout; /* bytes of this struct: another is another version's */
    uint64_t size;          /* of all, from MOVE_TOLD_BASE on */
    uint64_t threads;       /* answer: where the list of thread blocks begins (run_here.threads), for debuggers */
    uint64_t user, seconds; /* who put it in, and when (since the epoch) */
    uint64_t tool, options; /* strings: the tool's file, its arguments */
    uint64_t has_output;    /* the report goes to a file that was named (-o) */
    uint64_t is_mutators;   /* it is a mutator's file: there is no report */
    move_told_holder holder;
    uint64_t range_count, ranges, patch_count, patches, table_count, tables; /* ranges: mappings near images */
    uint64_t tool_low, tool_high;                                            /* answer, as are all that follow */
    uint64_t ask_entry, ask_until; /* a thread that is sent here, on a stack of its own, answers what is asked */
    uint64_t started;              /* MOVE_TOLD_STARTED, or _LEFT */
    uint64_t report_to, report; /* under the JIT engine: for whom the last report was made, MOVE_REPORT_; it is read */
    int64_t report_fd;          /* by this descriptor, which stays open until he says that he has it; */
    uint64_t report_late;       /* or why there is none: the thread */
    uint64_t workers;           /* answer: where the list of the tool's own threads begins (run_here.workers) */
} move_told;
enum { MOVE_REPORT_MADE = 1, MOVE_REPORT_LATE, MOVE_REPORT_ELSEWHERE /* it has gone where the tool's output goes */ };
enum {
    MOVE_TOLD_STARTED = 1,
    MOVE_TOLD_LEFT /* nothing leads here any more, the rest can go */,
    MOVE_TOLD_RUNS_JIT,
    MOVE_TOLD_LEAVES_JIT /* under that engine; it is about to be out */
};

enum { MOVE_ASK_LOOK = 1, MOVE_ASK_REPORT, MOVE_ASK_LEAVE };
enum { MOVE_ASK_SHARED = 1, MOVE_ASK_NO_PROC, MOVE_ASK_CONFINED, MOVE_ASK_WORKERS };
enum { /* what a thread does */
       MOVE_BUSY_NOT,
       MOVE_BUSY_INSERTED, /* it is in what was inserted: a few steps lead out of it */
       MOVE_BUSY_TOOL, /* anything else of Inlay's, an analysis routine perhaps, where it may wait for another thread */
       MOVE_BUSY_UNWINDS /* it is looking at unwind tables of new code, or has left what looks so */
};
enum { MOVE_ASK_FILES = 3 }; /* of /proc: mem, maps, pagemap */
enum {
    MOVE_ASK_DEEP = 2048,   /* bytes of a stack: an unwinder's own frames, and those of a language's part of it */
    MOVE_ASK_WINDOW = 16384 /* where a handler's frame is looked for, behind which one may have been interrupted */
};
typedef struct move_ask_thread {
    uint64_t tid;
    weave_context ctx;      /* as it stands; answer: as the program would */
    uint64_t busy;          /* answer: MOVE_BUSY_ */
    uint64_t place, before; /* answer: of the run of instructions that it leaves, 0: none */
    uint64_t knows_stack, stack, stack_flags, stack_size; /* answer of LEAVE: its alternate one */
    uint64_t slot;                                        /* its place in the parking area */
    uint64_t vectors;  /* answer of LEAVE: vector registers in the slot have changed */
    uint64_t ran;      /* nanoseconds since the last look */
    uint64_t call;     /* the number of the system call in which it was stopped, or right behind it; 0: none */
    uint64_t slept;    /* it sleeps still, and all threads have run meanwhile */
    uint64_t readable; /* with move_ask.waits: its stack can be read up to there */
    uint64_t block;    /* with knows_stack: what the register that leads to a thread's block holds natively */
} move_ask_thread;
typedef struct move_ask {
    uint64_t what;                 /* MOVE_ASK_ */
    uint64_t captures;             /* the report goes into memory, as a file that only a descriptor names */
    uint64_t waits;                /* who looks at unwind tables of new code is busy */
    uint64_t lends;                /* LEAVE: the process cannot open what it needs, */
    int64_t files[MOVE_ASK_FILES]; /* these descriptors are given to it */
    uint64_t done;                 /* answers: it has been done, */
    uint64_t busy;                 /* or so many threads are not out, */
    uint64_t refused;              /* or it cannot be: MOVE_ASK_ */
    int64_t fd;                    /* answer: that descriptor, -1: none */
    uint64_t area_count, areas;    /* answer of LEAVE: more mappings near images, a move_told_range each */
    uint64_t thread_count;         /* the first one is the one that answers */
    move_ask_thread threads[];
} move_ask;

/* The first thread is the one that starts the tool. */
enum { MOVE_LIVE_STARTED = 1, MOVE_LIVE_WITHOUT_JUMPS /* or without some: where there is none, old code runs */ };
typedef struct move_live_hook { /* a variable in the tool that gets a value (live_hook) */
    uint64_t at, value;
} move_live_hook;
typedef struct move_live {
    uint64_t hook_count, hooks;   /* address of a move_live_hook each */
    uint64_t image_count, images; /* address of a move_live_image each */
    uint64_t thread_count;
    uint64_t started;     /* answer: MOVE_LIVE_ */
    uint64_t tool;        /* address of a string: the tool's file; 0: it is not known */
    uint64_t word, tells; /* the dynamic linker's word for debuggers, and the procedure that it calls then; 0: the
                             program's dynamic section leads there, or nothing does */
    uint64_t helper;      /* process id of whoever puts the tool in, where that is a child of this process; else 0 */
    move_live_image boot; /* as if it were one: the boot code, where procedures return to that the tool has called */
    move_live_thread threads[];
} move_live;

#endif
