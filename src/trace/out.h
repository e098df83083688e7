/* How reports and exports write things. */
#ifndef INL_TRACE_OUT_H
#define INL_TRACE_OUT_H

#include "trace/profile.h"

#include <stdio.h>

/* With quotes and escapes, as JSON has it. */
void trace_put_string(FILE *, const char *);
/* "1.234 ms", right-aligned in `width` columns. */
void trace_put_time(FILE *, int width, double ns);
/* The name that people write, but for clashes the same for the same procedure; "?" with nothing known. */
const char *trace_name(const trace_proc *);

/* What needs records says so of one that has none. */
inl_status trace_refuse_counts(const trace_session *, inl_error *);

/* One procedure to a line, those with most time of their own first. */
typedef struct trace_view {
    bool json, threads, raw;
    uint64_t top; /* lines, 0: all */
    uint64_t threshold;
    uint32_t depth;
    int (*order)(const void *, const void *);
} trace_view;

inl_status trace_put_report(FILE *, const trace_file *, const trace_view *, inl_error *);
inl_status trace_put_tree(FILE *, const trace_file *, const trace_view *, inl_error *);
inl_status trace_put_graph(FILE *, const trace_file *, const char *pattern, const trace_view *, inl_error *);
inl_status trace_put_diff(FILE *, const trace_file *, const trace_file *, const trace_view *, inl_error *);

typedef inl_status trace_exporter(FILE *, const trace_file *, const trace_view *, inl_error *);
trace_exporter trace_export_chrome, trace_export_folded, trace_export_callgrind;

#endif
