/* Values as people read them, by their types: {x = 1, p = 0x5581 "abc", kind = RED}.
 *
 * What is written ends where there is no more room, with "...". Bytes are the process's: nothing in them is relied
 * on. */
#include "snippet/typed.h"
#include "tool/state.h"

#include <inlay/typed.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 5, MOST_ELEMENTS = 16, MOST_CHARACTERS = 40, WORD = 8 };

typedef struct writer {
    char *out;
    size_t room, n;
    bool full;
    inlay_reader *read;
    void *arg;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *fmt, ...)
{
    va_list args;
    if (w->full) return;
    va_start(args, fmt);
    int n = vsnprintf(w->out + w->n, w->room - w->n, fmt, args);
    va_end(args);
    w->full = n < 0 || (size_t)n >= w->room - w->n;
    if (w->full) w->out[w->n] = 0; /* half a number is a wrong one */
    else w->n += (size_t)n;
}

static uint64_t bits_at(const uint8_t *bytes, uint64_t size, bool is_signed)
{
    uint64_t bits = 0;
    memcpy(&bits, bytes, size < WORD ? size : WORD);
    unsigned unused = size < WORD ? (unsigned)(WORD - size) * 8 : 0;
    return is_signed && unused && size ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits;
}

/* --- characters --- */

static bool is_character(const image_ctype *t)
{
    return t->kind == IMAGE_CTYPE_INT && t->size == 1 && t->name && strstr(t->name, "char");
}

static void put_character(writer *w, uint8_t c, char quote)
{
    if (c == '\n') put(w, "\\n");
    else if (c == '\t') put(w, "\\t");
    else if (c == quote || c == '\\') put(w, "\\%c", c);
    else if (c < ' ' || c > '~') put(w, "\\%03o", c);
    else put(w, "%c", c);
}

static void put_text(writer *w, const uint8_t *bytes, size_t size, bool goes_on)
{
    size_t most = size < MOST_CHARACTERS ? size : MOST_CHARACTERS, i = 0;
    put(w, "\"");
    for (; i < most && bytes[i]; i++) put_character(w, bytes[i], '"');
    put(w, i == most && (goes_on || i < size) ? "\"..." : "\"");
}

static void put_pointed(writer *w, uint64_t at)
{
    uint8_t bytes[MOST_CHARACTERS];
    size_t n = w->read && at ? w->read(w->arg, bytes, at, sizeof bytes) : 0;
    if (!n) return;
    put(w, " ");
    put_text(w, bytes, n, n == sizeof bytes);
}

/* --- values --- */

static void put_value(writer *, const image_ctype *, const uint8_t *bytes, unsigned depth);

static void put_constant(writer *w, const image_ctype *t, uint64_t value)
{
    const image_member *m;
    uint64_t low = t->size < WORD ? ((uint64_t)1 << t->size * 8) - 1 : ~(uint64_t)0;
    for (size_t i = 0, n = image_ctype_members(t, &m); i < n; i++)
        if ((m[i].offset & low) == (value & low)) {
            put(w, "%s", m[i].name);
            return;
        }
    if (t->is_signed) put(w, "%" PRId64, (int64_t)value);
    else put(w, "%" PRIu64, value);
}

/* `value`: extended as the type says. */
static void put_integer(writer *w, const image_ctype *t, uint64_t value)
{
    if (t->kind == IMAGE_CTYPE_ENUM) put_constant(w, t, value);
    else if (t->kind == IMAGE_CTYPE_BOOL && value <= 1) put(w, "%s", value ? "true" : "false");
    else if (t->is_signed) put(w, "%" PRId64, (int64_t)value);
    else put(w, "%" PRIu64, value);
    if (!is_character(t)) return;
    put(w, " '");
    put_character(w, (uint8_t)value, '\'');
    put(w, "'");
}

static void put_bits(writer *w, const image_ctype *t, const uint8_t *bytes)
{
    uint64_t value = bits_at(bytes, t->size, false) >> t->bit_offset;
    unsigned unused = 64 - t->bit_count;
    value <<= unused;
    value = t->is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
    put_integer(w, t->of, value);
}

static void put_real(writer *w, const image_ctype *t, const uint8_t *bytes)
{
    float small;
    double real;
    if (t->size == sizeof small) {
        memcpy(&small, bytes, sizeof small);
        put(w, "%.9g", (double)small);
        return;
    }
    memcpy(&real, bytes, sizeof real);
    put(w, "%.17g", real);
}

/* Of 16 bytes: as the processor of the process has them, which is this one. */
static void put_wide(writer *w, const image_ctype *t, const uint8_t *bytes)
{
    long double real;
    uint64_t low = bits_at(bytes, WORD, false), high = bits_at(bytes + WORD, WORD, false);
    if (t->kind == IMAGE_CTYPE_LONG_DOUBLE && t->size == sizeof real) {
        memcpy(&real, bytes, sizeof real);
        put(w, "%.21Lg", real);
    } else if (high == (t->is_signed ? (uint64_t)((int64_t)low >> 63) : 0)) {
        put_integer(w, image_ctype_int(WORD, t->is_signed), low);
    } else {
        put(w, "0x%" PRIx64 "%016" PRIx64, high, low);
    }
}

static void put_array(writer *w, const image_ctype *t, const uint8_t *bytes, unsigned depth)
{
    if (is_character(t->of)) {
        put_text(w, bytes, t->count, false);
        return;
    }
    put(w, "{");
    for (uint64_t i = 0; i < t->count && !w->full; i++) {
        put(w, "%s", i ? ", " : "");
        if (i == MOST_ELEMENTS) put(w, "...");
        if (i == MOST_ELEMENTS) break;
        put_value(w, t->of, bytes + i * t->of->size, depth);
    }
    put(w, "}");
}

bool typed_is_place(const char *name)
{
    size_t digits = !strncmp(name, "__", 2) ? strspn(name + 2, "0123456789") : 0;
    return digits && !name[2 + digits];
}

/* One without a name is a base of a class, or a structure inside that has none. */
static void put_name(writer *w, const image_member *m)
{
    const char *base = m->type->name ? strchr(m->type->name, ' ') : NULL;
    bool is_named = m->name && *m->name;
    if (is_named && typed_is_place(m->name)) return;
    if (is_named) put(w, "%s = ", m->name);
    else if (m->type->kind == IMAGE_CTYPE_STRUCT && base) put(w, "<%s> = ", base + 1);
}

static void put_members(writer *w, const image_ctype *t, const uint8_t *bytes, unsigned depth, const char *begin,
                        const char *end)
{
    const image_member *m;
    size_t n = image_ctype_members(t, &m);
    put(w, "%s", begin);
    for (size_t i = 0; i < n && !w->full; i++) {
        bool inside = m[i].offset <= t->size && m[i].type->size <= t->size - m[i].offset;
        put(w, "%s", i ? ", " : "");
        put_name(w, &m[i]);
        if (inside) put_value(w, m[i].type, bytes + m[i].offset, depth);
        else put(w, "?");
    }
    put(w, "%s", end);
}

/* Some(5), None, Line {from = 1, to = 2}: the form that is there. */
static void put_form(writer *w, const image_ctype *t, const image_variants *v, const uint8_t *bytes, unsigned depth)
{
    const image_member *m;
    uint64_t size = v->number ? v->number->size : 0;
    if (v->offset > t->size || size > t->size - v->offset || size > WORD) {
        put(w, "?");
        return;
    }
    uint64_t value = bits_at(bytes + v->offset, size, false), low = size < WORD ? ((uint64_t)1 << size * 8) - 1 : ~0ull;
    const image_variant *is = NULL, *otherwise = NULL;
    for (size_t i = 0; i < v->count && !is; i++) {
        if (v->list[i].otherwise) otherwise = &v->list[i];
        else if ((v->list[i].value & low) == value) is = &v->list[i];
    }
    if (!is) is = otherwise;
    put(w, "%s", is ? is->name : "?");
    if (!is || is->type->size > t->size || !image_ctype_members(is->type, &m)) return;
    bool tuple = m[0].name && typed_is_place(m[0].name);
    put_members(w, is->type, bytes, depth, tuple ? "(" : " {", tuple ? ")" : "}");
}

static void put_structure(writer *w, const image_ctype *t, const uint8_t *bytes, unsigned depth)
{
    const image_variants *v = image_ctype_variants(t);
    if (v) put_form(w, t, v, bytes, depth);
    else put_members(w, t, bytes, depth, "{", "}");
}

static void put_value(writer *w, const image_ctype *t, const uint8_t *bytes, unsigned depth)
{
    uint64_t value = bits_at(bytes, t->size, t->is_signed);
    bool has_parts = t->kind == IMAGE_CTYPE_ARRAY || t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION;
    if (has_parts && depth == DEEPEST) {
        put(w, "{...}");
        return;
    }
    switch (t->kind) {
    case IMAGE_CTYPE_BOOL:
    case IMAGE_CTYPE_INT:
    case IMAGE_CTYPE_ENUM: put_integer(w, t, value); return;
    case IMAGE_CTYPE_BITS: put_bits(w, t, bytes); return;
    case IMAGE_CTYPE_FLOAT: put_real(w, t, bytes); return;
    case IMAGE_CTYPE_WIDE:
    case IMAGE_CTYPE_LONG_DOUBLE: put_wide(w, t, bytes); return;
    case IMAGE_CTYPE_ARRAY: put_array(w, t, bytes, depth + 1); return;
    case IMAGE_CTYPE_STRUCT:
    case IMAGE_CTYPE_UNION: put_structure(w, t, bytes, depth + 1); return;
    case IMAGE_CTYPE_POINTER:
        put(w, "%#" PRIx64, value);
        if (is_character(t->of) || (!depth && t->of->kind == IMAGE_CTYPE_VOID)) put_pointed(w, value);
        return;
    default: put(w, "?"); return;
    }
}

void inlay_typed_text(inlay_expr e, const void *bytes, inlay_reader *read, void *arg, char *out, size_t room)
{
    enum { ENDING = 8 };
    if (!out || !room) return;
    *out = 0;
    if (!e || !bytes || room <= ENDING) return;
    bool entered = tool_enter();
    writer w = {.out = out, .room = room - ENDING, .read = read, .arg = arg};
    put_value(&w, typed_type(e), bytes, 0);
    if (w.full) strcpy(out + w.n, "...");
    tool_leave(entered);
}

size_t inlay_typed_size(inlay_expr e) { return e ? (size_t)typed_type(e)->size : 0; }
