/* Recordings in other programs' forms: Chrome's trace events, folded stacks (for flame graphs), callgrind's. */
#include "trace/calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- Chrome: one event a call, with its beginning and length in microseconds --- */

typedef struct chrome {
    FILE *f;
    uint64_t events;
} chrome;

static void put_call(chrome *c, const trace_session *s, const trace_thread *t, const trace_calls *of,
                     const trace_call *call)
{
    char values[1024];
    uint64_t length = call->end - call->start;
    fprintf(c->f, "%s\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,\"name\":",
            c->events++ ? "," : "", s->pid, t->tid, call->start / 1000, (unsigned)(call->start % 1000), length / 1000,
            (unsigned)(length % 1000));
    trace_put_string(c->f, trace_name(&s->procs.items[call->proc - 1]));
    if (call->arguments || call->results) {
        fputs(",\"args\":{\"arguments\":", c->f);
        trace_put_string(c->f, trace_calls_values(of, call->arguments, values, sizeof values));
        fputs(",\"result\":", c->f);
        trace_put_string(c->f, trace_calls_values(of, call->results, values, sizeof values));
        fputc('}', c->f);
    }
    fputc('}', c->f);
}

static inl_status put_thread(chrome *c, const trace_session *s, const trace_thread *t, const trace_view *v,
                             inl_error *e)
{
    trace_calls calls = {0};
    inl_status st = trace_calls_of(&calls, s, t, v, e);
    for (size_t i = 0; i < calls.list.count && st == INL_OK; i++) put_call(c, s, t, &calls, &calls.list.items[i]);
    trace_calls_free(&calls);
    return st == INL_OK ? trace_chrome_counters(c->f, s, t, v, e) : st;
}

static void put_process(chrome *c, const trace_session *s)
{
    fprintf(c->f, "%s\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":", c->events++ ? "," : "",
            s->pid);
    trace_put_string(c->f, s->program);
    fputs("}}", c->f);
}

/* Threads stand beside each other, so their times stay as they were recorded. */
inl_status trace_export_chrome(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    chrome c = {.f = f};
    inl_status st = INL_OK;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", f);
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        const trace_session *s = &file->sessions.items[i];
        st = trace_refuse_counts(s, e);
        put_process(&c, s);
        for (size_t k = 0; k < s->threads.count && st == INL_OK; k++)
            st = put_thread(&c, s, &s->threads.items[k], v, e);
    }
    fputs("\n]}\n", f);
    return st;
}

/* --- what is made from the tree --- */

static inl_status each_profile(FILE *f, const trace_file *file, const trace_view *v,
                               inl_status (*put)(FILE *, trace_profile *, inl_error *), inl_error *e)
{
    inl_status st = INL_OK;
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        trace_profile p = {.raw = v->raw, .threshold = v->threshold, .depth = v->depth, .filter = &v->filter};
        st = trace_refuse_counts(&file->sessions.items[i], e);
        if (st == INL_OK) st = trace_profile_add(&p, &file->sessions.items[i], NULL, e);
        if (st == INL_OK) st = put(f, &p, e);
        trace_profile_free(&p);
    }
    return st;
}

/* --- folded stacks: "main;f;g 1234", in nanoseconds --- */

/* ';' divides names, and a line ends at its end. */
static void put_folded(FILE *f, const char *name)
{
    for (; *name; name++) fputc(*name == ';' || *name == '\n' ? ':' : *name, f);
}

static inl_status put_stacks(FILE *f, trace_profile *p, inl_error *e)
{
    uint32_t depth = 0, *way = calloc(p->nodes.count + 1, sizeof *way);
    if (!way || !trace_profile_sort(p)) {
        free(way);
        return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    }
    for (uint32_t at = 0; (at = trace_profile_next(p, at, &depth));) {
        way[depth] = p->nodes.items[at].proc;
        if (!p->nodes.items[at].self) continue;
        for (uint32_t k = 1; k <= depth; k++) {
            if (k > 1) fputc(';', f);
            put_folded(f, trace_name(trace_profile_proc(p, way[k])));
        }
        fprintf(f, " %" PRIu64 "\n", p->nodes.items[at].self);
    }
    free(way);
    return INL_OK;
}

inl_status trace_export_folded(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    return each_profile(f, file, v, put_stacks, e);
}

/* --- callgrind: each procedure's own cost, and that of its calls of each other --- */

/* A call from one to another, over all ways. */
typedef struct edge {
    uint32_t caller, callee;
    uint64_t calls, total, counted[INLAY_TRACE_EVENTS_MOST];
} edge;

static int by_caller(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->caller != y->caller) return x->caller < y->caller ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static edge *edges_of(const trace_profile *p, size_t *count)
{
    size_t n = 0;
    edge *list = calloc(p->nodes.count + 1, sizeof *list);
    for (size_t i = 1; i < p->nodes.count && list; i++) {
        const trace_node *node = &p->nodes.items[i];
        uint32_t caller = p->nodes.items[node->parent].proc;
        if (!caller || !node->calls) continue;
        list[n] = (edge){caller, node->proc, node->calls, node->total, {0}};
        for (uint32_t k = 0; k < p->s->event_count; k++) list[n].counted[k] = p->events[k].nodes.items[i].total;
        n++;
    }
    if (n) qsort(list, n, sizeof *list, by_caller);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && !by_caller(&list[kept - 1], &list[i])) {
            list[kept - 1].calls += list[i].calls;
            list[kept - 1].total += list[i].total;
            for (uint32_t k = 0; k < p->s->event_count; k++) list[kept - 1].counted[k] += list[i].counted[k];
        } else {
            list[kept++] = list[i];
        }
    }
    *count = kept;
    return list;
}

/* On one line: what is none of a text's own characters is a space. */
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++) fputc((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, f);
    fputc('\n', f);
}

/* A number and a name where a procedure is named first; names of one line. */
static void put_name(FILE *f, const char *key, const trace_profile *p, uint32_t proc, bool *named)
{
    fprintf(f, "%s=(%u)%s", key, proc, named[proc] ? "" : " ");
    put_text(f, named[proc] ? "" : trace_name(trace_profile_proc(p, proc)));
    named[proc] = true;
}

static void put_image(FILE *f, const char *key, const trace_proc *p)
{
    fprintf(f, "%s=", key);
    put_text(f, p->image ? p->image->path : "?");
}

static void put_cost(FILE *f, const trace_profile *p, uint32_t proc, const edge *edges, size_t count, bool *named)
{
    put_image(f, "ob", trace_profile_proc(p, proc));
    fprintf(f, "fl=???\n");
    put_name(f, "fn", p, proc, named);
    fprintf(f, "0 %" PRIu64, p->rows[proc - 1].self);
    for (uint32_t k = 0; k < p->s->event_count; k++) fprintf(f, " %" PRIu64, p->events[k].rows[proc - 1].self);
    fputc('\n', f);
    for (size_t i = 0; i < count; i++) {
        put_image(f, "cob", trace_profile_proc(p, edges[i].callee));
        put_name(f, "cfn", p, edges[i].callee, named);
        fprintf(f, "calls=%" PRIu64 " 0\n0 %" PRIu64, edges[i].calls, edges[i].total);
        for (uint32_t k = 0; k < p->s->event_count; k++) fprintf(f, " %" PRIu64, edges[i].counted[k]);
        fputc('\n', f);
    }
    fputc('\n', f);
}

static uint64_t sum_of(const trace_profile *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->s->procs.count; i++) sum += p->rows[i].self;
    return sum;
}

static void put_sums(FILE *f, const char *key, const trace_profile *p)
{
    fprintf(f, "%s: %" PRIu64, key, sum_of(p));
    for (uint32_t k = 0; k < p->s->event_count; k++) fprintf(f, " %" PRIu64, sum_of(&p->events[k]));
    fputc('\n', f);
}

static inl_status put_callgrind(FILE *f, trace_profile *p, inl_error *e)
{
    size_t count, at = 0;
    edge *edges = edges_of(p, &count);
    bool *named = calloc(p->s->procs.count + 2, sizeof *named);
    fprintf(f, "# callgrind format\nversion: 1\ncreator: inlay trace\npid: %d\ncmd: ", p->s->pid);
    put_text(f, p->s->program);
    fputs("part: 1\n\npositions: line\nevents: ns", f);
    for (uint32_t k = 0; k < p->s->event_count; k++) {
        fputc(' ', f);
        trace_put_event(f, &p->s->events[k]);
    }
    fputc('\n', f);
    put_sums(f, "summary", p);
    fputc('\n', f);
    for (uint32_t proc = 1; proc <= p->s->procs.count && edges && named; proc++) {
        size_t first = at;
        while (at < count && edges[at].caller == proc) at++;
        if (p->rows[proc - 1].calls) put_cost(f, p, proc, edges + first, at - first, named);
    }
    put_sums(f, "totals", p);
    bool good = edges && named;
    free(edges);
    free(named);
    return good ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
}

inl_status trace_export_callgrind(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = trace_refuse_many(file, "a callgrind file", e);
    return st == INL_OK ? each_profile(f, file, v, put_callgrind, e) : st;
}

inl_status trace_export_pprof(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = trace_refuse_many(file, "a profile of pprof's", e);
    return st == INL_OK ? each_profile(f, file, v, trace_export_pprof_one, e) : st;
}
