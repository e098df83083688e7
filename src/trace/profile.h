/* What a recording comes to: a tree of calls by their ways, and each procedure's calls and times. */
#ifndef INL_TRACE_PROFILE_H
#define INL_TRACE_PROFILE_H

#include "trace/replay.h"

typedef struct trace_node { /* a procedure, called by this way */
    uint32_t proc;          /* its number; 0: the root */
    uint32_t parent, first, next;
    uint64_t calls, total, self; /* ns */
    bool is_again;               /* one of its callers is the same procedure */
} trace_node;

typedef struct trace_row { /* a procedure */
    uint32_t proc;
    uint64_t calls, self, total; /* total: of those frames that no other of the same procedure is below */
    uint64_t least, most;        /* of a call, in all */
    double sum, squares;         /* of all calls' times: for their mean and deviation */
} trace_row;

typedef struct trace_profile {
    const trace_session *s;
    INL_VEC(trace_node) nodes; /* 0: the root */
    inl_map children;          /* parent << 32 | procedure -> node */
    trace_row *rows;           /* by number - 1 */
    uint32_t *open;            /* frames of a procedure that are there now */
    uint64_t *entered;         /* records of a procedure's entry */
    uint64_t threshold;        /* ns: shorter calls are left out */
    uint32_t depth;            /* deeper ones, too; 0: none */
    uint64_t deeper;           /* self time of those that have been closed, for the one at that depth below them */
    bool raw, failed;
    uint32_t event;               /* not 0: in place of times, what this one of the events, from 1, counted */
    const trace_filter *filter;   /* NULL: all */
    struct trace_profile *events; /* one for each event of the session, with the same nodes; NULL: it has none */
    uint64_t records, lost, overwritten, unmatched, left, full, strange, time;
} trace_profile;

/* Adds a thread; NULL: all. */
inl_status trace_profile_add(trace_profile *, const trace_session *, const trace_thread *, inl_error *);
void trace_profile_free(trace_profile *);
const trace_proc *trace_profile_proc(const trace_profile *, uint32_t number);
/* Children come in order of their time from now on, most first. False: out of memory, and nothing has changed. */
bool trace_profile_sort(trace_profile *);
/* The node behind `at` where callers come before what they call; 0: that was the last. *depth goes along, 0 at the
 * root. */
uint32_t trace_profile_next(const trace_profile *, uint32_t at, uint32_t *depth);
double trace_row_mean(const trace_row *);
double trace_row_deviation(const trace_row *);
/* Procedures that have been called, in an order; the caller frees it. */
trace_row **trace_profile_rows(const trace_profile *, size_t *count, int (*order)(const void *, const void *));
int trace_by_self(const void *, const void *);
int trace_by_total(const void *, const void *);
int trace_by_calls(const void *, const void *);

#endif
