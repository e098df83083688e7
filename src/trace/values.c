/* Arguments and results as text. */
#include "trace/calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *out;
    size_t size, used;
} text;

static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = t->used < t->size ? vsnprintf(t->out + t->used, t->size - t->used, fmt, args) : 0;
    va_end(args);
    if (n > 0) t->used += (size_t)n;
}

static void put_character(text *t, unsigned char c)
{
    if (c == '"' || c == '\\') put(t, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f) put(t, "\\x%02x", c);
    else put(t, "%c", c);
}

/* Its pieces, up to a zero or the last; the answer is the record behind them. */
static const inlay_trace_record *put_string(text *t, const inlay_trace_record *v)
{
    if (v->stack & INLAY_TRACE_UNREADABLE) {
        if (v->when) put(t, "0x%" PRIx64 " (no memory)", v->when);
        else put(t, "NULL");
        return v + 1;
    }
    put(t, "\"");
    for (;; v++) {
        char bytes[sizeof v->when];
        memcpy(bytes, &v->when, sizeof bytes);
        size_t n = strnlen(bytes, sizeof bytes);
        for (size_t i = 0; i < n; i++) put_character(t, (unsigned char)bytes[i]);
        if (n < sizeof bytes || !(v->stack & INLAY_TRACE_GOES_ON) || v[1].stack >> 8 == 0) break;
    }
    put(t, v->stack & INLAY_TRACE_CUT ? "\"..." : "\"");
    return v + 1;
}

/* As many digits as tell it from its neighbours. */
static void put_real(text *t, uint64_t bits, unsigned size)
{
    double value;
    float narrow;
    uint32_t low = (uint32_t)bits;
    memcpy(&value, &bits, sizeof value);
    memcpy(&narrow, &low, sizeof narrow);
    char digits[40];
    for (int n = 6; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, size == 4 ? (double)narrow : value);
        if (size == 4 ? strtof(digits, NULL) == narrow : strtod(digits, NULL) == value) break;
    }
    put(t, "%s", digits);
}

static void put_number(text *t, const inlay_trace_record *v)
{
    unsigned form = v->stack >> 8 & 0xff, size = v->stack >> 16 & 0xff, unused = size < 8 ? 64 - size * 8 : 0;
    uint64_t value = unused < 64 ? v->when << unused >> unused : 0;
    if (form == 'f') put_real(t, v->when, size);
    else if (form == 'd') put(t, "%" PRId64, unused < 64 ? (int64_t)(v->when << unused) >> unused : 0);
    else if (form == 'u') put(t, "%" PRIu64, value);
    else if (form != 'c') put(t, "0x%" PRIx64, value);
    else {
        put(t, "'");
        put_character(t, (unsigned char)value);
        put(t, "'");
    }
}

const char *trace_calls_values(const trace_calls *c, uint32_t first, char *out, size_t size)
{
    text t = {out, size, 0};
    out[0] = 0;
    if (!first) return out;
    for (const inlay_trace_record *v = &c->values.items[first - 1]; v->what;) {
        if (v != &c->values.items[first - 1]) put(&t, ", ");
        if ((v->stack >> 8 & 0xff) == 's') v = put_string(&t, v);
        else put_number(&t, v++);
    }
    return out;
}
