/* Objects as text where the program runs: a routine that takes texts (inlay_scope_text_routine) gets what a routine of
 * Inlay's makes of the object's bytes, by the layout that its type has where the code is made. No debug information is
 * asked then, which a rewritten program may not have at hand. */
#include "base/layout_text.h"
#include "tool/scope.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1024, TEXT = 4096, WORD = 8, WORDS = 4 };

/* Of the thread that is told of an object. */
static __thread char told_text[TEXT];

static const char *told(const char *layout, const uint8_t *bytes, size_t size, size_t there)
{
    if (!there && size) return "(unreadable)";
    if (layout && inl_layout_text(layout, bytes, there, told_text, sizeof told_text)) return told_text;
    size_t n = 0;
    for (size_t i = 0; i < there && n + 8 < sizeof told_text; i++)
        n += (size_t)snprintf(told_text + n, sizeof told_text - n, "%s%02x", i ? " " : "", bytes[i]);
    if (there < size) snprintf(told_text + n, sizeof told_text - n, " ...");
    return n ? told_text : "{}";
}

/* Of C++ and Rust, as it lies there: where it begins and how long it is (docs/trace-format.md). NULL: it is none. */
static const char *string_told(const char *layout, const uint8_t *bytes, size_t there)
{
    unsigned start, length;
    uint64_t at, count;
    uint8_t text[MOST];
    char of_text[32];
    bool is = layout && sscanf(layout, "S%u,%u", &start, &length) == 2;
    if (!is || (uint64_t)start + WORD > there || (uint64_t)length + WORD > there) return NULL;
    memcpy(&at, bytes + start, WORD);
    memcpy(&count, bytes + length, WORD);
    size_t n = count ? inlay_memory_read(text, at, count < MOST ? (size_t)count : MOST) : 0;
    if (count && !n) return "(unreadable)";
    snprintf(of_text, sizeof of_text, "a%" PRIu64 ",c1", count);
    return inl_layout_text(of_text, text, n, told_text, sizeof told_text) ? told_text : NULL;
}

static const char *object_told(const char *layout, const uint8_t *bytes, size_t size, size_t there)
{
    const char *text = string_told(layout, bytes, there);
    return text ? text : told(layout, bytes, size, there);
}

static const char *in_memory(const char *layout, uint64_t size, uint64_t address)
{
    uint8_t bytes[MOST];
    size_t wanted = size < MOST ? (size_t)size : MOST;
    return object_told(layout, bytes, (size_t)size, inlay_memory_read(bytes, address, wanted));
}

static const char *in_words(const char *layout, uint64_t size, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t words[WORDS] = {a, b, c, d};
    uint8_t bytes[sizeof words];
    memcpy(bytes, words, sizeof words);
    return object_told(layout, bytes, (size_t)size, size < sizeof bytes ? (size_t)size : sizeof bytes);
}

/* --- where the code is made --- */

static const snippet *call(snippet_maker *m, void (*fn)(void), unsigned count, const snippet *const *args)
{
    snippet *s = typed_node(m, SNIPPET_CALL, image_ctype_int(WORD, false), NULL, NULL);
    const snippet **own = m->alloc(m->arg, count * sizeof *own);
    if (!s || !own) return typed_refuse(m, "out of memory");
    for (unsigned i = 0; i < count; i++)
        if (!(own[i] = args[i])) return NULL;
    s->fn = fn;
    s->args = own;
    s->nargs = (uint8_t)count;
    return s;
}

const snippet *scope_text_of(snippet_maker *m, const snippet *object)
{
    const image_ctype *t = object->type, *word = image_ctype_int(WORD, false);
    const char *layout = scope_layout(t);
    const snippet *args[2 + WORDS] = {scope_word(m, (uint64_t)(uintptr_t)layout), scope_word(m, t->size)};
    if (!t->size) return typed_refuse(m, "the type of this is not known");
    if (object->role != TYPED_PIECES) {
        args[2] = typed_address(m, object);
        return call(m, (void (*)(void))in_memory, 3, args);
    }
    if (t->size > WORDS * WORD) return typed_refuse(m, "this is in registers, and too large to be told as a whole");
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t at = i * WORD, left = t->size > at ? t->size - at : 0;
        args[2 + i] = left ? typed_bytes(m, object, at, left < WORD ? (unsigned)left : WORD)
                           : typed_constant(m, word, 0);
    }
    return call(m, (void (*)(void))in_words, 2 + WORDS, args);
}

bool inlay_scope_text_routine(inlay_scope *s, const char *name, void (*routine)(const char *text))
{
    static const image_ctype type = {.kind = IMAGE_CTYPE_FUNCTION, .of = &image_ctype_void};
    if (!s || !name || !routine) return false;
    bool entered = tool_enter();
    const snippet *others = scope_given(s, name);
    if (others && others->role != TYPED_ROUTINE) others = NULL;
    const snippet *meaning = typed_text_routine(&s->maker, (void (*)(void))routine, &type, others);
    bool added = meaning && scope_add(s, &s->given->names, name, meaning);
    tool_leave(entered);
    return added;
}

/* --- values of variables --- */

static double real_of(const void *at, size_t size)
{
    float narrow;
    double real;
    memcpy(&narrow, at, sizeof narrow);
    if (size == sizeof narrow) return (double)narrow;
    memcpy(&real, at, sizeof real);
    return real;
}

static uint64_t integer_of(const inlay_scope_static *v, const void *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, v->size < sizeof bits ? v->size : sizeof bits);
    return v->size < sizeof bits && v->size ? snippet_extend(bits, (unsigned)v->size, v->format == 'i') : bits;
}

void inlay_scope_static_text(const inlay_scope_static *v, const void *at, char *out, size_t room)
{
    if (!out || !room) return;
    out[0] = 0;
    if (!v || !at) return;
    switch (v->format) {
    case 'i': snprintf(out, room, "%" PRId64, (int64_t)integer_of(v, at)); return;
    case 'u': snprintf(out, room, "%" PRIu64, integer_of(v, at)); return;
    case 'p': snprintf(out, room, "%#" PRIx64, integer_of(v, at)); return;
    case 'f': snprintf(out, room, "%.17g", real_of(at, v->size)); return;
    default: snprintf(out, room, "%s", told(v->layout, at, v->size, v->size)); return;
    }
}
