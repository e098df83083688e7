/* Recordings of the tool `trace`, read: docs/trace-format.md, inlay/trace_format.h.
 *
 *     trace_file f;
 *     if (trace_open("app.trace", &f, &e) != INL_OK) ...
 *     for (size_t i = 0; i < f.sessions.count; i++) use(&f.sessions.items[i]);
 *     trace_close(&f);
 *
 * The file is mapped and may hold anything; nothing of it is believed that has not been checked here: what is in a
 * trace_file lies in the file's bytes, ends where it says, and numbers have what they name. A chunk that makes no sense
 * is left out, and counted. */
#ifndef INL_TRACE_READER_H
#define INL_TRACE_READER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"

#include <inlay/trace_format.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct trace_image {
    const char *path, *name; /* the whole, the last component; "?" */
    uint64_t low, high, bias;
} trace_image;

typedef struct trace_proc {
    const char *name, *shown; /* as the symbol is; as people write it */
    const char *why;          /* TRACE_REFUSED */
    const char *types;        /* of arguments and result (docs/trace-format.md); NULL: nothing is told */
    const trace_image *image;
    uint64_t address, size;
    inlay_trace_how how;
    bool known;               /* a note tells of it */
    bool is_trigger;          /* only what is called by such is looked at */
    uint64_t count;           /* its calls, where they were counted */
    uint64_t steps, step_sum; /* from its entries to exits right behind them, if short: how many, and ticks */
} trace_proc;

typedef struct trace_piece {
    const inlay_trace_record *records; /* NULL: they are packed */
    bool is_compressed;                /* and that is compressed */
    const void *packed;
    size_t packed_bytes, count;
    uint64_t sequence, time, lost;
    bool is_window; /* it was not closed */
} trace_piece;

typedef struct trace_event {   /* what was counted beside the clock */
    const char *name, *why;    /* why: it was not */
    unsigned how;              /* inlay_perf_how */
    uint64_t overhead;         /* of a reading, 1/1000 */
    uint64_t enabled, running; /* ns, of all threads that have ended */
} trace_event;

typedef struct trace_thread {
    uint32_t number, tid;
    INL_VEC(trace_piece) pieces; /* in order */
    uint64_t records, lost;
    uint64_t begins, ends;                     /* 0: not told */
    uint64_t counted[INLAY_TRACE_EVENTS_MOST]; /* events, at its end; 0: not told */
} trace_thread;

typedef struct trace_session {
    const char *program;
    inlay_trace_clock clock;
    int32_t pid, parent;
    uint64_t frequency; /* Hz */
    double measured;    /* seconds that the frequency was measured over; 0: at the start alone */
    uint64_t overhead;  /* of a record, 1/1000 ticks: as calibrated, or as the shortest procedure tells */
    uint64_t time, monotonic, realtime;
    uint64_t last;                          /* the latest time known */
    uint64_t threshold, depth, every, thin; /* what was asked for: ns, frames; one call in so many, more than so many */
    uint64_t own;                           /* ticks that the thread which ended the process had spent in Inlay */
    bool has_ended, has_triggers;
    int status;
    INL_VEC(trace_proc) procs;     /* by number - 1 */
    INL_VEC(trace_thread) threads; /* by number */
    inl_map image_numbers, thread_numbers;
    uint64_t pair_time, pair_monotonic; /* the last pair of times */
    uint64_t overwritten;               /* chunks, --last */
    uint64_t lost;                      /* records, of all threads, as the end tells */
    trace_event events[INLAY_TRACE_EVENTS_MOST];
    uint32_t event_count;
} trace_session;

typedef struct trace_file {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    bool is_mapped;
    inl_arena arena;
    INL_VEC(trace_session) sessions;
    size_t chosen, all; /* 0: all are there; otherwise this one, and so many there were */
    uint64_t senseless; /* chunks and notes that were left out */
} trace_file;

inl_status trace_open(const char *path, trace_file *, inl_error *);
/* Of bytes in memory, which must stay. */
inl_status trace_read(const void *bytes, size_t size, const char *path, trace_file *, inl_error *);
/* Only its program `number`, from 1, is there, up to trace_choose(f, 0) or its end; false: it has none such. */
bool trace_choose(trace_file *, uint64_t number);
void trace_close(trace_file *);

/* How many records there are; with `out`, they are put there. What is cut off at the end is none. */
size_t trace_unpack(const void *from, size_t bytes, inlay_trace_record *out);
/* What a compressed chunk holds, to be freed; NULL: nothing that makes sense, or no memory. */
void *trace_inflate(const void *from, size_t bytes, size_t *size);
/* A piece's records, unpacked where they are packed: valid until the next ones are. NULL: out of memory. */
typedef INL_VEC(inlay_trace_record) trace_unpacked;
const inlay_trace_record *trace_piece_records(const trace_piece *, trace_unpacked *);

/* Ticks as nanoseconds. */
double trace_ns(const trace_session *, uint64_t ticks);

#endif
