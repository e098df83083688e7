/* pprof's profiles: a message that holds all, in gzip's envelope (stored, not compressed: no library is needed).
 *
 * A sample for each way that calls have been made by, with their number and their own time. Field numbers are those of
 * pprof's profile.proto. */
#include "trace/message.h"
#include "trace/out.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_TYPE = 1, SAMPLE = 2, MAPPING = 3, LOCATION = 4, FUNCTION = 5, STRINGS = 6, TIME = 9, DURATION = 10 };
enum { VALUE_TYPE = 1, VALUE_UNIT = 2, SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2 };
enum { MAPPING_ID = 1, MAPPING_LOW = 2, MAPPING_HIGH = 3, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4, LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3 };

typedef struct pprof {
    const trace_profile *p;
    trace_message whole, a, b;
    INL_VEC(const char *) strings; /* 0: "" */
    INL_VEC(const trace_image *) images;
} pprof;

/* Texts may be told more than once. */
static uint64_t string(pprof *o, const char *text)
{
    if (!inl_vec_push(&o->strings, text)) o->whole.failed = true;
    return o->strings.count - 1;
}

static void put_type(pprof *o, const char *type, const char *unit)
{
    trace_message_number(&o->a, VALUE_TYPE, string(o, type));
    trace_message_number(&o->a, VALUE_UNIT, string(o, unit));
    trace_message_put(&o->whole, SAMPLE_TYPE, &o->a);
}

static void put_sample(pprof *o, uint32_t at)
{
    const trace_node *nodes = o->p->nodes.items, *n = &nodes[at];
    for (uint32_t k = at; k; k = nodes[k].parent) trace_message_varint(&o->b, nodes[k].proc);
    trace_message_put(&o->a, SAMPLE_LOCATIONS, &o->b);
    trace_message_varint(&o->b, n->calls);
    trace_message_varint(&o->b, n->self);
    for (uint32_t k = 0; k < o->p->s->event_count; k++)
        trace_message_varint(&o->b, o->p->events[k].nodes.items[at].self);
    trace_message_put(&o->a, SAMPLE_VALUES, &o->b);
    trace_message_put(&o->whole, SAMPLE, &o->a);
}

static uint64_t mapping(pprof *o, const trace_image *image)
{
    for (size_t i = 0; i < o->images.count; i++)
        if (o->images.items[i] == image) return i + 1;
    if (!inl_vec_push(&o->images, image)) o->whole.failed = true;
    trace_message_number(&o->b, MAPPING_ID, o->images.count);
    trace_message_number(&o->b, MAPPING_LOW, image->low);
    trace_message_number(&o->b, MAPPING_HIGH, image->high);
    trace_message_number(&o->b, MAPPING_FILE, string(o, image->path));
    trace_message_number(&o->b, MAPPING_HAS_FUNCTIONS, 1);
    trace_message_put(&o->whole, MAPPING, &o->b);
    return o->images.count;
}

static void put_proc(pprof *o, uint32_t number)
{
    const trace_proc *q = trace_profile_proc(o->p, number);
    uint64_t in = q->image ? mapping(o, q->image) : 0;
    trace_message_number(&o->a, LOCATION_ID, number);
    if (in) trace_message_number(&o->a, LOCATION_MAPPING, in);
    trace_message_number(&o->a, LOCATION_ADDRESS, q->address);
    trace_message_number(&o->b, LINE_FUNCTION, number);
    trace_message_put(&o->a, LOCATION_LINE, &o->b);
    trace_message_put(&o->whole, LOCATION, &o->a);
    trace_message_number(&o->a, FUNCTION_ID, number);
    trace_message_number(&o->a, FUNCTION_NAME, string(o, trace_name(q)));
    trace_message_number(&o->a, FUNCTION_SYSTEM_NAME, string(o, q->name));
    trace_message_put(&o->whole, FUNCTION, &o->a);
}

static void make(pprof *o)
{
    string(o, "");
    put_type(o, "calls", "count");
    put_type(o, "time", "nanoseconds");
    for (uint32_t k = 0; k < o->p->s->event_count; k++) {
        const trace_event *event = &o->p->s->events[k];
        put_type(o, event->name, trace_event_is_time(event) ? "nanoseconds" : "count");
    }
    for (uint32_t i = 1; i < o->p->nodes.count; i++)
        if (o->p->nodes.items[i].calls) put_sample(o, i);
    for (uint32_t i = 0; i < o->p->s->procs.count; i++)
        if (o->p->s->procs.items[i].known) put_proc(o, i + 1);
    for (size_t i = 0; i < o->strings.count; i++) trace_message_text(&o->whole, STRINGS, o->strings.items[i]);
    trace_message_number(&o->whole, TIME, o->p->s->realtime);
    trace_message_number(&o->whole, DURATION, o->p->time);
}

/* --- gzip: RFC 1952 around RFC 1951's stored blocks --- */

static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    uint32_t crc = UINT32_MAX, of[16];
    for (uint32_t i = 0; i < 16; i++) {
        of[i] = i;
        for (int k = 0; k < 4; k++) of[i] = of[i] >> 1 ^ (of[i] & 1 ? 0xedb88320 : 0);
    }
    for (size_t i = 0; i < count; i++) {
        crc = crc >> 4 ^ of[(crc ^ bytes[i]) & 15];
        crc = crc >> 4 ^ of[(crc ^ (uint32_t)bytes[i] >> 4) & 15];
    }
    return ~crc;
}

static void put_little(FILE *f, uint32_t value, unsigned bytes)
{
    for (; bytes; bytes--, value >>= 8) fputc((int)(value & 0xff), f);
}

static void put_gzip(FILE *f, const uint8_t *bytes, size_t count)
{
    enum { MOST = 65535 };
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    fwrite(head, 1, sizeof head, f);
    for (size_t at = 0; at == 0 || at < count;) {
        uint32_t n = count - at < MOST ? (uint32_t)(count - at) : MOST;
        fputc(at + n == count, f);
        put_little(f, n, 2);
        put_little(f, ~n, 2);
        fwrite(bytes + at, 1, n, f);
        at += n;
        if (!n) break;
    }
    put_little(f, checksum(bytes, count), 4);
    put_little(f, (uint32_t)count, 4);
}

inl_status trace_export_pprof_one(FILE *f, trace_profile *p, inl_error *e)
{
    pprof o = {.p = p};
    make(&o);
    bool good = !o.whole.failed && !o.a.failed && !o.b.failed;
    if (good) put_gzip(f, o.whole.bytes.items, o.whole.bytes.count);
    inl_vec_free(&o.strings);
    inl_vec_free(&o.images);
    trace_message_free(&o.whole);
    trace_message_free(&o.a);
    trace_message_free(&o.b);
    return good ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
}
