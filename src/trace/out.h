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
/* Where it is by its file's own addresses. */
uint64_t trace_file_address(const trace_proc *);

/* An event's name, of letters, digits and '_' alone. */
void trace_put_event(FILE *, const trace_event *);
/* Nanoseconds, not a number of times? */
bool trace_event_is_time(const trace_event *);

/* What needs records says so of one that has none. */
inl_status trace_refuse_counts(const trace_session *, inl_error *);
/* And what is made of one program of a file that has several. */
inl_status trace_refuse_many(const trace_file *, const char *form, inl_error *);

/* One procedure to a line, those with most time of their own first. */
typedef struct trace_view {
    bool json, threads, raw;
    bool entries; /* each entry and exit, instead of calls */
    bool asked;   /* each procedure that was asked for, with what became of it */
    uint64_t top; /* lines, 0: all */
    uint64_t threshold;
    uint32_t depth;
    int (*order)(const void *, const void *);
    trace_filter filter;
} trace_view;

/* All has to be out by now. Why it is not, an errno; 0: it is. A stream keeps no more of an error than that there was
 * one, so what is lost anyway gets one byte more. */
int trace_out_error(FILE *);

inl_status trace_put_report(FILE *, const trace_file *, const trace_view *, inl_error *);
inl_status trace_put_tree(FILE *, const trace_file *, const trace_view *, inl_error *);
inl_status trace_put_graph(FILE *, const trace_file *, const char *pattern, const trace_view *, inl_error *);
inl_status trace_put_diff(FILE *, const trace_file *, const trace_file *, const trace_view *, inl_error *);

inl_status trace_put_list(FILE *, const trace_file *, const trace_view *, inl_error *);
inl_status trace_put_entries(FILE *, const trace_file *, const trace_view *, inl_error *);
/* In the terminal that standard input and output are. */
inl_status trace_browse(const trace_file *, const trace_view *, inl_error *);

typedef inl_status trace_exporter(FILE *, const trace_file *, const trace_view *, inl_error *);
trace_exporter trace_export_chrome, trace_export_folded, trace_export_callgrind, trace_export_perfetto,
    trace_export_pprof, trace_export_html;
/* What counters had at each entry and exit, in these forms (export_counters.c). */
inl_status trace_chrome_counters(FILE *, const trace_session *, const trace_thread *, const trace_view *, inl_error *);
inl_status trace_export_pprof_one(FILE *, trace_profile *, inl_error *);
/* Into a directory, which is made. */
inl_status trace_export_uftrace(const char *path, const trace_file *, const trace_view *, inl_error *);

#endif
