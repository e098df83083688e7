/* A thread's records, one after the other: which procedures are entered and left, and when.
 *
 * Times are nanoseconds since the session began, on a clock that stands still while records are made: from each step
 * between two records what one costs is taken off, as calibrated (`raw`: nothing is). So whatever is computed from them
 * is without it. */
#ifndef INL_TRACE_REPLAY_H
#define INL_TRACE_REPLAY_H

#include "trace/filter.h"

#include <inlay/frames.h>

enum { TRACE_RESULT_MOST = 8 }; /* records of a result */

typedef struct trace_replay {
    const trace_session *s;
    const trace_thread *t;
    bool raw;
    uint32_t event;             /* not 0: `now` is what this one of the events, from 1, has counted, not a time */
    const trace_filter *filter; /* NULL: all calls; those that it leaves out are not told */
    /* `frame` has been entered; its `user`, at first 0, may be set. */
    void (*entered)(struct trace_replay *, inlay_frame *frame, uint64_t now);
    /* Each that was entered; `kept` is false where only now it is known that the filter leaves it out. */
    void (*closed)(struct trace_replay *, const inlay_frame *frame, uint64_t now, bool kept);
    /* An argument of the call that has been entered last, perhaps a piece of it. */
    void (*valued)(struct trace_replay *, const inlay_frame *frame, const inlay_trace_record *);
    /* While `closed` is told of a call: its result. */
    const inlay_trace_record *results;
    uint32_t result_count;
    bool returns; /* while `closed` is told: by an exit of its own */
    bool over;    /* likewise: it is open, and the recording of a thread that goes on ends */
    void *arg;
    inlay_frames frames;
    trace_sieve sieve;
    uint64_t entries, exits; /* records */
    uint64_t strange;        /* of procedures that nothing is known of */
    uint64_t end;            /* the time of the last */
    uint32_t last;           /* the frame entered last, by index; 0: none that is looked at */
    inlay_trace_record pending[TRACE_RESULT_MOST];
    uint32_t pending_count;
    uint64_t counted[INLAY_TRACE_EVENTS_MOST]; /* values of events at the present record */
    uint64_t exit_sp;                          /* of the exit that is being looked at */
} trace_replay;

inl_status trace_replay_run(trace_replay *, inl_error *);

#endif
