/* Snippets' text, damaged: `snippet_fuzz COUNT SEED`.
 *
 * Texts are put together from pieces of the language and then have bytes exchanged, cut out, doubled. Whatever comes
 * out is refused with a place and a cause, or gives a tree that may be inserted (snippet_check) and simplified. Built
 * with the sanitizers. The same seed gives the same texts; a failing one is printed. */
#include "snippet/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state;
static char text[2048];
static unsigned long taken, refused;
static inl_arena arena;

static uint32_t below(uint32_t n)
{
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state % n;
}

static void fail(const char *why)
{
    fprintf(stderr, "snippet_fuzz: %s\n%s\n", why, text);
    abort();
}

static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return inl_arena_alloc(&arena, bytes);
}

/* --- a world to name --- */

static char memory[4096];
static image_ctype record = {.kind = IMAGE_CTYPE_STRUCT, .size = 40, .name = "struct record"};
static const image_ctype bits = {.kind = IMAGE_CTYPE_BITS, .size = 2, .bit_offset = 3, .bit_count = 9};
static image_ctype bits_of_int, pointer = {.kind = IMAGE_CTYPE_POINTER, .size = 8, .of = &record};
static image_member members[3];
static const image_member parameters[] = {{"", &pointer, 0}};
static image_member mixed[3];
static image_ctype with_reals = {.kind = IMAGE_CTYPE_FUNCTION, .members = mixed, .member_count = 3};
static image_ctype procedure = {.kind = IMAGE_CTYPE_FUNCTION, .members = mixed, .member_count = 2, .variadic = true};
static const image_ctype routine = {
    .kind = IMAGE_CTYPE_FUNCTION, .of = &pointer, .members = parameters, .member_count = 1, .variadic = true};

static const snippet *find(void *arg, snippet_maker *m, const char *name)
{
    (void)arg;
    const snippet *at = typed_constant(m, image_ctype_int(8, false), (uint64_t)(uintptr_t)memory);
    if (!strcmp(name, "i")) return typed_object(m, image_ctype_int(4, true), at);
    if (!strcmp(name, "c")) return typed_object(m, image_ctype_int(1, false), at);
    if (!strcmp(name, "d")) return typed_object(m, image_ctype_float(8), at);
    if (!strcmp(name, "r")) return typed_object(m, &record, at);
    if (!strcmp(name, "p")) return typed_object(m, &pointer, at);
    if (!strcmp(name, "f")) return typed_routine(m, (void (*)(void))find, &routine, NULL);
    if (!strcmp(name, "m")) return typed_routine(m, (void (*)(void))find, &with_reals, NULL);
    if (!strcmp(name, "g")) return typed_object(m, &procedure, at);
    return strcmp(name, "v") ? NULL : typed_object(m, &image_ctype_void, at);
}

static const snippet *special(void *arg, snippet_maker *m, const char *name)
{
    (void)arg;
    snippet *s = strcmp(name, "r") ? NULL : typed_node(m, SNIPPET_REG, image_ctype_int(8, true), NULL, NULL);
    if (s) s->role = TYPED_OBJECT;
    return s;
}

static const image_ctype *type(void *arg, snippet_maker *m, const char *name)
{
    (void)arg, (void)m;
    return !strcmp(name, "struct record") || !strcmp(name, "record") ? &record : NULL;
}

static const snippet *variable(void *arg, snippet_maker *m, const char *name, const image_ctype *t)
{
    (void)name;
    return t->size <= sizeof memory ? typed_object(m, t, typed_address(m, find(arg, m, "i"))) : NULL;
}

static const snippet *string(void *arg, snippet_maker *m, const char *bytes, size_t size)
{
    (void)arg;
    char *copy = alloc(NULL, size);
    memcpy(copy, bytes, size); /* all of it must be there */
    return typed_constant(m, image_ctype_int(8, false), (uint64_t)(uintptr_t)copy);
}

static const snippet *call_procedure(snippet_maker *m, const image_ctype *f, const snippet *address, unsigned count,
                                     const snippet *const *arguments)
{
    const snippet **args = alloc(NULL, (count + 1) * sizeof *args);
    snippet *s = typed_node(m, SNIPPET_CALL, image_ctype_int(8, false), NULL, NULL);
    if (f->kind != IMAGE_CTYPE_FUNCTION) fail("a call of what is no procedure");
    if (count >= SNIPPET_MAX_PASSED) return typed_refuse(m, "too many arguments");
    args[0] = address;
    for (unsigned i = 0; i < count; i++) { /* of what is given as a whole the beginning */
        const snippet *a = arguments[i];
        args[1 + i] = typed_is_object(a) ? typed_bytes(m, a, 0, a->type->size < 8 ? (unsigned)a->type->size : 8) : a;
        if (!args[1 + i]) return NULL;
    }
    s->fn = (void (*)(void))find;
    s->args = args, s->nargs = (uint8_t)(1 + count);
    return s;
}

static const snippet_names names = {
    .find = find, .special = special, .type = type, .variable = variable, .string = string};

static void make_world(void)
{
    bits_of_int = bits;
    bits_of_int.of = image_ctype_int(4, true);
    members[0] = (image_member){"next", &pointer, 0};
    members[1] = (image_member){"b", &bits_of_int, 8};
    members[2] = (image_member){"d", image_ctype_float(4), 16};
    record.members = members, record.member_count = 3;
    mixed[0].type = image_ctype_float(4), mixed[1].type = image_ctype_int(2, true),
    mixed[2].type = image_ctype_float(8);
    with_reals.of = image_ctype_float(4), procedure.of = image_ctype_float(8);
}

/* --- texts --- */

static void put(const char *piece)
{
    size_t n = strlen(text), more = strlen(piece);
    if (n + more < sizeof text - 8) memcpy(text + n, piece, more + 1);
}

static const char *const pieces[] = {
    "i",
    "c",
    "d",
    "r",
    "p",
    "f(p)",
    "m(d, i, 2)",
    "g(1, c)",
    "g(",
    "extern long v(int, float); ",
    "extern ",
    "v",
    "r.next",
    "p->b",
    "p->next",
    "r.d",
    "*p",
    "&r",
    "&i",
    "$r",
    "1",
    "0x7f",
    "3.5",
    "'x'",
    "\"text\"",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " << ",
    " >> ",
    " == ",
    " < ",
    " && ",
    " || ",
    " ? ",
    " : ",
    " = ",
    " += ",
    " <<= ",
    "++",
    "--",
    "!",
    "~",
    "-",
    "*",
    "(",
    ")",
    "{ ",
    " }",
    "; ",
    ", ",
    "if (i) ",
    "else ",
    "while (i) ",
    "break; ",
    "for (;;) ",
    "int x = ",
    "static int y; ",
    "x",
    "y",
    "[",
    "]",
    "(int)",
    "(struct record *)",
    "sizeof ",
    "min(",
    "max(",
    "double z; ",
    "z",
    "i = i + 1; ",
    "r = *p; ",
    "p->b = 3; ",
    "{ long q = i; q++; c = q; } ",
    "if (d > 2) i++; else i--; ",
    "/* ",
    "*/",
    "//\n",
    "\n",
};
static const char *const sound[] = {"i = i + 1; ",
                                    "r = *p; ",
                                    "p->b = 3; ",
                                    "{ long q = i; q++; c = q; } ",
                                    "if (d > 2) i++; else { i--; } ",
                                    "p->next->next = f(p, \"text\" \"more\", 'c'); ",
                                    "static int y[4]; y[i & 3] = d / 2.5e-1f; ",
                                    "for (int k = 0; k < 10; k++) { if (k == c) break; i += k << 2; } ",
                                    "while (i --> 0) $r = -$r | ~c; ",
                                    "int a = 1, b = a ? sizeof(record) : max(1, 2); c = a += b; ",
                                    "d = r.d = (float)c % 3 == 1 ? p->b : 0x10; ",
                                    "*(short *)((char *)&r + 3) ^= (unsigned char)i--; ",
                                    "d += m(i, c, r.d) + g(d, 2, p, 1.5, i); ",
                                    "extern float v(struct record *, char, ...); d = v(&r, i) * v(p, 1, 2.5f); ",
                                    "extern int g; g++; ",
                                    "c = !p || &r == p && p != 0; "};

static void compose(void)
{
    text[0] = 0;
    if (below(2)) {
        for (unsigned n = 1 + below(5); n; n--) put(sound[below(sizeof sound / sizeof *sound)]);
        return;
    }
    for (unsigned n = 1 + below(24); n; n--) put(pieces[below(sizeof pieces / sizeof *pieces)]);
}

static void damage(void)
{
    for (unsigned n = below(4); n; n--) {
        size_t size = strlen(text), at = size ? below((uint32_t)size) : 0, span = 1 + below(6);
        if (!size) return;
        if (at + span > size) span = size - at;
        switch (below(3)) {
        case 0: text[at] = (char)(1 + below(255)); break;
        case 1: memmove(text + at, text + at + span, size - at - span + 1); break;
        default:
            if (size + span < sizeof text) memmove(text + at + span, text + at, size - at + 1);
        }
    }
}

static void run_one(void)
{
    char printed[400];
    const char *why;
    snippet_maker m = {.alloc = alloc, .procedure = call_procedure};
    const snippet *s = snippet_parse(&m, &names, text);
    if (!s) {
        if (!(m.why[0] >= '1' && m.why[0] <= '9') || !strstr(m.why, ": ")) fail(m.why[0] ? m.why : "no cause");
        refused++;
        return;
    }
    if (m.why[0]) fail("taken, with an error");
    s = typed_executed(s);
    bool deep = !snippet_check(s, &why);
    if (deep && !strstr(why, "too many local variables")) fail(why);
    snippet_print(s, printed, sizeof printed);
    if (!deep && !snippet_check(snippet_simplify(&arena, s), &why)) fail("not sound when it is simplified");
    taken++;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
    state = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) * 2654435761u + 1 : 1;
    make_world();
    for (unsigned long i = 0; i < count; i++) {
        compose();
        damage();
        run_one();
        inl_arena_reset(&arena);
    }
    printf("%lu texts, %lu taken, %lu refused\n", count, taken, refused);
    inl_arena_free(&arena);
    return taken == 0 || refused == 0;
}
