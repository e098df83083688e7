/* Values by layouts (docs/trace-format.md): {a = 8, kind = RED}, true, &{x = 1}.
 *
 * A layout is any text that a file holds, and bytes may be fewer than it speaks of: what is not there is "...". */
#include "base/layout_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 16, MOST_ELEMENTS = 16, WORD = 8 };

typedef struct printer {
    const char *at; /* in the layout */
    const uint8_t *bytes;
    size_t size;
    char *out;
    size_t room, used;
    unsigned depth;
    bool bad, quiet; /* quiet: what is read is not shown */
} printer;

__attribute__((format(printf, 2, 3))) static void put(printer *p, const char *fmt, ...)
{
    va_list args;
    if (p->quiet || p->bad) return;
    va_start(args, fmt);
    int n = vsnprintf(p->out + p->used, p->room - p->used, fmt, args);
    va_end(args);
    p->bad |= n < 0 || (size_t)n >= p->room - p->used; /* no room */
    if (!p->bad) p->used += (size_t)n;
}

static uint64_t number(printer *p)
{
    char *end;
    if (*p->at < '0' || *p->at > '9') p->bad = true;
    if (p->bad) return 0;
    uint64_t n = strtoull(p->at, &end, 10);
    p->at = end;
    return n;
}

static bool takes(printer *p, char c)
{
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static void must(printer *p, char c) { p->bad |= !takes(p, c); }

static bool is_there(const printer *p, uint64_t offset, uint64_t size)
{
    return size && offset <= p->size && size <= p->size - offset;
}

/* False: it is not there. */
static bool integer_at(const printer *p, uint64_t offset, uint64_t size, bool is_signed, uint64_t *out)
{
    if (size > WORD || !is_there(p, offset, size)) return false;
    unsigned unused = (unsigned)(WORD - size) * 8;
    *out = 0;
    memcpy(out, p->bytes + offset, size);
    if (is_signed) *out = (uint64_t)((int64_t)(*out << unused) >> unused);
    return true;
}

static void put_integer(printer *p, uint64_t value, bool is_signed)
{
    if (is_signed) put(p, "%" PRId64, (int64_t)value);
    else put(p, "%" PRIu64, value);
}

/* [RED=0,GREEN=1]; a number without a name is one or several of them together, or itself. */
static void put_constant(printer *p, uint64_t value, uint64_t size, bool is_signed, bool has)
{
    uint64_t low = size < WORD ? ((uint64_t)1 << size * 8) - 1 : ~(uint64_t)0;
    const char *found = NULL;
    int length = 0;
    must(p, '[');
    while (!p->bad && *p->at != ']') {
        const char *name = p->at;
        size_t n = strcspn(name, "=,]");
        p->at += n;
        must(p, '=');
        uint64_t its = number(p);
        if (has && !found && (its & low) == (value & low)) found = name, length = (int)n;
        if (!takes(p, ',') && *p->at != ']') p->bad = true;
    }
    must(p, ']');
    if (!has) put(p, "...");
    else if (found) put(p, "%.*s", length, found);
    else put_integer(p, value, is_signed);
}

static void put_character(printer *p, uint8_t c, char quote)
{
    if (c == (uint8_t)quote || c == '\\') put(p, "\\%c", c);
    else if (c < ' ' || c > '~') put(p, "\\x%02x", c);
    else put(p, "%c", c);
}

static void put_real(printer *p, uint64_t offset, uint64_t size)
{
    float narrow;
    double real;
    long double wide;
    if (!is_there(p, offset, size)) put(p, "...");
    else if (size == sizeof narrow) memcpy(&narrow, p->bytes + offset, size), put(p, "%.9g", (double)narrow);
    else if (size == sizeof real) memcpy(&real, p->bytes + offset, size), put(p, "%.15g", real);
    else if (size == sizeof wide) memcpy(&wide, p->bytes + offset, size), put(p, "%.18Lg", wide);
    else put(p, "?");
}

/* Of 16 bytes, say. */
static void put_wide(printer *p, uint64_t offset, uint64_t size, bool is_signed)
{
    uint64_t low, high;
    bool has = size == 2 * WORD && integer_at(p, offset, WORD, false, &low) &&
               integer_at(p, offset + WORD, WORD, false, &high);
    if (!has) put(p, "...");
    else if (high == (is_signed ? (uint64_t)((int64_t)low >> 63) : 0)) put_integer(p, low, is_signed);
    else put(p, "0x%" PRIx64 "%016" PRIx64, high, low);
}

static void put_plain(printer *p, char kind, uint64_t offset)
{
    uint64_t size = number(p), value;
    bool is_signed = kind == 'i' || kind == 'E', has = integer_at(p, offset, size, is_signed, &value);
    if (kind == 'f') put_real(p, offset, size);
    else if (kind == 'e' || kind == 'E') put_constant(p, has ? value : 0, size, is_signed, has);
    else if (size > WORD) put_wide(p, offset, size, is_signed);
    else if (!has) put(p, "...");
    else if (kind == 'b' && value <= 1) put(p, "%s", value ? "true" : "false");
    else if (kind == 'p') put(p, "0x%" PRIx64, value);
    else if (kind == 'c') put(p, "'"), put_character(p, (uint8_t)value, '\''), put(p, "'");
    else put_integer(p, value, is_signed);
}

static void put_type(printer *, uint64_t offset);

/* How many bytes what comes takes; 0: it makes no sense. */
static uint64_t size_of_next(const printer *p)
{
    const char *at = p->at;
    uint64_t count = 1;
    for (unsigned i = 0; *at == 'a' && i < DEEPEST; i++) {
        char *end;
        count *= strtoull(at + 1, &end, 10);
        at = *end == ',' ? end + 1 : "";
    }
    if (*at) at++;
    uint64_t size = strtoull(at, NULL, 10);
    return size <= UINT32_MAX && count <= UINT32_MAX ? size * count : 0;
}

static void put_text(printer *p, uint64_t offset, uint64_t count)
{
    put(p, "\"");
    for (uint64_t i = 0; i < count && is_there(p, offset + i, 1); i++) {
        if (!p->bytes[offset + i]) break;
        put_character(p, p->bytes[offset + i], '"');
    }
    put(p, is_there(p, offset, count) ? "\"" : "\"...");
}

static void skip_type(printer *p)
{
    bool before = p->quiet;
    p->quiet = true;
    put_type(p, UINT64_MAX);
    p->quiet = before;
}

static void put_array(printer *p, uint64_t offset)
{
    uint64_t count = number(p), size;
    must(p, ',');
    size = size_of_next(p);
    const char *of = p->at;
    bool is_text = of[0] == 'c' && size == 1;
    if (is_text) put_text(p, offset, count);
    else put(p, "{");
    for (uint64_t i = 0; i < count && !is_text && !p->bad && !p->quiet; i++) {
        bool shown = i < MOST_ELEMENTS && is_there(p, offset + i * size, size);
        p->at = of;
        put(p, "%s%s", i ? ", " : "", shown ? "" : "...");
        if (!shown) break;
        put_type(p, offset + i * size);
    }
    p->at = of;
    skip_type(p);
    if (!is_text) put(p, "}");
}

/* name@offset:type; once something is not there, what follows is not either. */
static void put_members(printer *p, uint64_t offset, const char *begin, const char *end)
{
    bool before = p->quiet, first = true;
    number(p);
    must(p, ':');
    put(p, "%s", begin);
    while (!p->bad && *p->at != '}') {
        const char *name = p->at;
        int n = (int)strcspn(name, "@;}");
        p->at += n;
        must(p, '@');
        uint64_t at = number(p);
        must(p, ':');
        bool known = at < p->size && offset < p->size;
        if (!p->quiet) put(p, "%s", first ? "" : ", ");
        first = false;
        if (!known) put(p, "...");
        if (known && n) put(p, "%.*s = ", n, name);
        p->quiet |= !known;
        if (!p->bad) put_type(p, p->quiet ? UINT64_MAX : offset + at);
        if (!takes(p, ';') && *p->at != '}') p->bad = true;
    }
    must(p, '}');
    p->quiet = before;
    put(p, "%s", end);
}

/* What belongs to a form: {8:@4:i4}, members without names as Rust writes them; nothing where there are none. */
static void put_form(printer *p, uint64_t offset)
{
    const char *colon = *p->at == '{' ? strchr(p->at, ':') : NULL;
    if (!colon) {
        p->bad = true;
    } else {
        p->at++;
        p->depth++;
        if (p->depth == DEEPEST) p->bad = true;
        else if (colon[1] == '}') put_members(p, offset, "", "");
        else if (colon[1] == '@') put_members(p, offset, "(", ")");
        else put_members(p, offset, " {", "}");
        p->depth--;
    }
}

/* v16,0,8[0:None={16:},*:Some={16:@8:i8}]: of 16 bytes 8 at 0 tell which; the last one may be whatever the others are
 * not. */
static void put_variant(printer *p, uint64_t offset)
{
    bool before = p->quiet, found = false;
    uint64_t size, at, value = 0;
    number(p);
    must(p, ',');
    at = number(p);
    must(p, ',');
    size = number(p);
    must(p, '[');
    bool is = offset < p->size && at < p->size && (!size || integer_at(p, offset + at, size, false, &value));
    if (!is) put(p, "...");
    while (!p->bad && *p->at != ']') {
        bool otherwise = takes(p, '*');
        uint64_t its = otherwise ? value : number(p), low = size < WORD ? ((uint64_t)1 << size * 8) - 1 : ~(uint64_t)0;
        must(p, ':');
        const char *name = p->at;
        int n = (int)strcspn(name, "=],");
        p->at += n;
        must(p, '=');
        p->quiet |= !is || found || (its & low) != (value & low);
        found |= !p->quiet;
        put(p, "%.*s", n, name);
        put_form(p, p->quiet ? UINT64_MAX : offset);
        p->quiet = before;
        if (!takes(p, ',') && *p->at != ']') p->bad = true;
    }
    must(p, ']');
    if (is && !found) put(p, "?");
}

static void put_bits(printer *p, uint64_t offset)
{
    uint64_t first = number(p), count, size, value;
    must(p, ',');
    count = number(p);
    must(p, ',');
    size = number(p);
    must(p, ',');
    bool good = !p->bad && count && first < 64 && count <= 64 && first + count <= 64;
    if (!good || !integer_at(p, offset, size, false, &value)) {
        p->bad |= !good;
        put(p, "...");
        skip_type(p);
        return;
    }
    /* The field's own type, of bytes that hold it alone. */
    bool is_signed = *p->at == 'i' || *p->at == 'E' || *p->at == 'c';
    unsigned unused = 64 - (unsigned)count;
    value = value >> first << unused;
    value = is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
    uint8_t bytes[WORD];
    memcpy(bytes, &value, sizeof bytes);
    printer inner = *p;
    inner.bytes = bytes;
    inner.size = sizeof bytes;
    put_type(&inner, 0);
    p->at = inner.at;
    p->used = inner.used;
    p->bad = inner.bad;
}

static void put_type(printer *p, uint64_t offset)
{
    char kind = *p->at;
    if (p->bad || !kind || p->depth == DEEPEST) {
        p->bad = true;
        return;
    }
    p->at++;
    p->depth++;
    if (strchr("iubcfpeE", kind)) put_plain(p, kind, offset);
    else if (kind == '{') put_members(p, offset, "{", "}");
    else if (kind == 'v') put_variant(p, offset);
    else if (kind == 'a') put_array(p, offset);
    else if (kind == 'r') put_bits(p, offset);
    else if (kind == '?') number(p), put(p, "?");
    else p->bad = true;
    p->depth--;
}

size_t inl_layout_text(const char *layout, const uint8_t *bytes, size_t size, char *out, size_t room)
{
    printer p = {.at = layout, .bytes = bytes, .size = size, .out = out, .room = room};
    if (!room) return 0;
    if (takes(&p, '&')) put(&p, "&");
    put_type(&p, 0);
    bool whole = !p.bad && (*p.at == 0 || *p.at == '\n');
    if (!whole) out[0] = 0;
    return whole ? p.used : 0;
}
