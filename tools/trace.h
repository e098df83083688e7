/* trace: what its files share. The recorder's state is of this process alone; what instrumentation finds out travels.
 */
#ifndef TRACE_H
#define TRACE_H

#include <inlay.h>
#include <inlay/trace.h>
#include <inlay/trace_format.h>

/* A procedure that was asked for. */
typedef struct trace_proc {
    struct trace_proc *next;
    inlay_counter calls;
    const char *name, *why; /* why: it was not instrumented */
    char *types;            /* of its arguments and its result, lines of a number and a layout; NULL: none is told */
    uint64_t address, size;
    uint32_t number, image; /* from 1; an image that is a trace_image's */
    inlay_trace_how how;
    bool is_trigger;
    inlay_trace_proc told; /* to the user's routines */
} trace_proc;

typedef struct trace_image {
    struct trace_image *next;
    const char *path;
    uint32_t id;
    bool is_main;
    uint64_t low, high, bias;
} trace_image;

typedef struct trace_found {
    trace_image *images;
    trace_proc *procs, **end; /* in order of their numbers */
    uint32_t count;
} trace_found;

typedef struct trace_settings {
    inlay_trace_clock clock;
    uint64_t last; /* MB that are kept, 0: all */
    bool compress;
    const char *inside;              /* patterns of triggers, divided by '|'; NULL: none */
    uint64_t every, thin;            /* one call in so many; of those called more than so often, fewer */
    const char *arguments, *results; /* -A, -R */
    const char *events;              /* --event; NULL: none */
    uint64_t depth, threshold;       /* for the reports: frames, ns */
    bool is_own;                     /* what reading counters takes is Inlay's own time already */
    int (*file)(void);               /* the descriptor, asked before each use, -1: none now; NULL: it stays as it is */
} trace_settings;

/* Of a reading of counters, in 1/1000: what the event itself counts then, and ticks, in the first event's. */
typedef struct trace_cost {
    uint64_t counts, ticks;
} trace_cost;

/* --- trace_clock.c --- */
uint64_t trace_monotonic(void);
uint64_t trace_raw(inlay_trace_clock);                             /* as it is */
void trace_pair(inlay_trace_clock, uint64_t *ticks, uint64_t *ns); /* of one moment: as it is, and CLOCK_MONOTONIC */
uint64_t trace_now(inlay_trace_clock); /* of the calling thread, without what it has spent in Inlay */
uint64_t trace_frequency(inlay_trace_clock);
uint64_t trace_overhead(inlay_trace_clock); /* of one record, in 1/1000 ticks */

/* --- trace_select.c --- */
bool trace_select_prepare(const trace_settings *); /* between inlay_init and inlay_start; they must stay */
bool trace_select_is_trigger(inlay_proc *);
bool trace_select_samples(const trace_settings *); /* not all calls are recorded, and all are counted */
/* `record`, under the conditions that hold at the procedure's entry or exit. */
inlay_expr trace_select_entry(trace_proc *, inlay_expr record);
inlay_expr trace_select_exit(trace_proc *, inlay_expr record);
inlay_expr trace_select_result(trace_proc *, inlay_expr result); /* before the exit's */

/* --- trace_values.c --- */
bool trace_values_prepare(const trace_settings *); /* between inlay_init and inlay_start; false: said why */
/* What records a procedure's arguments, at its entry, or its result, at its return; NULL: nothing is asked for. */
inlay_expr trace_values_arguments(inlay_proc *, trace_proc *, inlay_buffer *);
inlay_expr trace_values_result(inlay_proc *, trace_proc *, inlay_buffer *);
void trace_values_warn(bool (*is_asked_for)(const inlay_proc *)); /* of entries that nothing has matched */

/* --- trace_events.c --- */
bool trace_events_prepare(const trace_settings *);           /* between inlay_init and inlay_start; false: said why */
unsigned trace_events_count(void), trace_events_first(void); /* 0: none are asked for; their numbers begin at */
void trace_events_read(uint64_t *values);
void trace_events_begin(void); /* the file is there */
void trace_events_thread_ends(unsigned thread);
void trace_events_end(void);
void trace_events_forked(void);

/* --- trace_routine.c --- */
bool trace_routine_is_there(bool leaves); /* the user's, for exits or entries */
unsigned trace_routine_values(void);      /* how many events they store, from 0 */
bool trace_routine_agrees(void);          /* false: said why */
void trace_routine_begin(void);           /* the file is there */
void trace_routine_call(bool leaves, const inlay_trace_at *);

/* --- trace_woven.c --- */
bool trace_woven_prepare(void); /* between inlay_init and inlay_start; false: said why */
/* The call of the user's routine; with the records of what it stores. NULL: there is nothing to be done. */
inlay_expr trace_woven_call(trace_proc *, bool leaving);
inlay_expr trace_woven_record(trace_proc *, bool leaving, inlay_buffer *);
/* An event's value, all counters' values, before an entry or exit; NULL: none are asked for. */
inlay_expr trace_event_value(inlay_buffer *, unsigned event, inlay_expr value);
inlay_expr trace_events_record(inlay_buffer *);

/* --- trace_path.c --- */
uint32_t trace_shortest_way(inlay_proc *); /* in instructions; UINT32_MAX: it never leaves, or nothing is known of it */

/* --- trace_pack.c --- */
/* How many bytes were written to `out`; 0: there is not enough room. */
size_t trace_pack(uint32_t *out, size_t room, const inlay_trace_record *, size_t count);

/* --- trace_zstd.c, or trace_no_zstd.c --- */
bool trace_squeeze_prepare(bool wanted); /* between inlay_init and inlay_start */
/* Packed records, compressed, in the thread's own memory until the next ones are; 0: it does not pay. */
size_t trace_squeeze(const void *records, size_t bytes, const void **out);

/* --- trace_file.c --- */
bool trace_file_prepare(void); /* between inlay_init and inlay_start */
/* The file of this process, opened when first needed; false: there is none (it has been said). */
bool trace_file_begin(const trace_settings *, const trace_found *);
void *trace_file_next(void *filled, size_t count, unsigned thread, size_t *room, void *arg);
void trace_note_image(const trace_image *);
void trace_note_proc(const trace_proc *);
void trace_note_thread(inlay_trace_note_kind, unsigned thread, int tid);
void trace_note_count(const trace_proc *, uint64_t calls);
void trace_note_end(int status);
void trace_note_view(const trace_settings *);
void trace_note_event(unsigned event, unsigned how, const trace_cost *, const char *name, const char *why);
void trace_note_event_total(unsigned thread, unsigned event, uint64_t value, uint64_t enabled, uint64_t running);
void trace_file_forked(void);
uint64_t trace_file_lost(void);

#endif
