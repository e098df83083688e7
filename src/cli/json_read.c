/* JSON, read and written. Strings stay as they are written, so that what comes in goes out. */
#include "cli/json_read.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

typedef struct reader {
    inl_arena *arena;
    const char *at, *end;
    unsigned depth;
} reader;

static void skip_space(reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) r->at++;
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static const char *copy(reader *r, const char *from, size_t n)
{
    char *to = inl_arena_alloc(r->arena, n + 1);
    if (!to) return NULL;
    memcpy(to, from, n);
    to[n] = 0;
    return to;
}

static const char *take_string(reader *r)
{
    if (!take(r, '"')) return NULL;
    const char *begin = r->at;
    while (r->at < r->end && *r->at != '"' && (unsigned char)*r->at >= 0x20)
        r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
    if (r->at >= r->end || *r->at != '"') return NULL;
    return copy(r, begin, (size_t)(r->at++ - begin));
}

static size_t digits(const char *at) { return strspn(at, "0123456789"); }

/* -12.5e+3: no zeros in front, digits on both sides of the point. */
static bool is_number(const char *at)
{
    at += *at == '-';
    size_t n = digits(at);
    bool good = n == 1 || (n && *at != '0');
    at += n;
    if (*at == '.') {
        n = digits(at + 1);
        good = good && n;
        at += 1 + n;
    }
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+' || at[1] == '-');
        n = digits(at);
        good = good && n;
        at += n;
    }
    return good && !*at;
}

/* What no double can be is the largest one there is: other readers know no infinite numbers. */
double json_finite(double x) { return x > DBL_MAX ? DBL_MAX : x < -DBL_MAX ? -DBL_MAX : x; }

static bool take_number(reader *r, json *out)
{
    size_t n = 0;
    while (r->at + n < r->end && r->at[n] && strchr("0123456789+-.eE", r->at[n])) n++;
    const char *text = n ? copy(r, r->at, n) : NULL;
    if (!text || !is_number(text)) return false;
    errno = 0;
    out->kind = JSON_UINT;
    out->number = digits(text) == n ? strtoull(text, NULL, 10) : 0;
    if (digits(text) != n || errno == ERANGE) { /* or larger than any count */
        out->kind = JSON_REAL;
        out->real = json_finite(strtod(text, NULL));
    }
    r->at += n;
    return true;
}

static json *take_value(reader *r);

static bool take_members(reader *r, json *out, char close)
{
    bool is_object = close == '}';
    out->kind = is_object ? JSON_OBJECT : JSON_ARRAY;
    if (take(r, close)) return true;
    do {
        const char *key = is_object ? take_string(r) : NULL;
        if (is_object && (!key || !take(r, ':'))) return false;
        json *item = take_value(r);
        if (!item) return false;
        item->key = key;
        json_append(out, item);
    } while (take(r, ','));
    return take(r, close);
}

static bool take_into(reader *r, json *out)
{
    skip_space(r);
    if (r->at == r->end) return false;
    switch (*r->at) {
    case '{': r->at++; return take_members(r, out, '}');
    case '[': r->at++; return take_members(r, out, ']');
    case '"': out->kind = JSON_STRING; return (out->text = take_string(r)) != NULL;
    case 't':
    case 'f':
        out->kind = JSON_BOOL;
        out->truth = *r->at == 't';
        return take_word(r, out->truth ? "true" : "false");
    case 'n': return take_word(r, "null");
    default: return take_number(r, out);
    }
}

static json *take_value(reader *r)
{
    json *v = inl_arena_alloc(r->arena, sizeof *v);
    if (!v || r->depth == DEEPEST) return NULL;
    *v = (json){0};
    r->depth++;
    bool good = take_into(r, v);
    r->depth--;
    return good ? v : NULL;
}

json *json_read(inl_arena *arena, const char *text, size_t size, size_t *at)
{
    reader r = {arena, text, text + size, 0};
    json *v = take_value(&r);
    if (v) skip_space(&r);
    *at = (size_t)(r.at - text);
    return v && r.at == r.end ? v : NULL;
}

void json_append(json *to, json *item)
{
    item->next = NULL;
    if (to->last) to->last->next = item;
    else to->first = item;
    to->last = item;
}

json *json_member(const json *object, const char *key)
{
    for (json *m = object->first; m; m = m->next)
        if (m->key && !strcmp(m->key, key)) return m;
    return NULL;
}

/* --- writing --- */

static void write_value(FILE *f, const json *v, unsigned depth);

static void write_members(FILE *f, const json *v, unsigned depth)
{
    bool is_array = v->kind == JSON_ARRAY;
    fputc(is_array ? '[' : '{', f);
    for (const json *m = v->first; m; m = m->next) {
        if (depth == 0 || (depth == 1 && is_array)) fputs("\n ", f);
        if (m->key) fprintf(f, "\"%s\": ", m->key);
        write_value(f, m, depth + 1);
        if (m->next) fputc(',', f);
    }
    fputc(is_array ? ']' : '}', f);
}

static void write_value(FILE *f, const json *v, unsigned depth)
{
    switch (v->kind) {
    case JSON_NULL: fputs("null", f); break;
    case JSON_BOOL: fputs(v->truth ? "true" : "false", f); break;
    case JSON_UINT: fprintf(f, "%" PRIu64, v->number); break;
    case JSON_REAL: fprintf(f, "%.17g", v->real); break;
    case JSON_STRING: fprintf(f, "\"%s\"", v->text); break;
    case JSON_ARRAY:
    case JSON_OBJECT: write_members(f, v, depth); break;
    }
}

void json_write(FILE *f, const json *v)
{
    write_value(f, v, 0);
    fputc('\n', f);
}
