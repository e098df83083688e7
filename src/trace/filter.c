/* Marks on procedures, and from them on frames. */
#include "trace/filter.h"
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

/* A frame's. WITHIN: it is one of those that others lead to, or called by one. */
enum { IN = 1, OUT = 2, LEADS = 4, WITHIN = 8 };

bool trace_filter_add(trace_filter *f, trace_filter_kind kind, const char *pattern)
{
    if (f->counts[kind] == TRACE_FILTER_MOST) return false;
    f->patterns[kind][f->counts[kind]++] = pattern;
    return true;
}

bool trace_matches(const char *pattern, const trace_proc *p)
{
    return image_name_matches(p->name, pattern) || image_name_matches(p->shown, pattern);
}

static void mark_procs(trace_sieve *v, const trace_filter *f, const trace_session *s)
{
    for (size_t i = 0; i < s->procs.count; i++)
        for (unsigned kind = 0; kind < TRACE_FILTERS; kind++)
            for (unsigned k = 0; f && k < f->counts[kind]; k++)
                if (trace_matches(f->patterns[kind][k], &s->procs.items[i])) v->procs[i] |= (uint8_t)(1 << kind);
    if (f && f->counts[TRACE_INSIDE]) return; /* these are within the recording's own */
    for (size_t i = 0; i < s->procs.count; i++)
        if (s->procs.items[i].is_trigger) v->procs[i] |= 1 << TRACE_INSIDE;
}

inl_status trace_sieve_begin(trace_sieve *v, const trace_filter *f, const trace_session *s, uint32_t frames,
                             inl_error *e)
{
    *v = (trace_sieve){0};
    for (unsigned kind = 0; kind < TRACE_FILTERS; kind++) v->asks[kind] = f && f->counts[kind];
    v->asks[TRACE_INSIDE] |= s->has_triggers;
    if (!v->asks[TRACE_INSIDE] && !v->asks[TRACE_OUTSIDE] && !v->asks[TRACE_LEADING]) return INL_OK;
    v->procs = calloc(s->procs.count + 1, 1);
    v->marks = calloc((size_t)frames + 1, 1);
    if (!v->procs || !v->marks) {
        trace_sieve_end(v);
        return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    }
    mark_procs(v, f, s);
    return INL_OK;
}

void trace_sieve_end(trace_sieve *v)
{
    free(v->procs);
    free(v->marks);
    *v = (trace_sieve){0};
}

bool trace_sieve_passes(const trace_sieve *v, uint32_t frame)
{
    if (!v->procs) return true;
    uint8_t mark = v->marks[frame];
    return (!v->asks[TRACE_INSIDE] || (mark & IN)) && !(mark & OUT);
}

/* Index 0 is no frame's, and has no marks. */
bool trace_sieve_enter(trace_sieve *v, uint32_t proc, uint32_t frame, uint32_t below)
{
    if (!v->procs) return true;
    uint8_t of = v->procs[proc - 1], mark = v->marks[below];
    if (of & 1 << TRACE_INSIDE) mark |= IN;
    if (of & 1 << TRACE_OUTSIDE) mark |= OUT;
    mark = (uint8_t)(mark & (IN | OUT));
    if (of & 1 << TRACE_LEADING || v->marks[below] & WITHIN) mark |= LEADS | WITHIN;
    v->marks[frame] = mark;
    return trace_sieve_passes(v, frame);
}

bool trace_sieve_close(trace_sieve *v, uint32_t frame, uint32_t below)
{
    if (!v->procs) return true;
    bool leads = !v->asks[TRACE_LEADING] || v->marks[frame] & LEADS, passes = trace_sieve_passes(v, frame);
    if (passes && below && v->marks[frame] & LEADS) v->marks[below] |= LEADS;
    v->marks[frame] = 0;
    return passes && leads;
}
