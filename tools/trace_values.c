/* Arguments and results, recorded with the calls they belong to (-A, -R).
 *
 *     malloc@arg1/u;open@arg1/s,arg2/x32     of these procedures these arguments, each in a form
 *     solver::*                              of these all that debug information tells the types of
 *     malloc/p;read/d                        results
 *
 * Each is a record like those of entries, behind the entry or before the exit. A string is copied where the call
 * begins, at most MOST_TEXT bytes of it, by what cannot fault. */
#define _GNU_SOURCE
#include "trace.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENT = 12, PIECES = 6, MOST_TEXT = PIECES * 8 };

/* A string in pieces, as records have them. */
typedef struct copied {
    uint64_t count;
    uint64_t pieces[PIECES];
    uint32_t tags[PIECES];
} copied;

static inlay_local *texts;
static const trace_settings *asked;

/* --- what is asked for --- */

/* "u32" behind a '/': the form, and bytes. False: there is none such. */
static bool read_form(const char *at, const char *end, unsigned *form, unsigned *size)
{
    unsigned long bits = 64;
    if (at == end || !strchr("diuxpsc", *at)) return false;
    *form = (unsigned char)(*at == 'i' ? 'd' : *at);
    if (at + 1 < end) {
        char *stop;
        bits = strtoul(at + 1, &stop, 10);
        if (stop != end || *at == 's' || *at == 'p') return false;
    }
    if (*form == 'c') bits = 8;
    *size = (unsigned)bits / 8;
    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

/* "arg2/s", or "arg2". */
static bool read_argument(const char *at, const char *end, unsigned *number, unsigned *form, unsigned *size)
{
    if (end - at < 4 || strncmp(at, "arg", 3) != 0 || !isdigit((unsigned char)at[3])) return false;
    char *stop;
    *number = (unsigned)strtoul(at + 3, &stop, 10);
    *form = 'd';
    *size = 8;
    if (!*number || *number > MOST_ARGUMENT || stop > end) return false;
    return stop == end || (*stop == '/' && read_form(stop + 1, end, form, size));
}

static const char *end_of(const char *at, const char *marks) { return at + strcspn(at, marks); }

static const char *find(const char *at, const char *end, char what)
{
    return end > at ? memrchr(at, what, (size_t)(end - at)) : NULL;
}

/* Where a list of arguments begins, behind the last '@' (a stub's name has one, too); NULL: there is none. */
static const char *list_of(const char *at, const char *end)
{
    const char *list = find(at, end, '@');
    return list && end - list > 3 && strncmp(list + 1, "arg", 3) == 0 ? list : NULL;
}

static bool arguments_agree(const char *text)
{
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        const char *list = list_of(at, end);
        if (at == end) return false;
        for (const char *one = list ? list + 1 : end, *stop; list && one <= end; one = stop + 1) {
            unsigned number, form, size;
            stop = end_of(one, ",;");
            if (!read_argument(one, stop, &number, &form, &size)) return false;
        }
    }
    return true;
}

static bool results_agree(const char *text)
{
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        unsigned form, size;
        end = end_of(at, ";");
        const char *slash = find(at, end, '/');
        if (at == end || (slash && !read_form(slash + 1, end, &form, &size))) return false;
    }
    return true;
}

bool trace_values_prepare(const trace_settings *s)
{
    asked = s;
    if (s->arguments && !arguments_agree(s->arguments)) {
        inlay_warn("-A '%s': NAME@arg1/FORM,arg2/FORM;NAME, with forms d i u x (and 8, 16, 32, 64 bits), p, c, s (a "
                   "string); floating point is not recorded",
                   s->arguments);
        return false;
    }
    if (s->results && !results_agree(s->results)) {
        inlay_warn("-R '%s': NAME/FORM;NAME, with forms d i u x (and 8, 16, 32, 64 bits), p, c, s (a string)",
                   s->results);
        return false;
    }
    if (!s->arguments && !s->results) return true;
    return (texts = inlay_local_new(sizeof(copied))) != NULL;
}

/* --- strings --- */

static void copy_text(copied *c, uint64_t from, uint64_t tag)
{
    char text[MOST_TEXT + 2] = {0};
    long length = from ? inlay_memory_string(text, from, MOST_TEXT + 2) : -1;
    c->count = 1;
    c->pieces[0] = from;
    c->tags[0] = (uint32_t)tag | INLAY_TRACE_UNREADABLE;
    if (length < 0) return;
    bool cut = length > MOST_TEXT;
    size_t n = cut ? MOST_TEXT : (size_t)length;
    memcpy(c->pieces, text, n);
    memset((char *)c->pieces + n, 0, MOST_TEXT - n);
    c->count = n ? (n + 7) / 8 : 1;
    for (uint64_t k = 0; k < c->count; k++) c->tags[k] = (uint32_t)tag | (k + 1 < c->count ? INLAY_TRACE_GOES_ON : 0);
    if (cut) c->tags[c->count - 1] |= INLAY_TRACE_CUT;
}

static inlay_expr piece_at(size_t offset, unsigned size)
{
    return inlay_load(inlay_binary(INLAY_ADD, inlay_local_address(texts), inlay_const(offset)), size);
}

/* --- what is inserted --- */

static inlay_expr append(inlay_buffer *records, inlay_expr value, inlay_expr tag)
{
    return inlay_append(records, INLAY_FIELD(8, value), INLAY_FIELD(4, tag),
                        INLAY_FIELD(4, inlay_const(INLAY_TRACE_VALUE)));
}

static inlay_expr then(inlay_expr first, inlay_expr second) { return first ? inlay_sequence(first, second) : second; }

static inlay_expr record_text(inlay_buffer *records, inlay_expr address, uint32_t tag)
{
    inlay_expr all = inlay_call(copy_text, inlay_local_address(texts), address, inlay_const(tag));
    for (unsigned k = 0; k < PIECES; k++) {
        inlay_expr one = append(records, piece_at(offsetof(copied, pieces) + k * sizeof(uint64_t), 8),
                                piece_at(offsetof(copied, tags) + k * sizeof(uint32_t), 4));
        inlay_expr is_there = inlay_binary(INLAY_UGT, piece_at(offsetof(copied, count), 8), inlay_const(k));
        all = inlay_sequence(all, inlay_if(is_there, one, NULL));
    }
    return all;
}

/* `number`: from 1; 0: the result. */
static inlay_expr record_value(inlay_buffer *records, inlay_expr value, unsigned number, unsigned form, unsigned size)
{
    uint32_t tag = number | form << 8 | size << 16;
    if (form == 's') return record_text(records, value, tag);
    return append(records, value, inlay_const(tag));
}

/* --- by the types that debug information has --- */

typedef struct typed {
    inlay_buffer *records;
    inlay_expr all;
    unsigned number;
    bool unclear; /* where the next parameters are is not known */
} typed;

/* Floating point has registers of its own; where a structure is depends on what is in it. */
static void each_parameter(const inlay_scope_static *s, void *arg)
{
    typed *t = arg;
    if (t->unclear || s->format == 'f') return;
    t->unclear = !s->format || s->size > sizeof(uint64_t) || t->number == MOST_ARGUMENT;
    if (t->unclear) return;
    size_t n = strlen(s->type);
    bool is_text = s->format == 'p' && n >= 6 && !strcmp(s->type + n - 6, "char *");
    unsigned form = is_text ? 's' : s->format == 'i' ? 'd' : (unsigned char)s->format;
    inlay_expr value = inlay_argument(t->number++);
    t->all = then(t->all, record_value(t->records, value, t->number, form, (unsigned)s->size));
}

static inlay_expr by_types(inlay_proc *proc, inlay_buffer *records)
{
    typed t = {.records = records};
    inlay_scope *scope = inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc));
    if (scope) inlay_scope_parameters(scope, each_parameter, &t);
    return t.all;
}

/* --- a procedure's --- */

static inlay_expr listed(inlay_buffer *records, const char *at, const char *end)
{
    inlay_expr all = NULL;
    for (const char *stop; at <= end; at = stop + 1) {
        unsigned number, form, size;
        stop = end_of(at, ",;");
        if (read_argument(at, stop, &number, &form, &size))
            all = then(all, record_value(records, inlay_argument(number - 1), number, form, size));
    }
    return all;
}

static bool is_for(inlay_proc *proc, const char *at, const char *end)
{
    char pattern[1024];
    size_t n = (size_t)(end - at);
    if (n >= sizeof pattern) return false;
    memcpy(pattern, at, n);
    pattern[n] = 0;
    return trace_select_matches(pattern, proc);
}

inlay_expr trace_values_arguments(inlay_proc *proc, inlay_buffer *records)
{
    inlay_expr all = NULL;
    for (const char *at = asked->arguments, *end; at && *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        const char *list = list_of(at, end);
        if (!is_for(proc, at, list ? list : end)) continue;
        inlay_expr these = list ? listed(records, list + 1, end) : by_types(proc, records);
        if (these) all = then(all, these);
    }
    return all;
}

inlay_expr trace_values_result(inlay_proc *proc, inlay_buffer *records)
{
    for (const char *at = asked->results, *end; at && *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        const char *slash = find(at, end, '/');
        unsigned form = 'd', size = 8;
        if (!is_for(proc, at, slash ? slash : end)) continue;
        if (slash) read_form(slash + 1, end, &form, &size);
        return record_value(records, inlay_return_value(), 0, form, size);
    }
    return NULL;
}
