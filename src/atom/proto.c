/* Prototypes of analysis routines, and arguments read by them.
 *
 *     name(type, type ...)     types: int, long, char *, T[n], T *, VALUE, REGV, FREGV, XLATE *
 *
 * Strings and arrays are copied when the call is added: tools pass buffers that they use again. */
#include "atom/state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void (*atom_routine_named(const char *name))(void)
{
    for (const atom_routine *r = atom_now.tool->routines; r->name; r++)
        if (!strcmp(r->name, name)) return r->code;
    atom_fail("%s defines no routine named %s", atom_now.tool->analysis, name);
}

static const atom_proto *find(const char *name)
{
    const atom_proto *p = atom_now.protos;
    while (p && strcmp(p->name, name)) p = p->next;
    return p;
}

const atom_proto *atom_proto_named(const char *name)
{
    const atom_proto *p = find(name);
    if (!p) atom_fail("%s is called but was never declared (AddCallProto)", name);
    return p;
}

/* One type's words, without blanks at either end. */
typedef struct text {
    const char *from, *to;
} text;

static text trim(const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from)) from++;
    while (to > from && isspace((unsigned char)to[-1])) to--;
    return (text){from, to};
}

static bool has_word(text t, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = t.from; p + n <= t.to; p++) {
        bool begins = p == t.from || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        bool ends = p + n == t.to || !(isalnum((unsigned char)p[n]) || p[n] == '_');
        if (begins && ends && !memcmp(p, word, n)) return true;
    }
    return false;
}

static size_t size_of_base(text t)
{
    if (has_word(t, "char")) return 1;
    if (has_word(t, "short")) return 2;
    return has_word(t, "int") && !has_word(t, "long") ? 4 : 8;
}

/* False: no type that is known. */
static bool parse_type(text t, atom_type *out)
{
    const char *bracket = memchr(t.from, '[', (size_t)(t.to - t.from));
    bool points = memchr(t.from, '*', (size_t)(t.to - t.from)) != NULL;
    *out = (atom_type){ATOM_LONG, 0};
    if (bracket) {
        char *end;
        unsigned long n = strtoul(bracket + 1, &end, 0);
        size_t one = points ? sizeof(void *) : size_of_base((text){t.from, bracket});
        *out = (atom_type){ATOM_ARRAY, n * one};
        while (isspace((unsigned char)*end)) end++;
        return *end == ']' && n > 0 && n < 1 << 28;
    }
    if (has_word(t, "VALUE")) out->kind = ATOM_VALUE;
    else if (has_word(t, "REGV")) out->kind = ATOM_REGV;
    else if (has_word(t, "FREGV")) out->kind = ATOM_FREGV;
    else if (has_word(t, "XLATE") || has_word(t, "Xlate")) out->kind = ATOM_XLATE;
    else if (points) out->kind = has_word(t, "char") ? ATOM_STRING : ATOM_POINTER;
    else if (has_word(t, "long") || has_word(t, "size_t")) out->kind = ATOM_LONG;
    else if (has_word(t, "unsigned")) out->kind = ATOM_UNSIGNED;
    else if (has_word(t, "int") || has_word(t, "char") || has_word(t, "short")) out->kind = ATOM_INT;
    else return false;
    return true;
}

static void parse_types(atom_proto *p, const char *at, const char *end, const char *whole)
{
    while (trim(at, end).from < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        text t = trim(at, comma ? comma : end);
        if (t.to - t.from == 4 && !memcmp(t.from, "void", 4) && !p->count && !comma) return;
        if (p->count == ATOM_MAX_ARGS) atom_fail("AddCallProto(\"%s\"): more than %d arguments", whole, ATOM_MAX_ARGS);
        if (!parse_type(t, &p->types[p->count++]))
            atom_fail("AddCallProto(\"%s\"): the type '%.*s' is not known", whole, (int)(t.to - t.from), t.from);
        at = comma ? comma + 1 : end;
    }
}

void AddCallProto(const char *prototype)
{
    const char *open = strchr(prototype, '('), *close = strrchr(prototype, ')');
    if (!open || !close || close < open) atom_fail("AddCallProto(\"%s\"): not of the form name(types)", prototype);
    text name = trim(prototype, open);
    const char *word = name.to; /* what stands before the name, a result's type, is of no interest */
    while (word > name.from && (isalnum((unsigned char)word[-1]) || word[-1] == '_')) word--;
    atom_proto *p = calloc(1, sizeof *p);
    if (!p || !(p->name = strndup(word, (size_t)(name.to - word)))) atom_fail("out of memory");
    parse_types(p, open + 1, close, prototype);
    p->code = atom_routine_named(p->name);
    p->next = atom_now.protos; /* declared again: the last one counts */
    atom_now.protos = p;
}

void ReplaceProto(const char *prototype) { AddCallProto(prototype); }

static uint64_t copied(const void *from, size_t bytes)
{
    if (!from) return 0;
    void *to = atom_alloc(bytes);
    memcpy(to, from, bytes);
    return (uint64_t)(uintptr_t)to;
}

static uint64_t copied_string(const char *s) { return s ? copied(s, strlen(s) + 1) : 0; }

void atom_args(const atom_proto *p, va_list *from, atom_arg out[ATOM_MAX_ARGS])
{
    for (unsigned i = 0; i < p->count; i++) {
        atom_kind kind = p->types[i].kind;
        out[i].kind = kind;
        switch (kind) {
        case ATOM_INT:
        case ATOM_VALUE:
        case ATOM_REGV:
        case ATOM_FREGV: out[i].value = (uint64_t)(int64_t)va_arg(*from, int); break;
        case ATOM_UNSIGNED: out[i].value = va_arg(*from, unsigned); break;
        case ATOM_LONG: out[i].value = (uint64_t)va_arg(*from, long); break;
        case ATOM_STRING: out[i].value = copied_string(va_arg(*from, const char *)); break;
        case ATOM_ARRAY: out[i].value = copied(va_arg(*from, const void *), p->types[i].bytes); break;
        case ATOM_POINTER:
        case ATOM_XLATE: out[i].value = (uint64_t)(uintptr_t)va_arg(*from, void *); break;
        }
    }
}
