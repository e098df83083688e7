/* Which calls of a recording are looked at.
 *
 * What the recording itself asks for (`inlay trace --inside`) and what a report asks for hold both. Frames are told
 * one by one, as they begin and end, beside those of a replay: */
#ifndef INL_TRACE_FILTER_H
#define INL_TRACE_FILTER_H

#include "trace/reader.h"

typedef enum trace_filter_kind { TRACE_INSIDE, TRACE_OUTSIDE, TRACE_LEADING, TRACE_FILTERS } trace_filter_kind;
enum { TRACE_FILTER_MOST = 16 };

/* Zeroed: all calls. */
typedef struct trace_filter {
    const char *patterns[TRACE_FILTERS][TRACE_FILTER_MOST];
    unsigned counts[TRACE_FILTERS];
} trace_filter;

/* False: there is no room for another. */
bool trace_filter_add(trace_filter *, trace_filter_kind, const char *pattern);
/* "f" stands for "f(int)", too. */
bool trace_matches(const char *pattern, const trace_proc *);

/* A filter's state along a thread; zeroed: none. */
typedef struct trace_sieve {
    uint8_t *procs; /* by number - 1: bits 1 << trace_filter_kind; NULL: all is let through */
    uint8_t *marks; /* by the frame's index */
    bool asks[TRACE_FILTERS];
} trace_sieve;

/* `frames`: how many there may be. */
inl_status trace_sieve_begin(trace_sieve *, const trace_filter *, const trace_session *, uint32_t frames, inl_error *);
void trace_sieve_end(trace_sieve *);
/* A frame begins on top of `below` (0: none); the answer: it is looked at. Of one that is to lead to a procedure this
 * is known when it ends only. */
bool trace_sieve_enter(trace_sieve *, uint32_t proc, uint32_t frame, uint32_t below);
/* A frame ends. False: it is not looked at. */
bool trace_sieve_close(trace_sieve *, uint32_t frame, uint32_t below);
/* Whether an open frame passed when it began. */
bool trace_sieve_passes(const trace_sieve *, uint32_t frame);

#endif
