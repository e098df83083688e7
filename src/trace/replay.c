/* Records to entered and closed frames. */
#include "trace/replay.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 1 << 20 };

typedef struct clock_state {
    const trace_session *s;
    uint64_t last;      /* ticks of the last record, all bits */
    bool begun, counts; /* counts: of an event */
    double at;          /* ns, without what records cost */
    double cost, tick;
} clock_state;

static uint32_t index_of(const inlay_frames *f, const inlay_frame *frame) { return (uint32_t)(frame - f->frames); }

/* The index of the frame below; 0: there is none. */
static uint32_t below(const trace_replay *r, const inlay_frame *frame)
{
    const inlay_frame *found = r->sieve.procs ? inlay_frames_below(&r->frames, frame) : NULL;
    return found ? index_of(&r->frames, found) : 0;
}

static void when_closed(inlay_frames *f, const inlay_frame *frame, uint64_t now, void *arg)
{
    trace_replay *r = arg;
    uint32_t at = index_of(f, frame);
    bool passes = trace_sieve_passes(&r->sieve, at), kept = trace_sieve_close(&r->sieve, at, below(r, frame));
    r->returns = r->exit_sp && frame->sp - r->exit_sp <= INLAY_FRAME_STUB;
    r->results = r->pending;
    r->result_count = r->returns ? r->pending_count : 0;
    if (at == r->last) r->last = 0;
    if (r->closed && passes) r->closed(r, frame, now, kept);
}

/* Records have the low 48 bits; what is near is meant. */
static uint64_t near(uint64_t whole, uint64_t low)
{
    int64_t apart = (int64_t)((low - whole) << 16) >> 16;
    return whole + (uint64_t)apart;
}

static uint64_t advance(clock_state *c, uint64_t ticks, double cost)
{
    if (!c->begun) {
        c->begun = true;
        c->last = ticks;
        double since = c->counts ? 0 : (double)(int64_t)(ticks - c->s->time) * c->tick;
        c->at = since > 0 ? since : 0;
    }
    double step = (double)(int64_t)(ticks - c->last) * c->tick - cost;
    if (step > 0) c->at += step;
    if ((int64_t)(ticks - c->last) > 0) c->last = ticks;
    return (uint64_t)c->at;
}

static void take(trace_replay *r, const inlay_trace_record *record, uint64_t now)
{
    uint32_t number = record->what >> 1;
    const trace_proc *p = number && number <= r->s->procs.count ? &r->s->procs.items[number - 1] : NULL;
    uint64_t sp = (record->when & 0xffff) << 32 | record->stack;
    if (!p) {
        r->strange++;
        return;
    }
    if (record->what & 1) {
        r->exits++;
        r->exit_sp = sp;
        inlay_frames_leave(&r->frames, number, p->how == INLAY_TRACE_STUB, sp, now);
        r->exit_sp = 0;
        r->pending_count = 0;
        return;
    }
    r->pending_count = 0;
    r->last = 0;
    r->entries++;
    inlay_frame *frame = inlay_frames_enter(&r->frames, number, sp, now);
    if (!frame) return;
    bool passes = trace_sieve_enter(&r->sieve, number, index_of(&r->frames, frame), below(r, frame));
    if (passes) r->last = index_of(&r->frames, frame);
    if (passes && r->entered) r->entered(r, frame, now);
}

/* Values have no time. */
static void take_value(trace_replay *r, const inlay_trace_record *v)
{
    if ((v->stack >> 8 & 0xff) == 'e') {
        if ((v->stack & 0xff) < INLAY_TRACE_EVENTS_MOST) r->counted[v->stack & 0xff] = v->when;
    } else if (v->stack & 0xff) {
        if (r->last && r->valued) r->valued(r, &r->frames.frames[r->last], v);
    } else if (r->pending_count < TRACE_RESULT_MOST) {
        r->pending[r->pending_count++] = *v;
    }
}

static bool take_pieces(trace_replay *r, clock_state *c)
{
    uint64_t whole = 0;
    trace_unpacked room = {0};
    bool good = true;
    for (size_t i = 0; i < r->t->pieces.count && good; i++) {
        const trace_piece *p = &r->t->pieces.items[i];
        const inlay_trace_record *records = trace_piece_records(p, &room);
        good = records != NULL;
        if (!i || p->time > whole) whole = p->time;
        for (size_t k = 0; k < p->count && good; k++) {
            if (!records[k].what) continue; /* its place was taken alone */
            if (records[k].what == (uint32_t)INLAY_TRACE_VALUE) {
                take_value(r, &records[k]);
                continue;
            }
            whole = near(whole, records[k].when >> 16);
            take(r, &records[k], advance(c, r->event ? r->counted[r->event - 1] : whole, c->begun ? c->cost : 0));
        }
    }
    inl_vec_free(&room);
    return good;
}

static clock_state clock_of(const trace_replay *r)
{
    clock_state c = {.s = r->s, .counts = r->event != 0, .tick = r->event ? 1 : 1e9 / (double)r->s->frequency};
    uint64_t overhead = r->event ? r->s->events[r->event - 1].overhead : r->s->overhead;
    c.cost = r->raw ? 0 : (double)overhead / 1000 * c.tick;
    return c;
}

/* What is open when a thread ends is closed then; a killed process's, at the thread's last record. */
inl_status trace_replay_run(trace_replay *r, inl_error *e)
{
    uint32_t room = r->t->records < MOST_DEPTH ? (uint32_t)r->t->records + 2 : MOST_DEPTH;
    inlay_frame *frames = calloc(room, sizeof *frames);
    if (!frames) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status st = trace_sieve_begin(&r->sieve, r->filter, r->s, room, e);
    if (st != INL_OK) {
        free(frames);
        return st;
    }
    clock_state c = clock_of(r);
    inlay_frames_init(&r->frames, frames, room, when_closed, r);
    bool good = take_pieces(r, &c);
    uint64_t ends = r->event ? r->t->counted[r->event - 1] : r->t->ends ? r->t->ends : r->s->last;
    bool later = c.begun && ends && (int64_t)(ends - c.last) > 0;
    r->end = later ? advance(&c, ends, c.cost) : (uint64_t)c.at;
    r->over = !r->t->ends;
    inlay_frames_end(&r->frames, r->end);
    r->frames.frames = NULL;
    trace_sieve_end(&r->sieve);
    free(frames);
    return good ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
}
