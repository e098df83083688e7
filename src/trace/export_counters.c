/* Counters in pictures of time: what each had at entries and exits. */
#include "trace/counters.h"

#include <inttypes.h>

typedef struct telling {
    const trace_counter_teller *t;
    const trace_session *s;
    uint64_t first[INLAY_TRACE_EVENTS_MOST], last[INLAY_TRACE_EVENTS_MOST];
    bool begun;
} telling;

/* Only what has changed; from 0 at the thread's first record on. */
static void tell(trace_replay *r, uint64_t now)
{
    telling *t = r->arg;
    for (uint32_t k = 0; k < t->s->event_count; k++) {
        uint64_t value = r->counted[k];
        if (!t->begun) t->first[k] = value;
        if (t->begun && value == t->last[k]) continue;
        t->t->value(k, now, value - t->first[k], t->t->arg);
        t->last[k] = value;
    }
    t->begun = true;
}

static void entered(trace_replay *r, inlay_frame *frame, uint64_t now)
{
    (void)frame;
    tell(r, now);
}

static void closed(trace_replay *r, const inlay_frame *frame, uint64_t now, bool kept)
{
    (void)frame;
    if (kept) tell(r, now);
}

inl_status trace_counters_tell(const trace_session *s, const trace_thread *t, const trace_view *v,
                               const trace_counter_teller *teller, inl_error *e)
{
    telling telling = {.t = teller, .s = s};
    trace_replay r = {.s = s, .t = t, .raw = true, .filter = &v->filter, .entered = entered, .closed = closed};
    r.arg = &telling;
    return s->event_count ? trace_replay_run(&r, e) : INL_OK;
}

/* --- Chrome: a counter is the process's, so its name has the thread --- */

typedef struct chrome {
    FILE *f;
    const trace_session *s;
    const trace_thread *t;
} chrome;

static void put(uint32_t event, uint64_t now, uint64_t value, void *arg)
{
    const chrome *c = arg;
    fprintf(c->f, ",\n{\"ph\":\"C\",\"pid\":%d,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,\"name\":", c->s->pid, c->t->tid,
            now / 1000, (unsigned)(now % 1000));
    trace_put_string(c->f, c->s->events[event].name);
    fprintf(c->f, ",\"id\":\"%u\",\"args\":{\"value\":%" PRIu64 "}}", c->t->tid, value);
}

inl_status trace_chrome_counters(FILE *f, const trace_session *s, const trace_thread *t, const trace_view *v,
                                 inl_error *e)
{
    chrome c = {f, s, t};
    const trace_counter_teller teller = {put, &c};
    return trace_counters_tell(s, t, v, &teller, e);
}
