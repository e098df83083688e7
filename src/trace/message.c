#include "trace/message.h"

#include <string.h>

enum { VARINT = 0, EIGHT = 1, LENGTH = 2 };

static void add(trace_message *m, const void *bytes, size_t count)
{
    if (m->failed || !inl_vec_reserve(&m->bytes, m->bytes.count + count)) {
        m->failed = true;
        return;
    }
    if (count) memcpy(m->bytes.items + m->bytes.count, bytes, count);
    m->bytes.count += count;
}

/* Seven bits a byte, the lowest first; the top bit says that there are more. */
void trace_message_varint(trace_message *m, uint64_t value)
{
    uint8_t out[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    add(m, out, n);
}

void trace_message_number(trace_message *m, unsigned field, uint64_t value)
{
    trace_message_varint(m, field << 3 | VARINT);
    trace_message_varint(m, value);
}

void trace_message_real(trace_message *m, unsigned field, double value)
{
    trace_message_varint(m, field << 3 | EIGHT);
    add(m, &value, sizeof value);
}

void trace_message_bytes(trace_message *m, unsigned field, const void *bytes, size_t count)
{
    trace_message_varint(m, field << 3 | LENGTH);
    trace_message_varint(m, count);
    add(m, bytes, count);
}

void trace_message_text(trace_message *m, unsigned field, const char *text)
{
    trace_message_bytes(m, field, text, strlen(text));
}

void trace_message_put(trace_message *m, unsigned field, trace_message *inner)
{
    trace_message_bytes(m, field, inner->bytes.items, inner->bytes.count);
    m->failed |= inner->failed;
    inner->bytes.count = 0;
}

void trace_message_free(trace_message *m) { inl_vec_free(&m->bytes); }
