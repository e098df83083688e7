/* The flat report: each procedure's calls and times, and which procedures were asked for and not instrumented. */
#include "trace/out.h"

#include <inlay/perf.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const clocks[] = {
    [INLAY_TRACE_COUNTS] = "none", [INLAY_TRACE_CYCLES] = "cycles", [INLAY_TRACE_MONOTONIC] = "monotonic"};
static const char *const hows[] = {[INLAY_TRACE_DONE] = "entry and exits",
                                   [INLAY_TRACE_STUB] = "entry and its jump to the import",
                                   [INLAY_TRACE_UNMET] = "its code was not run",
                                   [INLAY_TRACE_REFUSED] = "left alone"};

static const char *const ways[] = {[INLAY_PERF_NOT] = "not",
                                   [INLAY_PERF_USER] = "in user space (rdpmc)",
                                   [INLAY_PERF_CALL] = "by a system call",
                                   [INLAY_PERF_USAGE] = "from the thread's usage (perf_event_open is not allowed)"};

static const char *image_name(const trace_proc *p) { return p->image ? p->image->name : "?"; }

/* --- text --- */

static void put_clock(FILE *f, const trace_session *s, bool raw)
{
    if (s->clock == INLAY_TRACE_COUNTS) {
        fprintf(f, "calls are counted, no times\n");
        return;
    }
    if (s->clock == INLAY_TRACE_MONOTONIC) fprintf(f, "clock: CLOCK_MONOTONIC");
    else fprintf(f, "clock: the processor's, %.3f MHz (measured over ", (double)s->frequency / 1e6);
    if (s->clock == INLAY_TRACE_CYCLES && s->measured > 0) fprintf(f, "%.2f s)", s->measured);
    else if (s->clock == INLAY_TRACE_CYCLES) fprintf(f, "1 ms)");
    fprintf(f, "; a record costs %.1f ns, %s\n", trace_ns(s, s->overhead) / 1000, raw ? "left in" : "taken off");
}

static void put_status(FILE *f, const trace_session *s)
{
    if (!s->has_ended) fprintf(f, "; the end is not in the recording\n");
    else if (s->status == INLAY_TRACE_STATUS_UNKNOWN) fprintf(f, "; ended, its status is not told\n");
    else if (s->status & 0x7f) fprintf(f, "; ended by signal %d\n", s->status & 0x7f);
    else fprintf(f, "; status %d\n", s->status >> 8 & 0xff);
}

static void put_number(FILE *f, uint64_t n, const char *one, const char *many)
{
    fprintf(f, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

static void put_losses(FILE *f, const trace_profile *p, const trace_file *file)
{
    if (p->lost) put_number(f, p->lost, "record was", "records were");
    if (p->lost) fprintf(f, " lost: there was no room for the file\n");
    if (p->overwritten) put_number(f, p->overwritten, "chunk of records has", "chunks of records have");
    if (p->overwritten) fprintf(f, " been written over (--last): earlier times are not there\n");
    if (p->unmatched && !p->s->has_triggers && !p->s->thin)
        put_number(f, p->unmatched, "exit of a call that began before\n", "exits of calls that began before\n");
    if (p->full)
        put_number(f, p->full, "call was nested too deep to be told\n", "calls were nested too deep to be told\n");
    if (p->strange) put_number(f, p->strange, "record of a procedure", "records of procedures");
    if (p->strange) fprintf(f, " that nothing is known of\n");
    if (file->senseless)
        put_number(f, file->senseless, "piece of the file makes no sense and was",
                   "pieces of the file make no sense and were");
    if (file->senseless) fprintf(f, " left out\n");
}

/* Procedures of which not all calls are in the recording. */
static void put_thinned(FILE *f, const trace_profile *p)
{
    const trace_session *s = p->s;
    if (!s->every && !s->thin) return;
    if (s->every) fprintf(f, "one call in %" PRIu64 " of each procedure was recorded", s->every);
    else fprintf(f, "of procedures called more than %" PRIu64 " times fewer calls were recorded", s->thin);
    fprintf(f, "; times are those of recorded calls, and of their callers\n");
    for (size_t i = 0; i < s->procs.count; i++) {
        uint64_t all = s->procs.items[i].count, recorded = p->entered[i];
        if (all > recorded)
            fprintf(f, "  %" PRIu64 " calls, %" PRIu64 " recorded: %s (%s)\n", all, recorded,
                    trace_name(&s->procs.items[i]), image_name(&s->procs.items[i]));
    }
}

static int event_width(const trace_event *e)
{
    int n = (int)strlen(e->name) + 2;
    return n > 12 ? n : 12;
}

/* How events were counted, where there is something to be said. */
static void put_events(FILE *f, const trace_session *s)
{
    for (uint32_t k = 0; k < s->event_count; k++) {
        const trace_event *e = &s->events[k];
        if (e->how == INLAY_PERF_NOT) {
            fprintf(f, "%s was not counted: %s\n", e->name, e->why ? e->why : "?");
            continue;
        }
        if (e->how == INLAY_TRACE_BY_ROUTINE) {
            fprintf(f, "%s: stored by the tool's own routine\n", e->name);
            continue;
        }
        fprintf(f, "%s: read %s; a reading counts %.1f itself, taken off\n", e->name, ways[e->how],
                (double)e->overhead / 1000);
        if (e->running < e->enabled && e->enabled)
            fprintf(f,
                    "%s was counted %.1f %% of the time: there are fewer counters than events; all of it would be "
                    "about %.2f times as much\n",
                    e->name, (double)e->running * 100 / (double)e->enabled,
                    e->running ? (double)e->enabled / (double)e->running : 0);
    }
}

static void put_row(FILE *f, const trace_profile *p, const trace_row *r)
{
    const trace_proc *proc = trace_profile_proc(p, r->proc);
    fprintf(f, "%12" PRIu64, r->calls);
    if (p->s->clock != INLAY_TRACE_COUNTS) {
        const double times[] = {(double)r->self,   (double)r->total, (double)r->least,
                                trace_row_mean(r), (double)r->most,  trace_row_deviation(r)};
        for (size_t k = 0; k < sizeof times / sizeof *times; k++) trace_put_time(f, k < 2 ? 13 : 12, times[k]);
    }
    for (uint32_t k = 0; k < p->s->event_count; k++) {
        const trace_row *counted = &p->events[k].rows[r->proc - 1];
        fprintf(f, "%*" PRIu64 "%14" PRIu64, event_width(&p->s->events[k]), counted->self, counted->total);
    }
    fprintf(f, "  %s (%s)\n", trace_name(proc), image_name(proc));
}

/* An event's own column and that with what was called. */
static void put_columns(FILE *f, const trace_profile *p)
{
    fprintf(f, "%12s", "calls");
    if (p->s->clock != INLAY_TRACE_COUNTS)
        fprintf(f, "%13s%13s%12s%12s%12s%12s", "self", "total", "least", "average", "most", "deviation");
    for (uint32_t k = 0; k < p->s->event_count; k++)
        fprintf(f, "%*s%14s", event_width(&p->s->events[k]), p->s->events[k].name, "with callees");
    fprintf(f, "  procedure\n");
}

static void put_rows(FILE *f, const trace_profile *p, const trace_view *v)
{
    size_t count, shown;
    trace_row **rows = trace_profile_rows(p, &count, v->order ? v->order : trace_by_self);
    shown = rows && v->top && v->top < count ? (size_t)v->top : count;
    put_columns(f, p);
    for (size_t i = 0; rows && i < shown; i++) put_row(f, p, rows[i]);
    if (shown < count) fprintf(f, "  ... %zu more (--top=0 shows all)\n", count - shown);
    free(rows);
}

static int by_reason(const void *a, const void *b)
{
    const trace_proc *x = *(trace_proc *const *)a, *y = *(trace_proc *const *)b;
    int order = strcmp(x->why ? x->why : "?", y->why ? y->why : "?");
    return order ? order : x->address < y->address ? -1 : x->address > y->address;
}

static void put_asked(FILE *f, const trace_session *s)
{
    fprintf(f, "\nasked for:\n");
    for (size_t i = 0; i < s->procs.count; i++) {
        const trace_proc *p = &s->procs.items[i];
        if (!p->known) continue;
        fprintf(f, "  %s (%s): %s%s%s\n", trace_name(p), image_name(p), hows[p->how], p->why ? ": " : "",
                p->why ? p->why : "");
    }
}

/* What was asked for: by what became of it. */
static void put_coverage(FILE *f, const trace_session *s, const trace_view *v)
{
    size_t done = 0, unmet = 0, n = 0;
    const trace_proc **refused = calloc(s->procs.count + 1, sizeof *refused);
    for (size_t i = 0; refused && i < s->procs.count; i++) {
        const trace_proc *p = &s->procs.items[i];
        done += p->known && p->how <= INLAY_TRACE_STUB;
        unmet += p->known && p->how == INLAY_TRACE_UNMET;
        if (p->known && p->how == INLAY_TRACE_REFUSED) refused[n++] = p;
    }
    fputc('\n', f);
    put_number(f, done, "procedure instrumented at its entry and exits",
               "procedures instrumented at their entry and exits");
    if (unmet) fprintf(f, ", %zu whose code was not run", unmet);
    fprintf(f, ", %zu not instrumented%s\n", n, n ? ":" : "");
    if (n) qsort(refused, n, sizeof *refused, by_reason);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "  %s (%s): %s\n", trace_name(refused[i]), image_name(refused[i]),
                refused[i]->why ? refused[i]->why : "?");
    free(refused);
    if (v->asked) put_asked(f, s);
}

static void put_text(FILE *f, const trace_file *file, const trace_profile *p, const trace_thread *t,
                     const trace_view *v)
{
    const trace_session *s = p->s;
    if (t) {
        fprintf(f, "\nthread %u (%u): %" PRIu64 " records\n", t->number, t->tid, p->records);
    } else {
        fprintf(f, "%s, process %d: %" PRIu64 " records of %zu thread%s", s->program, s->pid, p->records,
                s->threads.count, s->threads.count == 1 ? "" : "s");
        put_status(f, s);
        put_clock(f, s, v->raw);
    }
    put_losses(f, p, file);
    if (!t) put_events(f, s);
    if (!t) put_thinned(f, p);
    if (!t) fputc('\n', f);
    put_rows(f, p, v);
}

/* --- JSON --- */

static void put_json_counted(FILE *f, const trace_profile *p, uint32_t proc)
{
    fprintf(f, ", \"events\": {");
    for (uint32_t k = 0; k < p->s->event_count; k++) {
        const trace_row *counted = &p->events[k].rows[proc - 1];
        if (k) fputs(", ", f);
        trace_put_string(f, p->s->events[k].name);
        fprintf(f, ": {\"self\": %" PRIu64 ", \"total\": %" PRIu64 "}", counted->self, counted->total);
    }
    fputc('}', f);
}

static void put_json_events(FILE *f, const trace_session *s)
{
    static const char *const words[] = {"not", "user", "call", "usage"};
    fprintf(f, ",\n    \"events\": [");
    for (uint32_t k = 0; k < s->event_count; k++) {
        const trace_event *e = &s->events[k];
        fprintf(f, "%s{\"name\": ", k ? ", " : "");
        trace_put_string(f, e->name);
        fprintf(f, ", \"read\": \"%s\", \"overhead\": %.3f, \"enabled_ns\": %" PRIu64 ", \"running_ns\": %" PRIu64,
                e->how == INLAY_TRACE_BY_ROUTINE ? "routine" : words[e->how], (double)e->overhead / 1000, e->enabled,
                e->running);
        if (e->why) fputs(", \"why\": ", f);
        if (e->why) trace_put_string(f, e->why);
        fputc('}', f);
    }
    fputc(']', f);
}

static void put_json_row(FILE *f, const trace_profile *p, const trace_row *r, bool first)
{
    const trace_proc *proc = trace_profile_proc(p, r->proc);
    fprintf(f, "%s\n      {\"name\": ", first ? "" : ",");
    trace_put_string(f, trace_name(proc));
    fprintf(f, ", \"symbol\": ");
    trace_put_string(f, proc->name);
    fprintf(f, ", \"image\": ");
    trace_put_string(f, image_name(proc));
    fprintf(f, ", \"address\": %" PRIu64 ", \"calls\": %" PRIu64, proc->address, r->calls);
    if (p->s->every || p->s->thin) fprintf(f, ", \"counted\": %" PRIu64, proc->count);
    if (p->s->clock != INLAY_TRACE_COUNTS)
        fprintf(f,
                ", \"self_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64
                ", \"average_ns\": %.1f, \"max_ns\": %" PRIu64 ", \"deviation_ns\": %.1f",
                r->self, r->total, r->least, trace_row_mean(r), r->most, trace_row_deviation(r));
    if (p->s->event_count) put_json_counted(f, p, r->proc);
    fputc('}', f);
}

static void put_json_rows(FILE *f, const trace_profile *p, const trace_view *v)
{
    size_t count;
    trace_row **rows = trace_profile_rows(p, &count, v->order ? v->order : trace_by_self);
    fprintf(f, "[");
    for (size_t i = 0; rows && i < count; i++) put_json_row(f, p, rows[i], i == 0);
    fprintf(f, "]");
    free(rows);
}

static void put_json_coverage(FILE *f, const trace_session *s)
{
    bool first = true;
    fprintf(f, ",\n    \"asked_for\": [");
    for (size_t i = 0; i < s->procs.count; i++) {
        const trace_proc *p = &s->procs.items[i];
        if (!p->known) continue;
        fprintf(f, "%s\n      {\"name\": ", first ? "" : ",");
        first = false;
        trace_put_string(f, trace_name(p));
        fprintf(f, ", \"image\": ");
        trace_put_string(f, image_name(p));
        fprintf(f, ", \"file_address\": %" PRIu64 ", \"size\": %" PRIu64, trace_file_address(p), p->size);
        fprintf(f, ", \"instrumented\": %s, \"how\": ", p->how <= INLAY_TRACE_STUB ? "true" : "false");
        trace_put_string(f, p->how == INLAY_TRACE_REFUSED && p->why ? p->why : hows[p->how]);
        fputc('}', f);
    }
    fputc(']', f);
}

/* The status of its exit, or the signal; null: it is the other, or not told. */
static void put_json_end(FILE *f, const trace_session *s)
{
    const bool is_told = s->has_ended && s->status != INLAY_TRACE_STATUS_UNKNOWN;
    const int signal = s->status & 0x7f;
    fprintf(f, ",\n    \"ended\": %s, \"status\": ", s->has_ended ? "true" : "false");
    if (is_told && !signal) fprintf(f, "%d, \"signal\": null", s->status >> 8 & 0xff);
    else if (is_told) fprintf(f, "null, \"signal\": %d", signal);
    else fprintf(f, "null, \"signal\": null");
}

static void put_json_head(FILE *f, const trace_profile *p, const trace_view *v)
{
    const trace_session *s = p->s;
    fprintf(f, "  {\"program\": ");
    trace_put_string(f, s->program);
    fprintf(f, ", \"pid\": %d, \"clock\": \"%s\", \"frequency\": %" PRIu64 ", \"record_ns\": %.2f, \"subtracted\": %s",
            s->pid, clocks[s->clock], s->frequency, trace_ns(s, s->overhead) / 1000, v->raw ? "false" : "true");
    put_json_end(f, s);
    fprintf(f,
            ", \"records\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"overwritten\": %" PRIu64 ", \"unmatched\": %" PRIu64
            ", \"left\": %" PRIu64,
            p->records, p->lost, p->overwritten, p->unmatched, p->left);
    if (s->event_count) put_json_events(f, s);
    fprintf(f, ",\n    \"procedures\": ");
}

/* --- the whole --- */

static trace_profile empty(const trace_view *v)
{
    return (trace_profile){.raw = v->raw, .threshold = v->threshold, .depth = v->depth, .filter = &v->filter};
}

static inl_status put_thread(FILE *f, const trace_file *file, const trace_session *s, const trace_thread *t,
                             const trace_view *v, inl_error *e)
{
    trace_profile p = empty(v);
    inl_status st = trace_profile_add(&p, s, t, e);
    if (st == INL_OK && v->json) {
        fprintf(f, "%s\n    {\"thread\": %u, \"tid\": %u, \"procedures\": ", t == s->threads.items ? "" : ",",
                t->number, t->tid);
        put_json_rows(f, &p, v);
        fputc('}', f);
    } else if (st == INL_OK) {
        put_text(f, file, &p, t, v);
    }
    trace_profile_free(&p);
    return st;
}

static inl_status put_threads(FILE *f, const trace_file *file, const trace_session *s, const trace_view *v,
                              inl_error *e)
{
    inl_status st = INL_OK;
    if (v->json) fprintf(f, ",\n    \"threads\": [");
    for (size_t i = 0; i < s->threads.count && st == INL_OK; i++)
        st = put_thread(f, file, s, &s->threads.items[i], v, e);
    if (v->json) fputc(']', f);
    return st;
}

static inl_status put_session(FILE *f, const trace_file *file, const trace_session *s, const trace_view *v,
                              inl_error *e)
{
    trace_profile p = empty(v);
    inl_status st = trace_profile_add(&p, s, NULL, e);
    p.overwritten = s->overwritten;
    if (st == INL_OK && v->json) {
        put_json_head(f, &p, v);
        put_json_rows(f, &p, v);
    } else if (st == INL_OK) {
        put_text(f, file, &p, NULL, v);
    }
    if (st == INL_OK && v->threads) st = put_threads(f, file, s, v, e);
    if (st == INL_OK && v->json) put_json_coverage(f, s);
    else if (st == INL_OK) put_coverage(f, s, v);
    if (v->json) fputc('}', f);
    trace_profile_free(&p);
    return st;
}

inl_status trace_put_report(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = INL_OK;
    if (v->json) fprintf(f, "[\n");
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        if (i) fputs(v->json ? ",\n" : "\n", f);
        st = put_session(f, file, &file->sessions.items[i], v, e);
    }
    if (v->json) fprintf(f, "\n]\n");
    return st;
}
