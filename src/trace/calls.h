/* A thread's calls, one by one, in the order in which they began: for pictures of time.
 *
 * Each lies within the one that it is nested in, and ends before the next of its depth begins. Times are as recorded,
 * nothing taken off: threads stand beside each other. A coroutine's call goes from its beginning to its end, cut where
 * what it is nested in ends. */
#ifndef INL_TRACE_CALLS_H
#define INL_TRACE_CALLS_H

#include "trace/out.h"

typedef struct trace_call {
    uint64_t start, end;         /* ns since the session began */
    uint32_t proc, depth;        /* depth from 0 */
    uint32_t arguments, results; /* indices of values, from 1; 0: none */
} trace_call;

typedef struct trace_calls {
    INL_VEC(trace_call) list;
    INL_VEC(inlay_trace_record)
    values; /* of a call those that follow each other, with the procedure's number in
               `what`; a record of zeros ends them */
    const trace_session *s;
    bool failed;
    uint64_t threshold;
    uint32_t depth; /* 0: all; deeper ones are left out */
} trace_calls;

/* Into zeroed memory; the caller frees it, whatever the answer. */
inl_status trace_calls_of(trace_calls *, const trace_session *, const trace_thread *, const trace_view *, inl_error *);
void trace_calls_free(trace_calls *);

/* Arguments as "1, \"two\"", a result as "3"; cut where `out` ends. Empty: there are none. */
const char *trace_calls_values(const trace_calls *, uint32_t first, char *out, size_t size);

/* The same one by one, up to a record whose `what` is 0: trace_value_text answers with the next. */
const inlay_trace_record *trace_calls_first(const trace_calls *, uint32_t first);
const inlay_trace_record *trace_value_text(const trace_calls *, const inlay_trace_record *, char *out, size_t size);
/* What is told of its type; NULL: it is a plain number, a pointer or a string. */
const char *trace_value_layout(const trace_calls *, const inlay_trace_record *);
/* A string's bytes (TRACE_STRING_MOST at most, no zero), where it is not INLAY_TRACE_UNREADABLE. */
enum { TRACE_STRING_MOST = 256 };
const inlay_trace_record *trace_value_string(const inlay_trace_record *, char *out, size_t *length, bool *cut);
/* A number with its sign; `real`: of form f. */
void trace_value_bits(const inlay_trace_record *, uint64_t *bits, double *real);
static inline unsigned trace_value_number(const inlay_trace_record *v) { return v->stack & 0xff; }
static inline unsigned trace_value_form(const inlay_trace_record *v) { return v->stack >> 8 & 0xff; }
static inline unsigned trace_value_size(const inlay_trace_record *v) { return v->stack >> 16 & 0xff; }

/* For those who tell beginnings and ends in order of time. */
typedef struct trace_call_teller {
    void (*begins)(const trace_call *, void *arg);
    void (*ends)(const trace_call *, void *arg);
    void *arg;
} trace_call_teller;
inl_status trace_calls_tell(const trace_calls *, const trace_call_teller *, inl_error *);

#endif
