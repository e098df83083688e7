/* Arguments and results as text. */
#include "trace/calls.h"
#include "base/layout_text.h"

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

const inlay_trace_record *trace_value_string(const inlay_trace_record *v, char *out, size_t *length, bool *cut)
{
    *length = 0;
    for (bool more = true; more; v++) {
        char bytes[sizeof v->when];
        memcpy(bytes, &v->when, sizeof bytes);
        size_t n = strnlen(bytes, sizeof bytes);
        bool fits = *length + n <= TRACE_STRING_MOST;
        if (fits) memcpy(out + *length, bytes, n);
        if (fits) *length += n;
        *cut = !fits || v->stack & INLAY_TRACE_CUT;
        more = n == sizeof bytes && v->stack & INLAY_TRACE_GOES_ON && v[1].stack >> 8;
    }
    return v;
}

static const inlay_trace_record *put_string(text *t, const inlay_trace_record *v)
{
    char bytes[TRACE_STRING_MOST];
    size_t length;
    bool cut;
    if (v->stack & INLAY_TRACE_UNREADABLE) {
        if (v->when) put(t, "0x%" PRIx64 " (no memory)", v->when);
        else put(t, "NULL");
        return v + 1;
    }
    v = trace_value_string(v, bytes, &length, &cut);
    put(t, "\"");
    for (size_t i = 0; i < length; i++) put_character(t, (unsigned char)bytes[i]);
    put(t, cut ? "\"..." : "\"");
    return v;
}

void trace_value_bits(const inlay_trace_record *v, uint64_t *bits, double *real)
{
    unsigned size = trace_value_size(v), unused = size < 8 ? 64 - size * 8 : 0;
    float narrow;
    uint32_t low = (uint32_t)v->when;
    memcpy(real, &v->when, sizeof *real);
    memcpy(&narrow, &low, sizeof narrow);
    if (size == sizeof narrow) *real = (double)narrow;
    *bits = unused < 64 ? v->when << unused >> unused : 0;
    if (trace_value_form(v) == 'd' && unused < 64) *bits = (uint64_t)((int64_t)(v->when << unused) >> unused);
}

/* As many digits as tell it from its neighbours. */
static void put_real(text *t, double value, unsigned size)
{
    char digits[40];
    for (int n = 6; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (size == 4 ? (double)strtof(digits, NULL) == value : strtod(digits, NULL) == value) break;
    }
    put(t, "%s", digits);
}

static void put_number(text *t, const inlay_trace_record *v)
{
    unsigned form = trace_value_form(v);
    uint64_t bits;
    double real;
    trace_value_bits(v, &bits, &real);
    if (form == 'f') put_real(t, real, trace_value_size(v));
    else if (form == 'd') put(t, "%" PRId64, (int64_t)bits);
    else if (form == 'u') put(t, "%" PRIu64, bits);
    else if (form != 'c') put(t, "0x%" PRIx64, bits);
    else {
        put(t, "'");
        put_character(t, (unsigned char)bits);
        put(t, "'");
    }
}

const inlay_trace_record *trace_calls_first(const trace_calls *c, uint32_t first)
{
    static const inlay_trace_record none;
    return first ? &c->values.items[first - 1] : &none;
}

static const inlay_trace_record *put_words(text *t, const inlay_trace_record *v)
{
    bool more = true;
    if (v->stack & INLAY_TRACE_UNREADABLE) {
        put(t, "0x%" PRIx64 " (no memory)", v->when);
        return v + 1;
    }
    put(t, "{");
    for (; more; v++) {
        uint64_t bits;
        double real;
        trace_value_bits(v, &bits, &real);
        if (trace_value_size(v)) put(t, "0x%" PRIx64, bits);
        more = v->stack & INLAY_TRACE_GOES_ON && trace_value_form(v + 1) == 'w';
        if (more) put(t, ", ");
        else if (!trace_value_size(v)) put(t, "...");
        else if (v->stack & INLAY_TRACE_CUT) put(t, ", ...");
    }
    put(t, "}");
    return v;
}

/* The layout of an argument, from 1, or of the result, 0, in what is told of a procedure (NULL: nothing is): "1 b1\n2
 * E4[...]\n". It ends with the line. NULL: there is none. */
static const char *layout_of(const char *types, unsigned wanted)
{
    for (const char *at = types; at && *at;) {
        char *end;
        unsigned long its = strtoul(at, &end, 10);
        if (end == at || *end != ' ') return NULL;
        if (its == wanted) return end + 1;
        at = strchr(end, '\n');
        if (at) at++;
    }
    return NULL;
}

const char *trace_value_layout(const trace_calls *c, const inlay_trace_record *v)
{
    unsigned form = trace_value_form(v);
    if (form != 'w' && form != 'd' && form != 'u') return NULL;
    return layout_of(c->s->procs.items[v->what - 1].types, trace_value_number(v));
}

/* By its layout. NULL: it has none, or one that makes no sense. */
static const inlay_trace_record *put_typed(text *t, const trace_calls *c, const inlay_trace_record *v)
{
    uint8_t bytes[TRACE_STRING_MOST];
    size_t n = 0;
    const char *layout = v->stack & INLAY_TRACE_UNREADABLE ? NULL : trace_value_layout(c, v);
    if (!layout) return NULL;
    for (bool last = false; !last; v++) {
        size_t size = trace_value_size(v) < sizeof v->when ? trace_value_size(v) : sizeof v->when;
        if (n + size <= sizeof bytes) memcpy(bytes + n, &v->when, size), n += size;
        last = !(v->stack & INLAY_TRACE_GOES_ON) || trace_value_form(v + 1) != 'w';
    }
    size_t used = n && t->used < t->size ? inl_layout_text(layout, bytes, n, t->out + t->used, t->size - t->used) : 0;
    t->used += used;
    return used ? v : NULL;
}

static const inlay_trace_record *put_value(text *t, const trace_calls *c, const inlay_trace_record *v)
{
    const inlay_trace_record *behind = put_typed(t, c, v);
    if (behind) return behind;
    if (trace_value_form(v) == 'w') return put_words(t, v);
    if (trace_value_form(v) == 's') return put_string(t, v);
    put_number(t, v);
    return v + 1;
}

const inlay_trace_record *trace_value_text(const trace_calls *c, const inlay_trace_record *v, char *out, size_t size)
{
    text t = {out, size, 0};
    out[0] = 0;
    return put_value(&t, c, v);
}

const char *trace_calls_values(const trace_calls *c, uint32_t first, char *out, size_t size)
{
    text t = {out, size, 0};
    out[0] = 0;
    for (const inlay_trace_record *v = trace_calls_first(c, first); v->what;) {
        if (t.used) put(&t, ", ");
        v = put_value(&t, c, v);
    }
    return out;
}
