/* Types as texts that those can read who have no debug information (include/inlay/typed.h, docs/trace-format.md): of a
 * value's bytes they tell what is where.
 *
 *     {16:a@0:i8;b@8:f8}      of 16 bytes: at 0 a signed integer of 8 bytes, at 8 a double
 *     v16,0,8[0:None={16:},*:Some={16:@8:i8}]     forms: which it is tell 8 bytes at 0
 *     E4[RED=0,GREEN=1]       an enumeration, signed
 *     &i4                     a reference to an int
 *     S0,8                    a string: 8 bytes at 0 lead to it, 8 at 8 tell its length
 *
 * Types may be without end: what finds no room, or lies too deep, is left out, and what is there is whole. */
#include "tool/scope.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 5, ENDING = 4 * DEEPEST };

typedef struct writer {
    char *out;
    size_t room, n;
    bool full;
} writer;

/* Whole or not at all. What ends a list has room always. */
__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->out + w->n, w->room - w->n, fmt, args);
    va_end(args);
    w->full |= n < 0 || (size_t)n >= w->room - w->n - ENDING;
    if (!w->full) w->n += (size_t)n;
}

static void put_ending(writer *w, char c) { w->out[w->n++] = c; }

/* Names of C's are as they are. */
static void put_name(writer *w, const char *name)
{
    char clean[64];
    size_t n = 0;
    for (; name[n] && n < sizeof clean - 1; n++) {
        unsigned char c = (unsigned char)name[n];
        bool good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
                    c == '$' || c == '.' || c == '<' || c == '>';
        clean[n] = good ? (char)c : '_';
    }
    clean[n] = 0;
    put(w, "%s", clean);
}

static void put_type(writer *, const image_ctype *, unsigned depth);

static void put_enum(writer *w, const image_ctype *t)
{
    const image_member *m;
    size_t n = image_ctype_members(t, &m);
    put(w, "%c%" PRIu64 "[", t->is_signed ? 'E' : 'e', t->size);
    if (w->full) return;
    for (size_t i = 0; i < n && !w->full; i++) {
        size_t before = w->n;
        put(w, "%s", i ? "," : "");
        put_name(w, m[i].name);
        put(w, "=%" PRIu64, m[i].offset);
        if (w->full) w->n = before;
    }
    w->full = false;
    put_ending(w, ']');
}

/* One without a name is a base of a class, or a structure inside that has none. */
static void put_member(writer *w, const image_member *m, bool first, unsigned depth)
{
    size_t before = w->n;
    const char *base = m->type->name ? strchr(m->type->name, ' ') : NULL;
    put(w, "%s", first ? "" : ";");
    bool is_named = m->name && *m->name;
    if (is_named && !typed_is_place(m->name)) put_name(w, m->name);
    else if (!is_named && m->type->kind == IMAGE_CTYPE_STRUCT && base) put(w, "<"), put_name(w, base + 1), put(w, ">");
    put(w, "@%" PRIu64 ":", m->offset);
    if (!w->full) put_type(w, m->type, depth);
    if (w->full) w->n = before;
}

static void put_structure(writer *w, const image_ctype *t, unsigned depth)
{
    const image_member *m;
    size_t n = image_ctype_members(t, &m), begin;
    put(w, "{%" PRIu64 ":", t->size);
    if (w->full) return;
    begin = w->n;
    for (size_t i = 0; i < n && !w->full; i++) put_member(w, &m[i], w->n == begin, depth);
    w->full = false;
    put_ending(w, '}');
}

static void put_form(writer *w, const image_variant *v, bool first, unsigned depth)
{
    size_t before = w->n;
    put(w, "%s", first ? "" : ",");
    if (v->otherwise) put(w, "*:");
    else put(w, "%" PRIu64 ":", v->value);
    put_name(w, v->name);
    put(w, "=");
    if (!w->full) put_structure(w, v->type, depth);
    if (w->full) w->n = before;
}

/* The one that is there when no other is comes last. */
static void put_forms(writer *w, const image_ctype *t, const image_variants *v, unsigned depth)
{
    size_t begin;
    put(w, "v%" PRIu64 ",%" PRIu64 ",%" PRIu64 "[", t->size, v->offset, v->number ? v->number->size : 0);
    if (w->full) return;
    begin = w->n;
    for (unsigned last = 0; last < 2; last++)
        for (size_t i = 0; i < v->count && !w->full; i++)
            if (v->list[i].otherwise == last) put_form(w, &v->list[i], w->n == begin, depth);
    w->full = false;
    put_ending(w, ']');
}

static void put_type(writer *w, const image_ctype *t, unsigned depth)
{
    bool has_parts = t->kind == IMAGE_CTYPE_ARRAY || t->kind == IMAGE_CTYPE_STRUCT || t->kind == IMAGE_CTYPE_UNION;
    bool is_character = t->kind == IMAGE_CTYPE_INT && t->size == 1 && t->name && !strcmp(t->name, "char");
    if (has_parts && depth == DEEPEST) {
        put(w, "?%" PRIu64, t->size);
        return;
    }
    switch (t->kind) {
    case IMAGE_CTYPE_BOOL: put(w, "b%" PRIu64, t->size); return;
    case IMAGE_CTYPE_INT:
    case IMAGE_CTYPE_WIDE: put(w, "%c%" PRIu64, is_character ? 'c' : t->is_signed ? 'i' : 'u', t->size); return;
    case IMAGE_CTYPE_ENUM: put_enum(w, t); return;
    case IMAGE_CTYPE_FLOAT:
    case IMAGE_CTYPE_LONG_DOUBLE: put(w, "f%" PRIu64, t->size); return;
    case IMAGE_CTYPE_POINTER: put(w, "p%" PRIu64, t->size); return;
    case IMAGE_CTYPE_STRUCT:
        if (image_ctype_variants(t)) {
            put_forms(w, t, image_ctype_variants(t), depth + 1);
            return;
        }
        /* fall through */
    case IMAGE_CTYPE_UNION: put_structure(w, t, depth + 1); return;
    case IMAGE_CTYPE_ARRAY:
        put(w, "a%" PRIu64 ",", t->count);
        if (!w->full) put_type(w, t->of, depth + 1);
        return;
    case IMAGE_CTYPE_BITS:
        put(w, "r%u,%u,%" PRIu64 ",", t->bit_offset, t->bit_count, t->size);
        if (!w->full) put_type(w, t->of, depth + 1);
        return;
    default: put(w, "?%" PRIu64, t->size); return;
    }
}

/* --- strings --- */

/* Of the C++ library, Rust and Go. */
static bool is_string(const image_ctype *t)
{
    static const char *const names[] = {"struct &str", "struct string", "&str", "string", "struct String"};
    if (t->kind != IMAGE_CTYPE_STRUCT || !t->name) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(t->name, names[i])) return true;
    return strstr(t->name, "basic_string<char,") || strstr(t->name, "basic_string_view<char,");
}

/* "vec.len": a member of a member. */
static bool find_inside(const image_ctype *t, const char *path, uint64_t *offset)
{
    char name[32];
    *offset = 0;
    for (const char *end; t; path = end + 1) {
        uint64_t its;
        end = strchrnul(path, '.');
        snprintf(name, sizeof name, "%.*s", (int)(end - path), path);
        const image_member *m = image_ctype_member(t, name, &its);
        if (!m) return false;
        *offset += its;
        t = m->type;
        if (!*end) break;
    }
    return t->size == sizeof(uint64_t);
}

static bool find_word(const image_ctype *t, const char *const *names, uint64_t *offset)
{
    for (; *names; names++)
        if (find_inside(t, *names, offset)) return true;
    return false;
}

static bool put_string(writer *w, const image_ctype *t)
{
    /* Rust's String is a vector of bytes, whose parts lie deeper with each version. */
    static const char *const starts[] = {"_M_dataplus",
                                         "_M_str",
                                         "data_ptr",
                                         "str",
                                         "vec.buf.inner.ptr.pointer.pointer",
                                         "vec.buf.inner.ptr.pointer",
                                         "vec.buf.ptr.pointer.pointer",
                                         "vec.buf.ptr.pointer",
                                         NULL};
    static const char *const lengths[] = {"_M_string_length", "_M_len", "length", "len", "vec.len", NULL};
    uint64_t start, length;
    if (!is_string(t) || !find_word(t, starts, &start) || !find_word(t, lengths, &length)) return false;
    put(w, "S%" PRIu64 ",%" PRIu64, start, length);
    return true;
}

const char *typed_layout(const image_ctype *t, char *out, size_t room)
{
    writer w = {.out = out, .room = room};
    if (t->is_reference) put(&w, "&");
    if (t->is_reference) t = t->of;
    if (!put_string(&w, t)) put_type(&w, t, 0);
    out[w.n] = 0;
    return w.full ? NULL : out;
}
