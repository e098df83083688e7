/* What the recorder's files share: libinlay-trace.a, which programs are linked with whose objects are instrumented.
 *
 *     <isa>/stub.S   an entry or exit: a record, in some 25 instructions
 *     recorder.c     what is rare: a new thread, a procedure's first record, a full window, a fork
 *     choose.c       which calls are recorded, where not each is
 *     stack.c        what the rare runs on
 *     system.h       system calls as they are
 *     settings.c     what INLAY_TRACE says
 *     counters.c     descriptors of counters (--event, src/tool/perf.c)
 *     program.c      of the public headers, what the file's writers (tools/trace_*.c) use, for an ordinary program
 *     output.c       the file: its name, and that it stays this process's alone
 *
 * It is a part of somebody's program: its symbols are its own (but the four that objects call), it takes no memory by
 * malloc, holds one descriptor, and leaves registers, errno and signals as they were. */
#ifndef INL_RECORD_RECORDER_H
#define INL_RECORD_RECORDER_H

#include "record/settings.h"
#include "record/tells.h"
#include "../tools/trace.h"

#include <inlay/perf.h>
#include <inlay/trace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Of a procedure's calls, on one stack or in one thread (choose.c). */
typedef struct record_slot {
    struct record_slot *next;
    int64_t left, given; /* calls until one may be recorded; given - left: calls so far */
    uint64_t sp;         /* of the call that is being recorded; 0: none is */
    uint64_t recorded;   /* thin: since `every` grew */
    uint64_t base;       /* thin: calls that had been recorded when it grew and are not over began above */
    uint32_t every;      /* one in so many is recorded, 0: all */
    uint32_t pending;    /* thin: calls that are not over of those that were recorded while all were */
    bool early, listed;  /* the call at `sp` is one of these; it is one of a procedure's slots */
} record_slot;

enum { RECORD_PIECES = 1024, RECORD_PIECE = 64 };
typedef struct record_table { /* a thread's slots, by procedures' numbers */
    struct record_table *next;
    record_slot *pieces[RECORD_PIECES];
} record_table;

typedef struct record_proc {
    trace_proc traced;
    record_tells *tells; /* it may be gone, unless: */
    bool stays;          /* its image is never unloaded */
    bool chosen;         /* not each call is recorded */
    bool counts;         /* none is */
    record_slot main;    /* of the main stack where it stays; `left` is in `tells` then */
    record_slot *slots;  /* of threads */
} record_proc;

/* A thread's. <isa>/stub.S knows the first five. */
typedef struct record_thread {
    char *cursor, *end; /* where the next record goes; the window's end. Both NULL: it has none */
    uint64_t own;       /* cycles it has spent here */
    char *stack;        /* the end of one for what is rare; NULL: it has none */
    bool inside;        /* here; a handler that interrupts it, and what it calls itself, record nothing */
    char *begin;
    char *next, *limit; /* instead of the first two where all come here: `next` is taken as one, as `cursor` is */
    uint64_t values[INLAY_TRACE_VALUES_MOST]; /* that these store */
    void *locals[4];                          /* of inlay_local_now */
    uint64_t counted[INLAY_PERF_MOST];        /* counters */
    record_table *table;
    uint32_t number, ended; /* 0: it has none now; the one that it had before it ended */
    bool reads;             /* its counters are open */
} record_thread;
extern __thread record_thread record_me __attribute__((tls_model("initial-exec")));

/* What is rare, with all registers saved, signals blocked, on a stack of its own, inside, and `sp` as it is at the
 * entry or exit; those that have arguments are saved[1] to saved[4], saved[-1], saved[-2]. */
enum { RECORD_LEAVES = 1, RECORD_CHOSEN = 2 }; /* it has been asked whether to record it */
void record_slow(record_tells *, unsigned how, uint64_t sp, const uint64_t *saved);
void record_around(void); /* saves and restores what is saved around it */
/* The same, tried first where `record_is_quick`, if nothing rare is to be done: with general and SSE registers saved,
 * on the program's stack, with signals as they are. False: it is not done. */
extern bool record_is_quick;
bool record_quickly(const record_tells *, unsigned how, uint64_t sp);
void record_around_quick(void);

/* --- choose.c, which what stands at entries and exits calls: compiled for general registers alone --- */
typedef enum record_chosen { RECORD_NOT, RECORD_THIS, RECORD_ASK } record_chosen; /* ask: what is rare is to be done */
record_chosen record_choose(record_tells *, unsigned is_exit, uint64_t sp);
/* Likewise, with signals blocked; first: nothing had been known of the procedure. */
bool record_choose_slowly(record_tells *, unsigned is_exit, uint64_t sp, bool first);
record_proc *record_proc_of(uint32_t number); /* NULL: there is none */
bool record_proc_keep(record_proc *);         /* false: there is no room */
bool record_chooses(const record_settings *); /* not each call is recorded */
void record_choose_begin(const record_settings *);
void record_choose_proc(record_proc *, uint64_t low);
uint64_t record_choose_calls(record_proc *);
void record_choose_anew(record_proc *);
void record_choose_forked(void);

/* --- stack.c, compiled likewise: it is called where vector registers are the program's --- */
char *record_stack_take(void); /* the thread has one from now on: its end; NULL where there is none to be had */
void record_stack_give(void);  /* the thread has ended */
void record_stack_forked(void);

void record_table_give(record_thread *); /* the thread has ended */

/* --- output.c --- */
int record_output_open(const char *name); /* the descriptor; -1: none, said once. "": a name of the program's */
const char *record_output_name(void);     /* as the settings have it (recorder.c) */
void record_output_close(void);
int record_output_now(void); /* the descriptor, opened again where the program has closed it; -1: it cannot be had */

/* --- program.c --- */
void *record_memory(size_t bytes); /* zeroed, never given back; NULL */
void record_memory_forked(void);   /* in the child */
void record_locals_give(void);     /* the thread has ended */
int record_fileno(FILE *);

#endif
