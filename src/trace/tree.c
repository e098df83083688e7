/* The tree of calls, and one procedure's callers and callees. */
#include "trace/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static inl_status make(trace_profile *p, const trace_session *s, const trace_view *v, inl_error *e)
{
    *p = (trace_profile){.raw = v->raw, .threshold = v->threshold, .depth = v->depth, .filter = &v->filter};
    inl_status st = trace_profile_add(p, s, NULL, e);
    if (st == INL_OK && !trace_profile_sort(p)) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return st;
}

static void put_head(FILE *f, const trace_session *s, const char *columns)
{
    fprintf(f, "%s, process %d\n\n%s\n", s->program, s->pid, columns);
}

/* --- the tree --- */

static void put_line(FILE *f, const trace_profile *p, uint32_t at, uint32_t depth)
{
    const trace_node *n = &p->nodes.items[at];
    trace_put_time(f, 12, (double)n->total);
    trace_put_time(f, 12, (double)n->self);
    fprintf(f, "%12" PRIu64 "  %*s%s\n", n->calls, (int)(depth - 1) * 2, "",
            trace_name(trace_profile_proc(p, n->proc)));
}

static void put_json_tree(FILE *f, const trace_profile *p, uint64_t most)
{
    uint32_t depth = 0, open = 0;
    uint64_t shown = 0;
    fprintf(f, "{\"program\": ");
    trace_put_string(f, p->s->program);
    fprintf(f, ", \"pid\": %d, \"tree\": [", p->s->pid);
    for (uint32_t at = 0; (at = trace_profile_next(p, at, &depth)) && (!most || shown < most); shown++) {
        const trace_node *n = &p->nodes.items[at];
        for (uint32_t k = depth; k <= open; k++) fputs("]}", f);
        fprintf(f, "%s\n{\"name\": ", depth <= open ? "," : "");
        trace_put_string(f, trace_name(trace_profile_proc(p, n->proc)));
        fprintf(f, ", \"calls\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"self_ns\": %" PRIu64 ", \"callees\": [",
                n->calls, n->total, n->self);
        open = depth;
    }
    for (; open; open--) fputs("]}", f);
    fputs("]}", f);
}

static void put_text_tree(FILE *f, const trace_profile *p, uint64_t most)
{
    uint32_t depth = 0;
    uint64_t shown = 0;
    put_head(f, p->s, "       total        self       calls  procedure");
    for (uint32_t at = 0; (at = trace_profile_next(p, at, &depth));) {
        if (most && ++shown > most) {
            fprintf(f, "  ... more (--top=0 shows all)\n");
            break;
        }
        put_line(f, p, at, depth);
    }
}

inl_status trace_put_tree(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    inl_status st = INL_OK;
    if (v->json) fputs("[", f);
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        trace_profile p = {0};
        st = trace_refuse_counts(&file->sessions.items[i], e);
        if (st == INL_OK) st = make(&p, &file->sessions.items[i], v, e);
        if (st == INL_OK && i) fputs(v->json ? ",\n" : "\n", f);
        if (st == INL_OK && v->json) put_json_tree(f, &p, v->top);
        else if (st == INL_OK) put_text_tree(f, &p, v->top);
        trace_profile_free(&p);
    }
    if (v->json) fputs("]\n", f);
    return st;
}

/* --- the graph --- */

typedef struct edge {
    uint32_t proc; /* 0: nobody that was instrumented */
    uint64_t calls, total;
} edge;
typedef struct edges {
    INL_VEC(edge) list;
    inl_map at;
} edges;

static bool add_edge(edges *to, uint32_t proc, uint64_t calls, uint64_t total)
{
    uint64_t at;
    if (!inl_map_get(&to->at, proc, &at)) {
        at = to->list.count;
        if (!inl_vec_push(&to->list, (edge){.proc = proc}) || !inl_map_put(&to->at, proc, at)) return false;
    }
    to->list.items[at].calls += calls;
    to->list.items[at].total += total;
    return true;
}

static int by_total(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->total != y->total) return x->total < y->total ? 1 : -1;
    return x->proc < y->proc ? -1 : x->proc > y->proc;
}

static void put_edges(FILE *f, const trace_profile *p, edges *of, bool json)
{
    if (of->list.count) qsort(of->list.items, of->list.count, sizeof *of->list.items, by_total);
    for (size_t i = 0; i < of->list.count; i++) {
        const edge *x = &of->list.items[i];
        const char *name = x->proc ? trace_name(trace_profile_proc(p, x->proc)) : "(outside)";
        if (json) {
            fprintf(f, "%s{\"name\": ", i ? ", " : "");
            trace_put_string(f, name);
            fprintf(f, ", \"calls\": %" PRIu64 ", \"total_ns\": %" PRIu64 "}", x->calls, x->total);
        } else {
            trace_put_time(f, 16, (double)x->total);
            fprintf(f, "%12" PRIu64 "    %s\n", x->calls, name);
        }
    }
    inl_vec_free(&of->list);
    inl_map_free(&of->at);
}

/* Time of calls within a call of the same procedure is in that one's. */
static bool find_edges(const trace_profile *p, uint32_t proc, edges *callers, edges *callees)
{
    bool good = true;
    for (size_t i = 1; i < p->nodes.count && good; i++) {
        const trace_node *n = &p->nodes.items[i];
        uint32_t caller = p->nodes.items[n->parent].proc;
        uint64_t total = n->is_again ? 0 : n->total;
        if (!n->calls) continue;
        if (n->proc == proc) good = add_edge(callers, caller, n->calls, total);
        if (caller == proc && good) good = add_edge(callees, n->proc, n->calls, total);
    }
    return good;
}

static inl_status put_proc(FILE *f, const trace_profile *p, const trace_row *row, bool json, bool first, inl_error *e)
{
    edges callers = {0}, callees = {0};
    const char *name = trace_name(trace_profile_proc(p, row->proc));
    bool good = find_edges(p, row->proc, &callers, &callees);
    if (json) {
        fprintf(f, "%s\n{\"name\": ", first ? "" : ",");
        trace_put_string(f, name);
        fprintf(f, ", \"calls\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"self_ns\": %" PRIu64 ", \"callers\": [",
                row->calls, row->total, row->self);
        put_edges(f, p, &callers, true);
        fputs("], \"callees\": [", f);
        put_edges(f, p, &callees, true);
        fputs("]}", f);
    } else {
        fprintf(f, "\n  called by\n");
        put_edges(f, p, &callers, false);
        trace_put_time(f, 13, (double)row->total);
        fprintf(f, "   %12" PRIu64 "  %s, ", row->calls, name);
        trace_put_time(f, 0, (double)row->self);
        fprintf(f, " of its own\n  calls\n");
        put_edges(f, p, &callees, false);
    }
    return good ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
}

static inl_status put_graph(FILE *f, const trace_session *s, const char *pattern, const trace_view *v, bool *found,
                            inl_error *e)
{
    trace_profile p = {0};
    inl_status st = make(&p, s, v, e);
    for (size_t i = 0; i < s->procs.count && st == INL_OK; i++) {
        if (!p.rows[i].calls || !trace_matches(pattern, &s->procs.items[i])) continue;
        if (!*found && !v->json) put_head(f, s, "       total       calls  procedure");
        st = put_proc(f, &p, &p.rows[i], v->json, !*found, e);
        *found = true;
    }
    trace_profile_free(&p);
    return st;
}

inl_status trace_put_graph(FILE *f, const trace_file *file, const char *pattern, const trace_view *v, inl_error *e)
{
    bool found = false;
    inl_status st = INL_OK;
    if (v->json) fputs("[", f);
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        st = trace_refuse_counts(&file->sessions.items[i], e);
        if (st == INL_OK) st = put_graph(f, &file->sessions.items[i], pattern, v, &found, e);
    }
    if (v->json) fputs("]\n", f);
    if (st == INL_OK && !found)
        return inl_fail(e, INL_ERR_NOT_FOUND, "no procedure '%s' was called in %s", pattern, file->path);
    return st;
}
