/* A routine of yours at the entries and exits that `inlay trace` records.
 *
 *     #include <inlay/trace.h>                                                              mine.c
 *     const char *const inlay_trace_names[] = {"bytes", NULL};
 *     void inlay_trace_enter(const inlay_trace_at *at) { at->values[0] = so_far(); }
 *     void inlay_trace_exit(const inlay_trace_at *at) { at->values[0] = so_far(); }
 *
 *     $ inlay cc --trace mine.c -o mine                                       the tool `trace` with these routines
 *     $ inlay trace --tool ./mine -F 'parse*' -- ./app                        any engine; also -p PID, inlay rewrite
 *     $ make CC="inlay wrap gcc" LDLIBS=mine.o                                objects: the program has the routines
 *
 * Define any of the three. What a routine stores in `values` is recorded with the entry or exit, as the counters of
 * --event are, and reports tell for each name how much it has grown in a procedure itself and with its callees: values
 * are counts that only grow. Without names the routines are called, and nothing more is recorded.
 *
 * A routine is called in the thread, before the record is made, for calls that are recorded: those that were asked
 * for and are not left out by --inside, --every, --thin; with --clock=none for all. What an exception, longjmp or the
 * thread's end leaves has no exit. Several threads may be in one at once. What it takes is not the program's time: the
 * time-stamp counter is read around it.
 *
 * In a tool it is an analysis routine: it runs beside the program, with the C library of the tool's own, and should
 * neither wait for the program's threads nor jump out. In an object it is a procedure of the program's, called with
 * signals blocked and errno kept; what it calls is not recorded. */
#ifndef INLAY_TRACE_H
#define INLAY_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { INLAY_TRACE_VALUES_MOST = 8, INLAY_TRACE_ARGUMENTS = 6 };

/* A procedure that is recorded: for ever, the same one for each of its calls. */
typedef struct inlay_trace_proc {
    const char *name, *image; /* as its symbol is; the file's path */
    uint64_t address, size;   /* where it runs */
    uint32_t number;          /* from 1, as the recording has it */
    void *user;               /* yours, at first NULL */
} inlay_trace_proc;

/* An entry or an exit. */
typedef struct inlay_trace_at {
    inlay_trace_proc *proc;
    uint64_t stack;            /* the program's stack pointer */
    const uint64_t *arguments; /* at an entry, those in general registers; at an exit NULL */
    uint64_t *values;          /* to be recorded, one for each name; they are what the thread's last ones were */
    unsigned thread;           /* as the recording numbers it */
} inlay_trace_at;

/* Defined by you. */
void inlay_trace_enter(const inlay_trace_at *);
void inlay_trace_exit(const inlay_trace_at *);
extern const char *const inlay_trace_names[]; /* NULL is the end; at most INLAY_TRACE_VALUES_MOST. "-ns": a time */

#ifdef __cplusplus
}
#endif

#endif
