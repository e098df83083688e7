/* Perfetto's traces: TracePackets, one after the other, of which ui.perfetto.dev makes a picture.
 *
 * A track for each process and each thread, and on it a packet where a call begins and one where it ends. Names are
 * told once and then by number (interned). Field numbers are those of Perfetto's protos/perfetto/trace. */
#include "trace/calls.h"
#include "trace/counters.h"
#include "trace/message.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PACKET = 1 }; /* of Trace */
enum {
    TIMESTAMP = 8,
    SEQUENCE = 10,
    TRACK_EVENT = 11,
    INTERNED = 12,
    SEQUENCE_FLAGS = 13,
    TRACK = 60
};                                           /* TracePacket */
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 }; /* its sequence_flags */
enum {
    TRACK_UUID = 1,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_NAME = 2,
    TRACK_COUNTER = 8
}; /* TrackDescriptor */
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
    EVENT_NOTE = 4,
    NOTE_UNSIGNED = 3,
    NOTE_SIGNED,
    NOTE_REAL,
    NOTE_TEXT,
    NOTE_POINTER,
    NOTE_NAME = 10
};                                                                              /* debug_annotations */
enum { EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11, BEGIN = 1, END = 2 }; /* TrackEvent */
enum { COUNTER = 4, EVENT_VALUE = 30 };                                         /* a type; counter_value */
enum { COUNTER_UNIT = 3, UNIT_NS = 1, UNIT_COUNT = 2 };                         /* CounterDescriptor */
enum { INTERNED_NAMES = 2, NAME_NUMBER = 1, NAME_TEXT = 2 };                    /* InternedData, EventName */

typedef struct perfetto {
    FILE *f;
    const trace_session *s;
    const trace_calls *calls; /* the thread's that is being told */
    trace_message whole, packet, a, b;
    bool *told; /* names, by number - 1 */
    uint32_t sequence;
    uint64_t track;
    bool is_first;
} perfetto;

static void put_packet(perfetto *p)
{
    trace_message_number(&p->packet, SEQUENCE, p->sequence);
    trace_message_put(&p->whole, PACKET, &p->packet);
    if (!p->whole.failed) fwrite(p->whole.bytes.items, 1, p->whole.bytes.count, p->f);
    p->whole.bytes.count = 0;
}

static void put_process(perfetto *p, uint64_t uuid)
{
    trace_message_number(&p->a, TRACK_UUID, uuid);
    trace_message_number(&p->b, PROCESS_PID, (uint64_t)p->s->pid);
    trace_message_text(&p->b, PROCESS_NAME, p->s->program);
    trace_message_put(&p->a, TRACK_PROCESS, &p->b);
    trace_message_put(&p->packet, TRACK, &p->a);
    put_packet(p);
}

static void put_thread(perfetto *p, const trace_thread *t, uint64_t parent)
{
    char name[32];
    snprintf(name, sizeof name, "thread %u", t->number);
    trace_message_number(&p->a, TRACK_UUID, p->track);
    trace_message_number(&p->a, TRACK_PARENT, parent);
    trace_message_number(&p->b, THREAD_PID, (uint64_t)p->s->pid);
    trace_message_number(&p->b, THREAD_TID, t->tid);
    trace_message_text(&p->b, THREAD_NAME, name);
    trace_message_put(&p->a, TRACK_THREAD, &p->b);
    trace_message_put(&p->packet, TRACK, &p->a);
    put_packet(p);
}

static void tell_name(perfetto *p, uint32_t proc)
{
    if (p->told[proc - 1]) return;
    p->told[proc - 1] = true;
    trace_message_number(&p->b, NAME_NUMBER, proc);
    trace_message_text(&p->b, NAME_TEXT, trace_name(&p->s->procs.items[proc - 1]));
    trace_message_put(&p->a, INTERNED_NAMES, &p->b);
    trace_message_put(&p->packet, INTERNED, &p->a);
}

/* A value as it was, or what it is shown as. */
static const inlay_trace_record *put_annotation(perfetto *p, const inlay_trace_record *v)
{
    char name[16], shown[1024];
    uint64_t bits;
    double real;
    unsigned number = trace_value_number(v), form = trace_value_form(v);
    snprintf(name, sizeof name, number ? "arg%u" : "result", number);
    trace_message_text(&p->b, NOTE_NAME, name);
    trace_value_bits(v, &bits, &real);
    const inlay_trace_record *next = trace_value_text(p->calls, v, shown, sizeof shown);
    bool typed = trace_value_layout(p->calls, v);
    if (typed) trace_message_text(&p->b, NOTE_TEXT, shown);
    else if (form == 'd') trace_message_number(&p->b, NOTE_SIGNED, bits);
    else if (form == 'u') trace_message_number(&p->b, NOTE_UNSIGNED, bits);
    else if (form == 'x' || form == 'p') trace_message_number(&p->b, NOTE_POINTER, bits);
    else if (form == 'f') trace_message_real(&p->b, NOTE_REAL, real);
    else trace_message_text(&p->b, NOTE_TEXT, shown);
    trace_message_put(&p->a, EVENT_NOTE, &p->b);
    return next;
}

static void put_event(perfetto *p, const trace_call *c, bool begins)
{
    trace_message_number(&p->packet, TIMESTAMP, p->s->monotonic + (begins ? c->start : c->end));
    trace_message_number(&p->packet, SEQUENCE_FLAGS, p->is_first ? STATE_CLEARED | NEEDS_STATE : NEEDS_STATE);
    p->is_first = false;
    if (begins) tell_name(p, c->proc);
    trace_message_number(&p->a, EVENT_TYPE, begins ? BEGIN : END);
    if (begins) trace_message_number(&p->a, EVENT_NAME, c->proc);
    trace_message_number(&p->a, EVENT_TRACK, p->track);
    const inlay_trace_record *value = trace_calls_first(p->calls, begins ? c->arguments : c->results);
    while (value->what) value = put_annotation(p, value);
    trace_message_put(&p->packet, TRACK_EVENT, &p->a);
    put_packet(p);
}

static void begins(const trace_call *c, void *arg) { put_event(arg, c, true); }
static void ends(const trace_call *c, void *arg) { put_event(arg, c, false); }

static inl_status put_calls(perfetto *p, const trace_thread *t, const trace_view *v, inl_error *e)
{
    trace_calls calls = {0};
    const trace_call_teller teller = {begins, ends, p};
    p->calls = &calls;
    inl_status st = trace_calls_of(&calls, p->s, t, v, e);
    if (st == INL_OK) st = trace_calls_tell(&calls, &teller, e);
    trace_calls_free(&calls);
    return st;
}

/* --- counters: a track each, below the thread's --- */

static uint64_t counter_track(const perfetto *p, uint32_t event) { return p->track | (uint64_t)(event + 1) << 24; }

static void put_counter(uint32_t event, uint64_t now, uint64_t value, void *arg)
{
    perfetto *p = arg;
    trace_message_number(&p->packet, TIMESTAMP, p->s->monotonic + now);
    trace_message_number(&p->a, EVENT_TYPE, COUNTER);
    trace_message_number(&p->a, EVENT_TRACK, counter_track(p, event));
    trace_message_number(&p->a, EVENT_VALUE, value);
    trace_message_put(&p->packet, TRACK_EVENT, &p->a);
    put_packet(p);
}

static inl_status put_counters(perfetto *p, const trace_thread *t, const trace_view *v, inl_error *e)
{
    const trace_counter_teller teller = {put_counter, p};
    for (uint32_t k = 0; k < p->s->event_count; k++) {
        bool is_time = trace_event_is_time(&p->s->events[k]);
        trace_message_number(&p->a, TRACK_UUID, counter_track(p, k));
        trace_message_number(&p->a, TRACK_PARENT, p->track);
        trace_message_text(&p->a, TRACK_NAME, p->s->events[k].name);
        trace_message_number(&p->b, COUNTER_UNIT, is_time ? UNIT_NS : UNIT_COUNT);
        trace_message_put(&p->a, TRACK_COUNTER, &p->b);
        trace_message_put(&p->packet, TRACK, &p->a);
        put_packet(p);
    }
    return trace_counters_tell(p->s, t, v, &teller, e);
}

/* Numbers of names hold within a sequence of packets: each program has one. */
static inl_status put_session(perfetto *p, const trace_view *v, inl_error *e)
{
    const trace_session *s = p->s;
    uint64_t process = (uint64_t)++p->sequence << 32;
    inl_status st = trace_refuse_counts(s, e);
    p->told = calloc(s->procs.count + 1, sizeof *p->told);
    p->is_first = true;
    if (st == INL_OK && !p->told) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (st == INL_OK) put_process(p, process);
    for (size_t i = 0; i < s->threads.count && st == INL_OK; i++) {
        p->track = process + 1 + i;
        put_thread(p, &s->threads.items[i], process);
        st = put_calls(p, &s->threads.items[i], v, e);
        if (st == INL_OK) st = put_counters(p, &s->threads.items[i], v, e);
    }
    free(p->told);
    return st;
}

inl_status trace_export_perfetto(FILE *f, const trace_file *file, const trace_view *v, inl_error *e)
{
    perfetto p = {.f = f};
    inl_status st = INL_OK;
    for (size_t i = 0; i < file->sessions.count && st == INL_OK; i++) {
        p.s = &file->sessions.items[i];
        st = put_session(&p, v, e);
    }
    if (st == INL_OK && p.whole.failed) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    trace_message_free(&p.whole);
    trace_message_free(&p.packet);
    trace_message_free(&p.a);
    trace_message_free(&p.b);
    return st;
}
