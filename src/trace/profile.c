/* Frames to a tree and rows. A frame's node is in its `user`. */
#include "trace/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const trace_proc *trace_profile_proc(const trace_profile *p, uint32_t number) { return &p->s->procs.items[number - 1]; }

static uint32_t add_node(trace_profile *p, uint32_t parent, uint32_t proc, uint64_t key)
{
    trace_node made = {.proc = proc, .parent = parent, .is_again = p->open[proc - 1] != 0};
    if (parent < p->nodes.count) made.next = p->nodes.items[parent].first;
    uint32_t at = (uint32_t)p->nodes.count;
    if (p->nodes.count >= UINT32_MAX || !inl_vec_push(&p->nodes, made) || !inl_map_put(&p->children, key, at)) {
        p->failed = true;
        return 0;
    }
    p->nodes.items[parent].first = at;
    return at;
}

static uint32_t child(trace_profile *p, uint32_t parent, uint32_t proc)
{
    uint64_t key = (uint64_t)parent << 32 | proc, at;
    return inl_map_get(&p->children, key, &at) ? (uint32_t)at : add_node(p, parent, proc, key);
}

/* Frames deeper than is wanted belong to the last that is: node and depth of a frame are in `user`. */
static void entered(trace_replay *r, inlay_frame *frame, uint64_t now)
{
    (void)now;
    trace_profile *p = r->arg;
    const inlay_frame *below = inlay_frames_below(&r->frames, frame);
    p->entered[frame->proc - 1]++;
    uint32_t parent = below ? (uint32_t)below->user : 0, depth = below ? (uint32_t)(below->user >> 32) + 1 : 1;
    bool deep = p->depth && depth > p->depth;
    frame->user = (uint64_t)depth << 32 | (deep || p->failed ? parent : child(p, parent, frame->proc));
    p->open[frame->proc - 1]++;
}

static void add_call(trace_row *row, uint64_t total, uint64_t self, bool is_outermost)
{
    if (!row->calls || total < row->least) row->least = total;
    if (total > row->most) row->most = total;
    row->calls++;
    row->self += self;
    if (is_outermost) row->total += total;
    row->sum += (double)total;
    row->squares += (double)total * (double)total;
}

static void closed(trace_replay *r, const inlay_frame *frame, uint64_t now, bool kept)
{
    trace_profile *p = r->arg;
    uint64_t total = now > frame->start ? now - frame->start : 0,
             self = total > frame->inner ? total - frame->inner : 0;
    uint32_t depth = (uint32_t)(frame->user >> 32), at = (uint32_t)frame->user;
    trace_node *node = &p->nodes.items[at];
    bool is_outermost = --p->open[frame->proc - 1] == 0;
    if (p->depth && depth > p->depth) {
        if (kept) p->deeper += self;
        return;
    }
    if (depth == p->depth) {
        self += p->deeper;
        p->deeper = 0;
    }
    if (!kept || total < p->threshold || !at) return;
    node->calls++;
    node->total += total;
    node->self += self;
    add_call(&p->rows[frame->proc - 1], total, self, is_outermost);
}

static inl_status begin(trace_profile *, const trace_session *, inl_error *);

/* They are of all calls, long or short. */
static inl_status begin_events(trace_profile *p, inl_error *e)
{
    p->events = calloc(p->s->event_count, sizeof *p->events);
    inl_status st = p->events ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (uint32_t k = 0; p->events && k < p->s->event_count && st == INL_OK; k++) {
        p->events[k] = (trace_profile){.raw = p->raw, .depth = p->depth, .filter = p->filter, .event = k + 1};
        st = begin(&p->events[k], p->s, e);
    }
    return st;
}

static inl_status begin(trace_profile *p, const trace_session *s, inl_error *e)
{
    if (p->s) return INL_OK;
    p->s = s;
    if (!p->depth) p->depth = (uint32_t)s->depth;
    if (!p->threshold && !p->event) p->threshold = s->threshold;
    size_t count = s->procs.count + 1;
    p->rows = calloc(count, sizeof *p->rows);
    p->open = calloc(count, sizeof *p->open);
    p->entered = calloc(count, sizeof *p->entered);
    if (!p->rows || !p->open || !p->entered || !inl_vec_push(&p->nodes, (trace_node){0}))
        return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (uint32_t i = 0; i < s->procs.count; i++) {
        p->rows[i].proc = i + 1;
        if (s->clock == INLAY_TRACE_COUNTS) p->rows[i].calls = s->procs.items[i].count;
    }
    return s->event_count && !p->event ? begin_events(p, e) : INL_OK;
}

static inl_status add(trace_profile *p, const trace_thread *t, inl_error *e)
{
    for (uint32_t k = 0; p->events && k < p->s->event_count; k++) {
        inl_status st = trace_profile_add(&p->events[k], p->s, t, e);
        if (st != INL_OK) return st;
    }
    trace_replay r = {
        .s = p->s, .t = t, .raw = p->raw, .event = p->event, .entered = entered, .closed = closed, .arg = p};
    r.filter = p->filter;
    inl_status s = trace_replay_run(&r, e);
    if (s != INL_OK) return s;
    p->records += t->records;
    p->lost += t->lost;
    p->unmatched += r.frames.unmatched;
    p->left += r.frames.left;
    p->full += r.frames.full;
    p->strange += r.strange;
    if (r.end > p->time) p->time = r.end;
    return p->failed ? inl_fail(e, INL_ERR_NO_MEMORY, "out of memory") : INL_OK;
}

inl_status trace_profile_add(trace_profile *p, const trace_session *s, const trace_thread *t, inl_error *e)
{
    inl_status st = begin(p, s, e);
    if (t) return st == INL_OK ? add(p, t, e) : st;
    for (size_t i = 0; i < s->threads.count && st == INL_OK; i++) st = add(p, &s->threads.items[i], e);
    if (s->lost > p->lost) p->lost = s->lost; /* a thread that has ended had no room to tell */
    return st;
}

void trace_profile_free(trace_profile *p)
{
    for (uint32_t k = 0; p->events && k < p->s->event_count; k++) trace_profile_free(&p->events[k]);
    free(p->events);
    inl_vec_free(&p->nodes);
    inl_map_free(&p->children);
    free(p->rows);
    free(p->open);
    free(p->entered);
    *p = (trace_profile){0};
}

double trace_row_mean(const trace_row *r) { return r->calls ? r->sum / (double)r->calls : 0; }

double trace_row_deviation(const trace_row *r)
{
    double mean = trace_row_mean(r), square = r->calls ? r->squares / (double)r->calls - mean * mean : 0;
    return square > 0 ? sqrt(square) : 0;
}

/* --- orders --- */

static int order(uint64_t x, uint64_t y, const trace_row *a, const trace_row *b)
{
    if (x != y) return x < y ? 1 : -1;
    if (a->calls != b->calls) return a->calls < b->calls ? 1 : -1;
    return a->proc < b->proc ? -1 : a->proc > b->proc;
}

int trace_by_self(const void *a, const void *b)
{
    const trace_row *x = *(trace_row *const *)a, *y = *(trace_row *const *)b;
    return order(x->self, y->self, x, y);
}

int trace_by_total(const void *a, const void *b)
{
    const trace_row *x = *(trace_row *const *)a, *y = *(trace_row *const *)b;
    return order(x->total, y->total, x, y);
}

int trace_by_calls(const void *a, const void *b)
{
    const trace_row *x = *(trace_row *const *)a, *y = *(trace_row *const *)b;
    return order(x->calls, y->calls, x, y);
}

trace_row **trace_profile_rows(const trace_profile *p, size_t *count, int (*by)(const void *, const void *))
{
    trace_row **list = calloc(p->s->procs.count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; list && i < p->s->procs.count; i++)
        if (p->rows[i].calls) list[(*count)++] = &p->rows[i];
    if (list) qsort(list, *count, sizeof *list, by);
    return list;
}

/* --- the tree --- */

static int by_parent(const void *a, const void *b, void *arg)
{
    const trace_profile *p = arg;
    const trace_node *x = &p->nodes.items[*(const uint32_t *)a], *y = &p->nodes.items[*(const uint32_t *)b];
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    if (x->total != y->total) return x->total < y->total ? 1 : -1;
    return x->proc < y->proc ? -1 : x->proc > y->proc;
}

bool trace_profile_sort(trace_profile *p)
{
    size_t count = p->nodes.count;
    uint32_t *list = calloc(count + 1, sizeof *list);
    if (!list) return false;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = i;
        p->nodes.items[i].first = 0;
    }
    if (count > 1) qsort_r(list + 1, count - 1, sizeof *list, by_parent, p);
    for (size_t i = count; i-- > 1;) { /* each is put in front of those behind it */
        trace_node *n = &p->nodes.items[list[i]], *parent = &p->nodes.items[n->parent];
        if (!n->calls) continue; /* left out */
        n->next = parent->first;
        parent->first = list[i];
    }
    free(list);
    return true;
}

uint32_t trace_profile_next(const trace_profile *p, uint32_t at, uint32_t *depth)
{
    const trace_node *nodes = p->nodes.items;
    if (!p->nodes.count) return 0;
    if (nodes[at].first) {
        ++*depth;
        return nodes[at].first;
    }
    while (at && !nodes[at].next) {
        at = nodes[at].parent;
        --*depth;
    }
    return at ? nodes[at].next : 0;
}
