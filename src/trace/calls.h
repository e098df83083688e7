/* A thread's calls, one by one, in the order in which they began: for pictures of time.
 *
 * Each lies within the one that it is nested in, and ends before the next of its depth begins. Times are as recorded,
 * nothing taken off: threads stand beside each other. A coroutine's call goes from its beginning to its end, cut where
 * what it is nested in ends. */
#ifndef INL_TRACE_CALLS_H
#define INL_TRACE_CALLS_H

#include "trace/out.h"

typedef struct trace_call {
    uint64_t start, end;  /* ns since the session began */
    uint32_t proc, depth; /* depth from 0 */
} trace_call;

typedef struct trace_calls {
    INL_VEC(trace_call) list;
    bool failed;
    uint64_t threshold;
    uint32_t depth; /* 0: all; deeper ones are left out */
} trace_calls;

/* Into zeroed memory; the caller frees it, whatever the answer. */
inl_status trace_calls_of(trace_calls *, const trace_session *, const trace_thread *, const trace_view *, inl_error *);
void trace_calls_free(trace_calls *);

/* For those who tell beginnings and ends in order of time. */
typedef struct trace_call_teller {
    void (*begins)(const trace_call *, void *arg);
    void (*ends)(const trace_call *, void *arg);
    void *arg;
} trace_call_teller;
inl_status trace_calls_tell(const trace_calls *, const trace_call_teller *, inl_error *);

#endif
