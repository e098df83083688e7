/* Two recordings beside each other: procedures of one name, with what has changed. */
#include "trace/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct sum {
    const char *name;
    uint64_t calls[2], self[2], total[2];
} sum;
typedef INL_VEC(sum) sums;

static int by_name(const void *a, const void *b) { return strcmp(((const sum *)a)->name, ((const sum *)b)->name); }

static uint64_t apart(const sum *s)
{
    return s->self[0] > s->self[1] ? s->self[0] - s->self[1] : s->self[1] - s->self[0];
}

static int by_change(const void *a, const void *b)
{
    const sum *x = a, *y = b;
    if (apart(x) != apart(y)) return apart(x) < apart(y) ? 1 : -1;
    uint64_t p = x->calls[0] ^ x->calls[1], q = y->calls[0] ^ y->calls[1];
    if (!p != !q) return p ? -1 : 1;
    return by_name(a, b);
}

/* All sessions' rows, as side 0 or 1. */
static inl_status collect(const trace_file *file, int side, const trace_view *v, sums *to, inl_error *e)
{
    for (size_t i = 0; i < file->sessions.count; i++) {
        const trace_session *s = &file->sessions.items[i];
        trace_profile p = {.raw = v->raw, .threshold = v->threshold, .depth = v->depth, .filter = &v->filter};
        inl_status st = trace_profile_add(&p, s, NULL, e);
        for (size_t k = 0; k < s->procs.count && st == INL_OK; k++) {
            const trace_row *r = &p.rows[k];
            sum one = {.name = trace_name(&s->procs.items[k])};
            one.calls[side] = r->calls;
            one.self[side] = r->self;
            one.total[side] = r->total;
            if (r->calls && !inl_vec_push(to, one)) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
        }
        trace_profile_free(&p);
        if (st != INL_OK) return st;
    }
    return INL_OK;
}

/* Rows of one name become one. */
static void merge(sums *s)
{
    size_t n = 0;
    if (s->count) qsort(s->items, s->count, sizeof *s->items, by_name);
    for (size_t i = 0; i < s->count; i++) {
        sum *last = n ? &s->items[n - 1] : NULL, *now = &s->items[i];
        if (!last || strcmp(last->name, now->name)) {
            s->items[n++] = *now;
            continue;
        }
        for (int k = 0; k < 2; k++) {
            last->calls[k] += now->calls[k];
            last->self[k] += now->self[k];
            last->total[k] += now->total[k];
        }
    }
    s->count = n;
    if (n) qsort(s->items, n, sizeof *s->items, by_change);
}

static void put_change(FILE *f, double before, double after)
{
    trace_put_time(f, 12, after);
    if (before > 0) fprintf(f, " %+8.1f%%", (after - before) * 100 / before);
    else fprintf(f, " %9s", after > 0 ? "new" : "");
}

static void put_text(FILE *f, const sums *s, const trace_view *v)
{
    fprintf(f, "%26s %21s %21s  procedure\n", "calls", "self", "total");
    for (size_t i = 0; i < s->count && (!v->top || i < v->top); i++) {
        const sum *x = &s->items[i];
        fprintf(f, "%12" PRIu64 " %+13" PRId64, x->calls[1], (int64_t)(x->calls[1] - x->calls[0]));
        put_change(f, (double)x->self[0], (double)x->self[1]);
        put_change(f, (double)x->total[0], (double)x->total[1]);
        fprintf(f, "  %s\n", x->name);
    }
    if (v->top && s->count > v->top) fprintf(f, "  ... %zu more (--top=0 shows all)\n", s->count - (size_t)v->top);
}

static void put_json(FILE *f, const sums *s)
{
    fputs("[", f);
    for (size_t i = 0; i < s->count; i++) {
        const sum *x = &s->items[i];
        fprintf(f, "%s\n  {\"name\": ", i ? "," : "");
        trace_put_string(f, x->name);
        fprintf(f,
                ", \"calls\": [%" PRIu64 ", %" PRIu64 "], \"self_ns\": [%" PRIu64 ", %" PRIu64
                "], \"total_ns\": [%" PRIu64 ", %" PRIu64 "]}",
                x->calls[0], x->calls[1], x->self[0], x->self[1], x->total[0], x->total[1]);
    }
    fputs("\n]\n", f);
}

inl_status trace_put_diff(FILE *f, const trace_file *before, const trace_file *after, const trace_view *v, inl_error *e)
{
    sums s = {0};
    inl_status st = collect(before, 0, v, &s, e);
    if (st == INL_OK) st = collect(after, 1, v, &s, e);
    if (st == INL_OK) {
        merge(&s);
        if (v->json) put_json(f, &s);
        else put_text(f, &s, v);
    }
    inl_vec_free(&s);
    return st;
}
