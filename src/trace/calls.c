/* Frames to calls. A frame's `user` is its call's index, from 1, and its depth. */
#include "trace/calls.h"

#include <stdlib.h>

enum { DEPTH_BITS = 20 };

static void entered(trace_replay *r, inlay_frame *frame, uint64_t now)
{
    trace_calls *c = r->arg;
    const inlay_frame *below = inlay_frames_below(&r->frames, frame);
    uint32_t depth = below && below->user ? (uint32_t)(below->user & ((1 << DEPTH_BITS) - 1)) + 1 : 0;
    trace_call made = {.start = now, .end = now, .proc = frame->proc, .depth = depth};
    if (c->failed || !inl_vec_push(&c->list, made)) c->failed = true;
    else frame->user = (uint64_t)c->list.count << DEPTH_BITS | (depth & ((1 << DEPTH_BITS) - 1));
}

/* The first begins a list, which a record of zeros ends. */
static void add_value(trace_calls *c, uint32_t *first, uint32_t proc, const inlay_trace_record *v)
{
    const inlay_trace_record end = {0}, value = {v->when, v->stack, proc};
    if (*first) c->values.count--;
    if (c->failed || c->values.count > UINT32_MAX - 2 || !inl_vec_push(&c->values, value)) c->failed = true;
    else if (!*first) *first = (uint32_t)c->values.count;
    if (!c->failed && !inl_vec_push(&c->values, end)) c->failed = true;
}

static void valued(trace_replay *r, const inlay_frame *frame, const inlay_trace_record *v)
{
    trace_calls *c = r->arg;
    size_t at = (size_t)(frame->user >> DEPTH_BITS);
    if (at) add_value(c, &c->list.items[at - 1].arguments, frame->proc, v);
}

static void closed(trace_replay *r, const inlay_frame *frame, uint64_t now, bool kept)
{
    trace_calls *c = r->arg;
    size_t at = (size_t)(frame->user >> DEPTH_BITS);
    if (!at) return;
    trace_call *call = &c->list.items[at - 1];
    if (now > call->start) call->end = now;
    for (uint32_t i = 0; i < r->result_count; i++) add_value(c, &call->results, frame->proc, &r->results[i]);
    bool deep = c->depth && call->depth >= c->depth;
    if (!kept || deep || call->end - call->start < c->threshold) call->proc = 0;
}

static void drop_left_out(trace_calls *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->list.count; i++)
        if (c->list.items[i].proc) c->list.items[n++] = c->list.items[i];
    c->list.count = n;
}

/* The calls that are open, by their indices; whoever ends is cut at the end of the one around it. */
typedef struct nest {
    uint32_t *open, *depths; /* as frames are nested: a coroutine's are deeper than what they lie in */
    size_t count;
} nest;

static uint64_t limit(const trace_calls *c, const nest *n)
{
    return n->count ? c->list.items[n->open[n->count - 1]].end : UINT64_MAX;
}

/* Those that are over when this one begins: what they say of their end later is not so. */
static void end_up_to(const trace_calls *c, nest *n, const trace_call *next)
{
    while (n->count) {
        trace_call *top = &c->list.items[n->open[n->count - 1]];
        if (n->depths[n->count - 1] < next->depth && top->end >= next->start) return;
        if (top->end > next->start) top->end = next->start;
        n->count--;
    }
}

static inl_status nest_calls(trace_calls *c, inl_error *e)
{
    nest n = {.open = calloc(c->list.count + 1, sizeof *n.open)};
    n.depths = calloc(c->list.count + 1, sizeof *n.depths);
    uint64_t last = 0;
    if (!n.open || !n.depths || c->list.count > UINT32_MAX) {
        free(n.open);
        free(n.depths);
        return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < c->list.count; i++) {
        trace_call *call = &c->list.items[i];
        if (call->start < last) call->start = last;
        last = call->start;
        end_up_to(c, &n, call);
        if (call->end > limit(c, &n)) call->end = limit(c, &n);
        if (call->end < call->start) call->end = call->start;
        n.depths[n.count] = call->depth;
        call->depth = (uint32_t)n.count;
        n.open[n.count++] = (uint32_t)i;
    }
    free(n.open);
    free(n.depths);
    return INL_OK;
}

inl_status trace_calls_of(trace_calls *c, const trace_session *s, const trace_thread *t, const trace_view *v,
                          inl_error *e)
{
    c->s = s;
    c->threshold = v->threshold ? v->threshold : s->threshold;
    c->depth = v->depth ? v->depth : (uint32_t)s->depth;
    trace_replay r = {.s = s, .t = t, .raw = true, .filter = &v->filter};
    r.entered = entered;
    r.closed = closed;
    r.valued = valued;
    r.arg = c;
    inl_status st = trace_replay_run(&r, e);
    if (st == INL_OK && c->failed) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (st != INL_OK) return st;
    drop_left_out(c);
    return nest_calls(c, e);
}

void trace_calls_free(trace_calls *c)
{
    inl_vec_free(&c->list);
    inl_vec_free(&c->values);
}

inl_status trace_calls_tell(const trace_calls *c, const trace_call_teller *t, inl_error *e)
{
    const trace_call **open = calloc(c->list.count + 1, sizeof *open);
    size_t n = 0;
    if (!open) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < c->list.count; i++) {
        const trace_call *call = &c->list.items[i];
        while (n > call->depth) t->ends(open[--n], t->arg);
        t->begins(call, t->arg);
        open[n++] = call;
    }
    while (n) t->ends(open[--n], t->arg);
    free(open);
    return INL_OK;
}
