/* All calls in the order in which they began, a thread after the other: when, how long, with what. */
#include "trace/calls.h"

#include <inttypes.h>

enum { MOST_VALUES = 1024 };

static void put_text(FILE *f, const trace_session *s, const trace_calls *c, const trace_call *call)
{
    char values[MOST_VALUES];
    trace_put_time(f, 14, (double)call->start);
    trace_put_time(f, 14, (double)(call->end - call->start));
    fprintf(f, "  %*s%s", (int)(call->depth < 60 ? call->depth : 60) * 2, "",
            trace_name(&s->procs.items[call->proc - 1]));
    if (call->arguments) fprintf(f, "(%s)", trace_calls_values(c, call->arguments, values, sizeof values));
    if (call->results) fprintf(f, " = %s", trace_calls_values(c, call->results, values, sizeof values));
    fputc('\n', f);
}

static void put_json(FILE *f, const trace_session *s, const trace_calls *c, const trace_call *call, bool first)
{
    char values[MOST_VALUES];
    fprintf(f, "%s\n    {\"start_ns\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"depth\": %u, \"name\": ", first ? "" : ",",
            call->start, call->end - call->start, call->depth);
    trace_put_string(f, trace_name(&s->procs.items[call->proc - 1]));
    if (call->arguments) {
        fputs(", \"arguments\": ", f);
        trace_put_string(f, trace_calls_values(c, call->arguments, values, sizeof values));
    }
    if (call->results) {
        fputs(", \"result\": ", f);
        trace_put_string(f, trace_calls_values(c, call->results, values, sizeof values));
    }
    fputc('}', f);
}

static inl_status put_thread(FILE *f, const trace_session *s, const trace_thread *t, const trace_view *v, inl_error *e)
{
    trace_calls c = {0};
    inl_status st = trace_calls_of(&c, s, t, v, e);
    size_t shown = v->top && v->top < c.list.count ? (size_t)v->top : c.list.count;
    if (v->json) fprintf(f, "{\"program\": ");
    if (v->json) trace_put_string(f, s->program);
    if (v->json) fprintf(f, ", \"pid\": %d, \"thread\": %u, \"tid\": %u, \"calls\": [", s->pid, t->number, t->tid);
    else
        fprintf(f, "%s, process %d, thread %u (%u)\n\n%14s%14s  procedure\n", s->program, s->pid, t->number, t->tid,
                "begins", "takes");
    for (size_t i = 0; i < shown && st == INL_OK; i++) {
        if (v->json) put_json(f, s, &c, &c.list.items[i], i == 0);
        else put_text(f, s, &c, &c.list.items[i]);
    }
    if (v->json) fputs("]}", f);
    else if (shown < c.list.count) fprintf(f, "  ... %zu more (--top=0 shows all)\n", c.list.count - shown);
    trace_calls_free(&c);
    return st;
}

inl_status trace_put_list(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = INL_OK;
    bool any = false;
    if (v->json) fputs("[", f);
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        const trace_session *s = &file->sessions.items[i];
        st = trace_refuse_counts(s, e);
        for (size_t k = 0; k < s->threads.count && st == INL_OK; k++) {
            if (any) fputs(v->json ? ",\n" : "\n", f);
            any = true;
            st = put_thread(f, s, &s->threads.items[k], v, e);
        }
    }
    if (v->json) fputs("]\n", f);
    return st;
}
