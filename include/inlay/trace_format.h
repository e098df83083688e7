/* The files that the tool `trace` writes, for those who read them: docs/trace-format.md tells it in words.
 *
 * A file is a sequence of chunks, each with a head; all numbers are little-endian, and what is said to be text ends
 * with a zero byte. A file that has grown under a program that was killed is read as far as it goes. */
#ifndef INLAY_TRACE_FORMAT_H
#define INLAY_TRACE_FORMAT_H

#include <stdint.h>

enum {
    INLAY_TRACE_MAGIC = 0x31545249, /* "IRT1" */
    INLAY_TRACE_VERSION = 2,
    INLAY_TRACE_PAGE = 4096, /* chunks that stay mapped are whole numbers of these, and begin at one */
    INLAY_TRACE_STEP = 256,  /* others, of these */
};

typedef enum inlay_trace_kind {
    INLAY_TRACE_SESSION = 1, /* a program begins: an inlay_trace_session */
    INLAY_TRACE_EVENTS,      /* a thread's records */
    INLAY_TRACE_NOTES,       /* what is to be known of them: a sequence of inlay_trace_note */
    INLAY_TRACE_FREE,        /* nothing in it (any more) */
    INLAY_TRACE_PACKED,      /* a thread's records, packed; `used` is told */
    INLAY_TRACE_ZSTD,        /* what a packed one has, as one frame of zstd's that tells how long that is */
} inlay_trace_kind;

typedef struct inlay_trace_chunk {
    uint32_t magic;
    uint32_t kind;
    uint32_t bytes;  /* of the chunk, head included */
    uint32_t used;   /* bytes behind the head; 0: not told, up to the first note of zeros, or the last record that
                      * is none: one of zeros before was interrupted by a signal, and never written */
    uint32_t thread; /* Inlay's number: events */
    uint32_t tid;    /* the kernel's */
    uint64_t
        sequence;  /* counts a session's chunks as they were begun; of two with one number the first is out of date */
    uint64_t time; /* the clock when it was begun, all of its bits, nothing taken off */
    uint64_t monotonic; /* CLOCK_MONOTONIC then, in ns */
    uint64_t lost;      /* records of this thread that found no room, so far */
    uint64_t again;     /* --last: chunks of the process that had been written over by then */
} inlay_trace_chunk;

typedef enum inlay_trace_clock {
    INLAY_TRACE_COUNTS, /* no records: calls are counted alone */
    INLAY_TRACE_CYCLES, /* the processor's time-stamp counter */
    INLAY_TRACE_MONOTONIC,
} inlay_trace_clock;

typedef struct inlay_trace_session {
    uint32_t version, clock;
    uint64_t frequency; /* of the clock, in Hz, as measured at the start; chunks' pairs of times are better */
    uint64_t time, monotonic, realtime;
    uint64_t overhead; /* of a record, in 1/1000 of the clock's ticks */
    int32_t pid, parent;
    char program[]; /* text, up to `used` */
} inlay_trace_session;

/* An entry or an exit. The order of the fields is that in which they are written: one that is cut off has no `what`. */
typedef struct inlay_trace_record {
    uint64_t when; /* time << 16 | stack pointer >> 32; of both, the low 48 bits */
    uint32_t stack;
    uint32_t what; /* the procedure's number, from 1, << 1 | 1 at an exit */
} inlay_trace_record;

/* A record whose `what` is INLAY_TRACE_VALUE is an argument of the call whose entry stands before it, or the result of
 * the one whose exit comes next: the value is in `when`. `stack` tells its number (from 1; 0: a result), << 8 its form
 * (d signed, u unsigned, x, p hexadecimal, c a character, s a string, f a float of 4 or a double of 8 bytes, w a word
 * of a structure), << 16 its bytes, and flags. A string is several such, of 8 bytes each, and ends at a zero; a
 * structure is several, the last of which does not go on, or one of 0 bytes where nothing is known of it.
 *
 * With form 'e' it is what a counter had at the entry or exit that comes next, and the number is the event's, from 0.
 */
enum {
    INLAY_TRACE_VALUE = -1, /* 0xffffffff */
    INLAY_TRACE_GOES_ON = 1 << 24,
    INLAY_TRACE_CUT = 1 << 25,        /* the string goes on in memory */
    INLAY_TRACE_UNREADABLE = 1 << 26, /* no memory is there: the value is the address */
};

/* Packed records are words of 32 bits, the lowest byte first. Each record tells how far its time and its stack pointer
 * are from those of the one before, and a counter's value from the same counter's before (0 at the chunk's beginning);
 * D is the stack pointer's way up, from half of what there is room for: */
/* clang-format off */
/*   0 what:10 D/16:6 time:15                                 4 bytes
 *   1 0 what:20 D/8:10 (low) | D/8:6 (high) time:26          8
 *   1 1 0...                 | the record as it is          20
 *   1 1 1 1 event:4 more:24                                  4
 *   1 1 1 0 event:4 more:24 (high) | more:32 (low)           8 */
/* clang-format on */
enum {
    INLAY_TRACE_SHORT_TIME = 1 << 15,
    INLAY_TRACE_SHORT_SP = 64 * 16,
    INLAY_TRACE_SHORT_WHAT = 1 << 10,
    INLAY_TRACE_LONG_TIME = 1 << 26,
    INLAY_TRACE_LONG_SP = 65536 * 8,
    INLAY_TRACE_LONG_WHAT = 1 << 20,
    INLAY_TRACE_EVENTS_MOST = 16,
    INLAY_TRACE_BY_ROUTINE = 16, /* an event: what a routine of the user's stores */
    INLAY_TRACE_SHORT_MORE = 1 << 24,
};
#define INLAY_TRACE_IS_LONG  0x80000000u
#define INLAY_TRACE_IS_WHOLE 0xc0000000u
#define INLAY_TRACE_IS_MUCH  0xe0000000u
#define INLAY_TRACE_IS_MORE  0xf0000000u
#define INLAY_TRACE_MUCH     ((uint64_t)1 << 56)

/* In place of how the process has ended, as wait tells it: the recorder was not told. */
#define INLAY_TRACE_STATUS_UNKNOWN 0x7f

typedef enum inlay_trace_note_kind {
    INLAY_TRACE_IMAGE = 1,
    INLAY_TRACE_PROC,
    INLAY_TRACE_THREAD_BEGINS,
    INLAY_TRACE_THREAD_ENDS,
    INLAY_TRACE_COUNT,
    INLAY_TRACE_END,         /* the process's */
    INLAY_TRACE_VIEW,        /* what the report is asked for, and what was not recorded */
    INLAY_TRACE_EVENT,       /* what is counted beside the clock: its name, and why it is not */
    INLAY_TRACE_EVENT_TOTAL, /* at a thread's end */
    INLAY_TRACE_TYPES,       /* of a procedure's arguments and its result */
} inlay_trace_note_kind;

typedef struct inlay_trace_note {
    uint32_t kind;
    uint32_t bytes;  /* of the whole, a multiple of 8 */
    uint32_t number; /* of the image, procedure, thread, event (from 0); total: of the thread; end: records of all
                        threads that found no room, UINT32_MAX: or more */
    uint32_t more; /* procedure: its image; thread: its tid; end: the status as from waitpid; event: inlay_perf_how, or
                      INLAY_TRACE_BY_ROUTINE;
                      total: the event's number */
    uint64_t a, b; /* image: low, high; procedure: address, size; thread: time; count: calls; end: time,
                      CLOCK_MONOTONIC; view: calls shorter than so many ns, deeper than so many frames are left out;
                      event: what a reading itself counts, and its ticks, in 1/1000; total: its value, ns */
    uint64_t c;    /* image: bias; procedure: inlay_trace_how | flags; end: cycles that threads have spent in Inlay;
                      view: one call in so many was recorded | 1 << 63: only of those called more than so often;
                      total: ns that it was counted */
    char text[];   /* image: path; procedure: its name, and why it was not instrumented; types: docs/trace-format.md */
} inlay_trace_note;

typedef enum inlay_trace_how {
    INLAY_TRACE_DONE,  /* its entry and its exits */
    INLAY_TRACE_STUB,  /* likewise: an import's */
    INLAY_TRACE_UNMET, /* asked for, and its code has not been met */
    INLAY_TRACE_REFUSED,
    INLAY_TRACE_HOW = 0xff,       /* the bits of these; and flags: */
    INLAY_TRACE_TRIGGER = 1 << 8, /* only what such call is wanted */
} inlay_trace_how;

#endif
