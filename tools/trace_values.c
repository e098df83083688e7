/* Arguments and results, recorded with the calls they belong to (-A, -R).
 *
 *     malloc@arg1/u;open@arg1/s,arg2/x32     of these procedures these arguments, each in a form
 *     solver::*                              of these all that debug information tells the types of
 *     pow@fparg1/f,fparg2/f                  floating point, counted apart
 *     double pow(double x, double y)         by a prototype: arguments and the result
 *     malloc/p;read/d                        results
 *
 * Each is a record like those of entries, behind the entry or before the exit. A string is copied where the call
 * begins, at most MOST_TEXT bytes of it, by what cannot fault. */
#define _GNU_SOURCE
#include "trace.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENT = 12, MOST_REAL = 8, PIECES = 6, MOST_TEXT = PIECES * 8, MOST_TYPED = 32, MOST_WORDS = 4 };

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
    if (at == end || !strchr("diuxpscf", *at)) return false;
    *form = (unsigned char)(*at == 'i' ? 'd' : *at);
    if (at + 1 < end) {
        char *stop;
        bits = strtoul(at + 1, &stop, 10);
        if (stop != end || *at == 's' || *at == 'p') return false;
    }
    if (*form == 'c') bits = 8;
    *size = (unsigned)bits / 8;
    if (*form == 'f' && bits < 32) return false;
    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

/* "arg2/s", or "arg2"; "fparg1/f": numbered apart. */
static bool read_argument(const char *at, const char *end, unsigned *number, unsigned *form, unsigned *size)
{
    bool real = end - at > 2 && at[0] == 'f' && at[1] == 'p';
    if (real) at += 2;
    if (end - at < 4 || strncmp(at, "arg", 3) != 0 || !isdigit((unsigned char)at[3])) return false;
    char *stop;
    *number = (unsigned)strtoul(at + 3, &stop, 10);
    *form = real ? 'f' : 'd';
    *size = 8;
    if (!*number || *number > (real ? MOST_REAL : MOST_ARGUMENT) || stop > end) return false;
    bool good = stop == end || (*stop == '/' && read_form(stop + 1, end, form, size));
    return good && real == (*form == 'f');
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
    if (!list || end - list < 4) return NULL;
    return !strncmp(list + 1, "arg", 3) || !strncmp(list + 1, "fparg", 5) ? list : NULL;
}

/* The name in "double pow(double x, double y)", or in what has begun so; NULL: it is no prototype, but a pattern,
 * perhaps of a C++ name. */
static const char *typed_name(const char *at, const char *end, const char **behind)
{
    const char *open = memchr(at, '(', (size_t)(end - at));
    if (!open || !strncmp(at, "operator", 8)) return NULL;
    *behind = open;
    while (*behind > at && (*behind)[-1] == ' ') --*behind;
    const char *name = *behind;
    while (name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
    bool has_type = name > at && (name[-1] == ' ' || name[-1] == '*') && isalpha((unsigned char)*at);
    return has_type && name < *behind && !memchr(at, '<', (size_t)(name - at)) ? name : NULL;
}

static const char *prototype_name(const char *at, const char *end, const char **behind)
{
    return end > at && end[-1] == ')' ? typed_name(at, end, behind) : NULL;
}

static bool arguments_agree(const char *text)
{
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        const char *list = list_of(at, end), *behind;
        bool is_cut = !find(at, end, ')') && typed_name(at, end, &behind);
        if (is_cut) inlay_option_refuse("-A '%.*s': the prototype ends without its ')'", (int)(end - at), at);
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
    if (s->arguments && !arguments_agree(s->arguments))
        inlay_option_refuse(
            "-A '%s': NAME@arg1/FORM,fparg1/f;NAME;double f(int, double), with forms d i u x (and 8, 16, 32, 64 bits), "
            "p, c, s (a string), f (f32: a float)",
            s->arguments);
    if (s->results && !results_agree(s->results))
        inlay_option_refuse(
            "-R '%s': NAME/FORM;NAME, with forms d i u x (and 8, 16, 32, 64 bits), p, c, s (a string), f, f32",
            s->results);
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

/* One whose length is told: no zero ends it. */
static void copy_counted(copied *c, uint64_t from, uint64_t length, uint64_t tag)
{
    char text[MOST_TEXT] = {0};
    size_t n = length < MOST_TEXT ? (size_t)length : MOST_TEXT;
    c->count = 1;
    c->pieces[0] = from;
    c->tags[0] = (uint32_t)tag | INLAY_TRACE_UNREADABLE;
    if (n && inlay_memory_read(text, from, n) != n) return;
    memcpy(c->pieces, text, MOST_TEXT);
    c->count = n ? (n + 7) / 8 : 1;
    for (uint64_t k = 0; k < c->count; k++) c->tags[k] = (uint32_t)tag | (k + 1 < c->count ? INLAY_TRACE_GOES_ON : 0);
    if (length > MOST_TEXT) c->tags[c->count - 1] |= INLAY_TRACE_CUT;
}

/* Where an object of strings' kind is: `places` is where the address and << 32 the length stand in it. */
static void copy_counted_at(copied *c, uint64_t object, uint64_t places, uint64_t tag)
{
    uint64_t from = 0, length = 0;
    bool good = inlay_memory_read(&from, object + (uint32_t)places, sizeof from) == sizeof from &&
                inlay_memory_read(&length, object + (places >> 32), sizeof length) == sizeof length;
    copy_counted(c, good ? from : object, good ? length : 1, tag);
    if (good) return;
    c->count = 1;
    c->pieces[0] = object;
    c->tags[0] = (uint32_t)tag | INLAY_TRACE_UNREADABLE;
}

/* What a reference leads to: its first words. */
static void copy_object(copied *c, uint64_t from, uint64_t size, uint64_t tag)
{
    size_t n = size < MOST_WORDS * sizeof(uint64_t) ? (size_t)size : MOST_WORDS * sizeof(uint64_t);
    memset(c->pieces, 0, sizeof c->pieces);
    c->count = 1;
    if (inlay_memory_read(c->pieces, from, n) != n) {
        c->pieces[0] = from;
        c->tags[0] = (uint32_t)tag | INLAY_TRACE_UNREADABLE;
        return;
    }
    c->count = (n + 7) / 8;
    for (uint64_t k = 0; k < c->count; k++) {
        uint64_t bytes = n - k * 8 < 8 ? n - k * 8 : 8;
        uint32_t goes_on = k + 1 < c->count ? INLAY_TRACE_GOES_ON : size > n ? INLAY_TRACE_CUT : 0;
        c->tags[k] = (uint32_t)(tag | bytes << 16) | goes_on;
    }
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

/* What the call has copied. */
static inlay_expr record_pieces(inlay_buffer *records, inlay_expr all)
{
    for (unsigned k = 0; k < PIECES; k++) {
        inlay_expr one = append(records, piece_at(offsetof(copied, pieces) + k * sizeof(uint64_t), 8),
                                piece_at(offsetof(copied, tags) + k * sizeof(uint32_t), 4));
        inlay_expr is_there = inlay_binary(INLAY_UGT, piece_at(offsetof(copied, count), 8), inlay_const(k));
        all = inlay_sequence(all, inlay_if(is_there, one, NULL));
    }
    return all;
}

static inlay_expr record_text(inlay_buffer *records, inlay_expr address, uint32_t tag)
{
    return record_pieces(records, inlay_call(copy_text, inlay_local_address(texts), address, inlay_const(tag)));
}

/* `number`: from 1; 0: the result. */
static inlay_expr record_value(inlay_buffer *records, inlay_expr value, unsigned number, unsigned form, unsigned size)
{
    uint32_t tag = number | form << 8 | size << 16;
    if (form == 's') return record_text(records, value, tag);
    return append(records, value, inlay_const(tag));
}

/* A vector register's low bits. */
static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inlay_expr real_at(unsigned number) { return inlay_call(bits_of, inlay_vector_register(number)); }

/* --- by the types that debug information or a prototype has --- */

static unsigned form_of(const inlay_scope_static *s)
{
    size_t n = strlen(s->type);
    if (s->format == 'p' && n >= 6 && !strcmp(s->type + n - 6, "char *")) return 's';
    if (s->layout && s->layout[0] == 'c') return 'c';
    return s->format == 'i' ? 'd' : (unsigned char)s->format;
}

/* As a float has them, of a double's. */
static uint64_t narrow_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    float narrow = (float)value;
    uint32_t low;
    memcpy(&low, &narrow, sizeof low);
    return low;
}

/* What is passed as a whole: its first words; none where it is not known. */
static inlay_expr record_words(inlay_buffer *records, inlay_scope *scope, inlay_expr whole, unsigned number)
{
    size_t size = whole ? inlay_typed_size(whole) : 0;
    inlay_expr all = NULL;
    for (size_t at = 0; at < size && at < MOST_WORDS * sizeof(uint64_t); at += sizeof(uint64_t)) {
        unsigned n = (unsigned)(size - at < sizeof(uint64_t) ? size - at : sizeof(uint64_t));
        bool last = at + n == size, cut = !last && at + n == MOST_WORDS * sizeof(uint64_t);
        uint32_t tag = number | 'w' << 8 | n << 16;
        if (cut) tag |= INLAY_TRACE_CUT;
        else if (!last) tag |= INLAY_TRACE_GOES_ON;
        inlay_expr word = inlay_typed_word(scope, whole, at, n);
        all = word ? then(all, append(records, word, inlay_const(tag))) : NULL;
        if (!word) break;
    }
    return all ? all : append(records, inlay_const(0), inlay_const(number | 'w' << 8));
}

/* "S0,8": where a string's address and its length are. */
static bool read_string(const char *layout, unsigned *start, unsigned *length)
{
    return layout && sscanf(layout, "S%u,%u", start, length) == 2;
}

/* The string that an object is. NULL: its words cannot be had. */
static inlay_expr record_string(inlay_buffer *records, inlay_scope *scope, inlay_expr whole, unsigned start,
                                unsigned length, unsigned number)
{
    inlay_expr from = inlay_typed_word(scope, whole, start, sizeof(uint64_t));
    inlay_expr count = inlay_typed_word(scope, whole, length, sizeof(uint64_t));
    if (!from || !count) return NULL;
    return record_pieces(records, inlay_call(copy_counted, inlay_local_address(texts), from, count,
                                             inlay_const(number | 's' << 8 | sizeof(uint64_t) << 16)));
}

/* How many bytes something takes: the number that its layout has first. */
static unsigned long size_in(const char *layout)
{
    size_t at = strcspn(layout, "0123456789");
    const char *of = layout[0] == 'a' ? strchr(layout, ',') : NULL;
    unsigned long count = strtoul(layout + at, NULL, 10);
    return of && count < MOST_WORDS * sizeof(uint64_t) ? count * size_in(of + 1) : count;
}

static inlay_expr record_reference(inlay_buffer *records, const char *to, inlay_expr address, unsigned number)
{
    unsigned start, length;
    inlay_expr local = inlay_local_address(texts);
    if (read_string(to, &start, &length))
        return record_pieces(records,
                             inlay_call(copy_counted_at, local, address, inlay_const(start | (uint64_t)length << 32),
                                        inlay_const(number | 's' << 8 | sizeof(uint64_t) << 16)));
    return record_pieces(
        records, inlay_call(copy_object, local, address, inlay_const(size_in(to)), inlay_const(number | 'w' << 8)));
}

/* Those who read the recording are told what is where. */
static void keep_type(trace_proc *p, unsigned number, const char *layout)
{
    enum { MOST = 8000 };
    size_t have = p->types ? strlen(p->types) : 0, more = strlen(layout) + 8;
    char *all = have + more < MOST ? inlay_alloc(have + more) : NULL;
    if (!all) return;
    snprintf(all, have + more, "%s%u %s\n", p->types ? p->types : "", number, layout);
    p->types = all;
}

/* A value of the type; NULL: it cannot be had, which is said. */
static inlay_expr record_typed(inlay_buffer *records, trace_proc *p, inlay_scope *scope, const inlay_scope_static *s,
                               inlay_expr value, unsigned number)
{
    unsigned start, length;
    bool refers = s->layout && s->layout[0] == '&';
    inlay_expr text = value && read_string(s->layout, &start, &length)
                          ? record_string(records, scope, value, start, length, number)
                          : NULL;
    if (text) return text;
    if (s->layout && s->layout[0] != 'S' && s->layout[0] != 'c') keep_type(p, number, s->layout);
    if (value && refers) return record_reference(records, s->layout + 1, value, number);
    bool is_long = value && !strcmp(s->type, "long double");
    if (is_long) value = inlay_scope_cast(scope, "double", value);
    if (value && is_long) return record_value(records, value, number, 'f', sizeof(double));
    if (!value || !s->format || s->size > sizeof(uint64_t)) return record_words(records, scope, value, number);
    if (s->format == 'f' && s->size == sizeof(float)) value = inlay_call(narrow_bits, value);
    return record_value(records, value, number, form_of(s), (unsigned)s->size);
}

/* `prototype`: NULL, or what to go by. */
static inlay_expr by_types(inlay_proc *proc, trace_proc *p, inlay_buffer *records, const char *prototype)
{
    inlay_scope *scope = inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc));
    inlay_scope_static s;
    inlay_expr all = NULL, value;
    unsigned number = 1;
    for (; scope && number <= MOST_TYPED && inlay_scope_parameter(scope, prototype, number, &s, &value); number++) {
        if (!value)
            inlay_warn("%s: its argument %u ('%s') is not recorded: %s", inlay_proc_name(proc), number, s.type,
                       inlay_scope_error(scope));
        all = then(all, record_typed(records, p, scope, &s, value, number));
    }
    bool is_wrong = scope && prototype && number == 1 && *inlay_scope_error(scope);
    if (is_wrong) inlay_warn("-A '%s': %s", prototype, inlay_scope_error(scope));
    return all;
}

static inlay_expr result_by_types(inlay_proc *proc, trace_proc *p, inlay_buffer *records, const char *prototype)
{
    inlay_scope *scope = inlay_scope_new(inlay_proc_image(proc), inlay_proc_address(proc));
    inlay_scope_static s;
    if (!scope || !inlay_scope_result(scope, prototype, &s)) {
        if (prototype || (scope && s.type)) return NULL;
        return record_value(records, inlay_return_value(), 0, 'd', sizeof(uint64_t));
    }
    bool refers = s.layout && s.layout[0] == '&', small = s.format && s.size <= sizeof(uint64_t);
    if (prototype && small && !refers) {
        if (s.layout && s.layout[0] != 'c') keep_type(p, 0, s.layout);
        return record_value(records, s.format == 'f' ? real_at(0) : inlay_return_value(), 0, form_of(&s),
                            (unsigned)s.size);
    }
    inlay_expr value = !prototype ? inlay_scope_find(scope, "$ret") : refers ? inlay_return_value() : NULL;
    if (!value)
        inlay_warn("%s: its result ('%s') is not recorded: %s", inlay_proc_name(proc), s.type,
                   *inlay_scope_error(scope) ? inlay_scope_error(scope) : "it is returned in a way that is not known");
    return record_typed(records, p, scope, &s, value, 0);
}

/* --- a procedure's --- */

static inlay_expr listed(inlay_buffer *records, const char *at, const char *end)
{
    inlay_expr all = NULL;
    for (const char *stop; at <= end; at = stop + 1) {
        unsigned number, form, size;
        stop = end_of(at, ",;");
        if (read_argument(at, stop, &number, &form, &size))
            all = then(all, record_value(records, form == 'f' ? real_at(number - 1) : inlay_argument(number - 1),
                                         number, form, size));
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
    return inlay_proc_matches(proc, pattern);
}

/* For a moment, as text of its own; NULL: too long. */
static const char *cut_out(const char *at, const char *end, char *room, size_t size)
{
    size_t n = (size_t)(end - at);
    if (n >= size) return NULL;
    memcpy(room, at, n);
    room[n] = 0;
    return room;
}

/* The arguments that an entry of -A asks for; NULL: not of this procedure. */
static inlay_expr arguments_by(inlay_proc *proc, trace_proc *p, inlay_buffer *records, const char *at, const char *end)
{
    char text[1024];
    const char *behind, *name = prototype_name(at, end, &behind);
    if (name) {
        const char *prototype = cut_out(at, end, text, sizeof text);
        return prototype && is_for(proc, name, behind) ? by_types(proc, p, records, prototype) : NULL;
    }
    const char *list = list_of(at, end);
    if (!is_for(proc, at, list ? list : end)) return NULL;
    return list ? listed(records, list + 1, end) : by_types(proc, p, records, NULL);
}

inlay_expr trace_values_arguments(inlay_proc *proc, trace_proc *p, inlay_buffer *records)
{
    inlay_expr all = NULL;
    for (const char *at = asked->arguments, *end; at && *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        inlay_expr these = arguments_by(proc, p, records, at, end);
        if (these) all = then(all, these);
    }
    return all;
}

/* By a prototype among the arguments. */
static inlay_expr result_by_prototype(inlay_proc *proc, trace_proc *p, inlay_buffer *records)
{
    char text[1024];
    for (const char *at = asked->arguments, *end; at && *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        const char *behind, *name = prototype_name(at, end, &behind);
        const char *prototype = name ? cut_out(at, end, text, sizeof text) : NULL;
        if (prototype && is_for(proc, name, behind)) return result_by_types(proc, p, records, prototype);
    }
    return NULL;
}

inlay_expr trace_values_result(inlay_proc *proc, trace_proc *p, inlay_buffer *records)
{
    for (const char *at = asked->results, *end; at && *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        const char *slash = find(at, end, '/');
        unsigned form = 'd', size = 8;
        if (!is_for(proc, at, slash ? slash : end)) continue;
        if (!slash) return result_by_types(proc, p, records, NULL);
        read_form(slash + 1, end, &form, &size);
        return record_value(records, form == 'f' ? real_at(0) : inlay_return_value(), 0, form, size);
    }
    return result_by_prototype(proc, p, records);
}

/* --- entries that are in vain --- */

/* `divider`: what stands between the name and what is wanted of it. */
static bool asks_for(inlay_proc *proc, const char *at, const char *end, char divider)
{
    const char *behind, *name = divider == '@' ? prototype_name(at, end, &behind) : NULL;
    const char *list = divider == '@' ? list_of(at, end) : find(at, end, divider);
    return name ? is_for(proc, name, behind) : is_for(proc, at, list ? list : end);
}

static bool has_any(bool (*is_asked_for)(const inlay_proc *), const char *at, const char *end, char divider)
{
    for (inlay_image *i = inlay_image_first(); i; i = inlay_image_next(i))
        for (inlay_proc *p = inlay_image_is_instrumented(i) ? inlay_image_proc_first(i) : NULL; p;
             p = inlay_proc_next(p))
            if (is_asked_for(p) && asks_for(p, at, end, divider)) return true;
    return false;
}

static void warn_of(const char *option, const char *at, char divider, bool (*is_asked_for)(const inlay_proc *))
{
    for (const char *end; at && *at; at = *end ? end + 1 : end) {
        end = end_of(at, ";");
        if (!has_any(is_asked_for, at, end, divider))
            inlay_warn("%s '%.*s' matches no procedure that is recorded", option, (int)(end - at), at);
    }
}

void trace_values_warn(bool (*is_asked_for)(const inlay_proc *))
{
    warn_of("-A", asked->arguments, '@', is_asked_for);
    warn_of("-R", asked->results, '/', is_asked_for);
}
