/* One page that needs no network: page.html with the recording as JSON in its midst. It shows a flame graph, a timeline
 * and the table of procedures.
 *
 * Numbers as the page reads them: nodes are [procedure, parent, calls, total, self], rows [procedure, calls, self,
 * total, least, most, average], calls of the timeline [start, length, procedure, depth] and, where they were recorded,
 * the arguments and the result as text; procedures are indices of names. */
#include "base/json_text.h"
#include "trace/calls.h"
#include "trace_page.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_CALLS = 200 * 1000 }; /* of the timeline: more are slow to draw; the longest are there */

/* As JSON has it, and nothing that ends a script. */
static void put_text(FILE *f, const char *s) { inl_json_text(f, s, "<"); }

/* --- where the time goes --- */

static void put_profile(FILE *f, const trace_profile *p)
{
    fputs(",\n\"names\":[", f);
    for (uint32_t i = 0; i < p->s->procs.count; i++) {
        if (i) fputc(',', f);
        put_text(f, trace_name(&p->s->procs.items[i]));
    }
    fputs("],\n\"nodes\":[[-1,-1,0,0,0]", f);
    for (size_t i = 1; i < p->nodes.count; i++) {
        const trace_node *n = &p->nodes.items[i];
        fprintf(f, ",[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", n->proc - 1, n->parent, n->calls,
                n->total, n->self);
    }
    fputs("],\n\"rows\":[", f);
    for (uint32_t i = 0, any = 0; i < p->s->procs.count; i++) {
        const trace_row *r = &p->rows[i];
        if (!r->calls) continue;
        fprintf(f, "%s[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.1f]", any++ ? "," : "",
                i, r->calls, r->self, r->total, r->least, r->most, trace_row_mean(r));
    }
    fputc(']', f);
}

static inl_status put_nodes(FILE *f, const trace_session *s, const trace_view *v, inl_error *e)
{
    trace_profile p = {.raw = v->raw, .threshold = v->threshold, .depth = v->depth, .filter = &v->filter};
    inl_status st = trace_profile_add(&p, s, NULL, e);
    if (st == INL_OK) put_profile(f, &p);
    trace_profile_free(&p);
    return st;
}

/* --- when --- */

static int longer(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* What is longer than the answer is few enough; who calls takes at least as long, and is there too. */
static inl_status find_least(const trace_calls *threads, size_t count, uint64_t all, uint64_t *least, inl_error *e)
{
    size_t n = 0;
    *least = 0;
    if (all <= MOST_CALLS) return INL_OK;
    uint64_t *lengths = calloc(all, sizeof *lengths);
    if (!lengths) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < threads[i].list.count; k++)
            lengths[n++] = threads[i].list.items[k].end - threads[i].list.items[k].start;
    qsort(lengths, n, sizeof *lengths, longer);
    *least = lengths[MOST_CALLS] + 1;
    free(lengths);
    return INL_OK;
}

static void put_values(FILE *f, const trace_calls *c, const trace_call *call)
{
    char values[2048];
    if (!call->arguments && !call->results) return;
    fputc(',', f);
    put_text(f, trace_calls_values(c, call->arguments, values, sizeof values));
    fputc(',', f);
    put_text(f, trace_calls_values(c, call->results, values, sizeof values));
}

static uint64_t put_calls(FILE *f, const trace_calls *c, uint64_t least)
{
    uint64_t shown = 0;
    for (size_t i = 0; i < c->list.count; i++) {
        const trace_call *call = &c->list.items[i];
        if (call->end - call->start < least) continue;
        fprintf(f, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32, shown++ ? "," : "", call->start,
                call->end - call->start, call->proc - 1, call->depth);
        put_values(f, c, call);
        fputc(']', f);
    }
    return shown;
}

static inl_status put_threads(FILE *f, const trace_session *s, const trace_calls *threads, inl_error *e)
{
    uint64_t all = 0, shown = 0, least, end = 0;
    for (size_t i = 0; i < s->threads.count; i++) {
        all += threads[i].list.count;
        for (size_t k = 0; k < threads[i].list.count; k++)
            if (threads[i].list.items[k].end > end) end = threads[i].list.items[k].end;
    }
    inl_status st = find_least(threads, s->threads.count, all, &least, e);
    if (st != INL_OK) return st;
    fputs(",\n\"threads\":[", f);
    for (size_t i = 0; i < s->threads.count; i++) {
        const trace_thread *t = &s->threads.items[i];
        fprintf(f, "%s{\"number\":%u,\"tid\":%u,\"calls\":[", i ? "," : "", t->number, t->tid);
        shown += put_calls(f, &threads[i], least);
        fputs("]}", f);
    }
    fprintf(f, "],\n\"calls\":%" PRIu64 ",\"shown\":%" PRIu64 ",\"end\":%" PRIu64, all, shown, end);
    return INL_OK;
}

static inl_status put_times(FILE *f, const trace_session *s, const trace_view *v, inl_error *e)
{
    trace_calls *threads = calloc(s->threads.count + 1, sizeof *threads);
    inl_status st = threads ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < s->threads.count && st == INL_OK; i++)
        st = trace_calls_of(&threads[i], s, &s->threads.items[i], v, e);
    if (st == INL_OK) st = put_threads(f, s, threads, e);
    for (size_t i = 0; i < s->threads.count && threads; i++) trace_calls_free(&threads[i]);
    free(threads);
    return st;
}

inl_status trace_export_html(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = INL_OK;
    fwrite(page_before, 1, sizeof page_before, f);
    fputc('[', f);
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        const trace_session *s = &file->sessions.items[i];
        st = trace_refuse_counts(s, e);
        fprintf(f, "%s{\"program\":", i ? ",\n" : "");
        put_text(f, s->program);
        fprintf(f, ",\"pid\":%d", s->pid);
        if (st == INL_OK) st = put_nodes(f, s, v, e);
        if (st == INL_OK) st = put_times(f, s, v, e);
        fputc('}', f);
    }
    fputc(']', f);
    fwrite(page_behind, 1, sizeof page_behind, f);
    return st;
}
