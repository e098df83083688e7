/* Snippets as text: what they compute, beside a C compiler; and what is refused, where and why. */
#include "snippet_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void one(gen_library *g, unsigned i, uint32_t seed)
{
    static _Alignas(16) uint8_t start[GEN_BYTES], native[GEN_BYTES], ours[GEN_BYTES];
    char what[200];
    const char *why;
    snippet_maker m = eval_maker();
    snippet_names names = gen_names(g, start);
    const snippet *s = snippet_parse(&m, &names, g->texts[i]);
    if (!s) fail_msg("%u: refused: %s\n%s", seed + i, m.why, g->texts[i]);
    if (!snippet_check(s, &why)) fail_msg("%u: not sound: %s\n%s", seed + i, why, g->texts[i]);
    gen_fill(g, start, seed + i); /* pointers lead into it, so that both run in the same place */
    gen_native(g, i, start);
    memcpy(native, start, sizeof native);
    gen_fill(g, start, seed + i);
    eval_snippet(s);
    memcpy(ours, start, sizeof ours);
    if (!gen_same(g, ours, native, what, sizeof what)) fail_msg("%u: %s\n%s", seed + i, what, g->texts[i]);
    static inl_arena arena;
    gen_fill(g, start, seed + i);
    eval_snippet(snippet_simplify(&arena, s));
    if (!gen_same(g, start, native, what, sizeof what)) fail_msg("%u, simplified: %s\n%s", seed + i, what, g->texts[i]);
    inl_arena_reset(&arena);
}

static void as_a_compiler_says(void **state)
{
    (void)state;
    const char *rounds = getenv("SNIPPET_ROUNDS"), *first = getenv("SNIPPET_SEED");
    uint32_t seed = first ? (uint32_t)atoi(first) : 1, left = rounds ? (uint32_t)atoi(rounds) : 2000;
    while (left) {
        gen_library g;
        unsigned n = left < 1000 ? left : 1000;
        gen_build(&g, n, seed);
        for (unsigned i = 0; i < n; i++) one(&g, i, seed);
        gen_close(&g);
        left -= n, seed += n;
    }
}

/* --- a world without a program --- */

static struct {
    int number;
    char *text;
    double real;
    struct {
        int a;
    } whole;
} data = {7, "text", 2.5, {1}};
static const image_member members[] = {{"a", NULL, 0}};
static image_ctype whole = {.kind = IMAGE_CTYPE_STRUCT, .size = 4, .name = "struct whole"};
static uint64_t seen;

static void see(uint64_t v) { seen = v; }
static uint64_t add(uint64_t a, uint64_t b) { return a + b; }

static const snippet *at(snippet_maker *m, const image_ctype *t, void *p)
{
    return typed_object(m, t, typed_constant(m, image_ctype_int(8, false), (uint64_t)(uintptr_t)p));
}

static const snippet *routine(snippet_maker *m, const char *text, void (*fn)(void))
{
    static const snippet_names none;
    char name[64];
    snippet_maker own = eval_maker();
    const image_ctype *f = snippet_parse_prototype(&own, &none, text, name, sizeof name);
    if (!f) fail_msg("%s", own.why);
    return typed_routine(m, fn, f, NULL);
}

static const snippet *find(void *arg, snippet_maker *m, const char *name)
{
    static image_member copy[1];
    (void)arg;
    copy[0] = members[0], copy[0].type = image_ctype_int(4, true);
    whole.members = copy, whole.member_count = 1;
    if (!strcmp(name, "number")) return at(m, image_ctype_int(4, true), &data.number);
    if (!strcmp(name, "text")) return at(m, typed_pointer_to(m, &image_ctype_char), &data.text);
    if (!strcmp(name, "real")) return at(m, image_ctype_float(8), &data.real);
    if (!strcmp(name, "whole")) return at(m, &whole, &data.whole);
    if (!strcmp(name, "see")) return routine(m, "void see(long)", (void (*)(void))see);
    if (!strcmp(name, "add")) return routine(m, "long add(int, char *p, ...);", (void (*)(void))add);
    if (!strcmp(name, "unknown")) return at(m, &image_ctype_void, &data);
    if (!strcmp(name, "away")) return typed_refuse(m, "'away' has been optimised away here");
    return NULL;
}

static const snippet *special(void *arg, snippet_maker *m, const char *name)
{
    (void)arg;
    return strcmp(name, "arg0") ? NULL : typed_constant(m, NULL, 41);
}

static const snippet *string(void *arg, snippet_maker *m, const char *bytes, size_t size)
{
    (void)arg;
    char *copy = m->alloc(m->arg, size);
    memcpy(copy, bytes, size);
    return typed_constant(m, image_ctype_int(8, false), (uint64_t)(uintptr_t)copy);
}

static const snippet *variable(void *arg, snippet_maker *m, const char *name, const image_ctype *t)
{
    static _Alignas(16) char room[512];
    (void)arg, (void)name;
    return t->size <= sizeof room ? at(m, t, room) : NULL;
}

static const image_ctype *type(void *arg, snippet_maker *m, const char *name)
{
    (void)arg, (void)m;
    return strcmp(name, "struct whole") ? NULL : &whole;
}

static const snippet_names names = {
    .find = find, .type = type, .special = special, .string = string, .variable = variable};

static uint64_t value_of(const char *text)
{
    char whole_text[300];
    const char *why;
    snippet_maker m = eval_maker();
    snprintf(whole_text, sizeof whole_text, "see(%s)", text);
    const snippet *s = snippet_parse(&m, &names, whole_text);
    if (!s) fail_msg("%s: %s", text, m.why);
    if (!snippet_check(s, &why)) fail_msg("%s: %s", text, why);
    seen = 0xbad;
    eval_snippet(s);
    return seen;
}

static void single_values(void **state)
{
    (void)state;
    assert_int_equal(value_of("1 + 2 * 3 - -4"), 11);
    assert_int_equal(value_of("number == 7 ? 'x' : 0"), 'x');
    assert_int_equal(value_of("-7 / 2"), -3);
    assert_int_equal(value_of("number / 0"), 0);
    assert_int_equal(value_of("number % 0u"), 0);
    assert_int_equal(value_of("1 << 33"), 2);
    assert_int_equal(value_of("1l << 33"), 1ll << 33);
    assert_int_equal(value_of("0x80000000 > 0"), 1);
    assert_int_equal(value_of("-1 < 0u"), 0);
    assert_int_equal(value_of("$arg0 + 1"), 42);
    assert_int_equal(value_of("*text == 't' && text[1] == 'e'"), 1);
    assert_int_equal(value_of("*\"q\" + sizeof \"abc\" + \"\\x41\\n\"[1]"), 'q' + 4 + '\n');
    assert_int_equal(value_of("\"one\" \"two\"[3]"), 't');
    assert_int_equal(value_of("real * 2 + 0.25f == 5.25"), 1);
    assert_int_equal(value_of("(long)(real * 1e300)"), INT64_MAX);
    assert_int_equal(value_of("(int)-real"), -2);
    assert_int_equal(value_of("(int)(real * 1e300)"), INT32_MAX);
    assert_int_equal(value_of("(short)(real * -1e5)"), INT16_MIN);
    assert_int_equal(value_of("(unsigned char)(real * 200)"), 255);
    assert_int_equal(value_of("(unsigned)-real"), 0);
    assert_int_equal(value_of("(int)(0.0 / 0.0)"), 0);
    assert_int_equal(value_of("(unsigned char)-1"), 255);
    assert_int_equal(value_of("sizeof(char *[3]) + sizeof(void *)"), 32);
    assert_int_equal(value_of("whole.a++ + (&whole)->a"), 3);
    assert_int_equal(value_of("add(1, text) - (long)text"), 1);
    assert_int_equal(value_of("min(3, 1, 2) + max(2, 5l)"), 6);
    assert_int_equal(value_of("!number + !!text + ~0"), 0);
    assert_int_equal(value_of("0b101 + 017"), 20);
}

static void statements(void **state)
{
    (void)state;
    snippet_maker m = eval_maker();
    static const struct {
        const char *text;
        uint64_t seen;
    } programs[] = {
        {"static long n; n = 0; while (1) { if (n++ == 5) break; } see(n)", 6},
        {"static int f[10]; f[0] = f[1] = 1; for (int i = 2; i < 10; i++) f[i] = f[i - 1] + f[i - 2]; see(f[9]);", 55},
        {"int a = 3, b = a * 2; { int a = 10; b += a; } see(a + b)", 19},
        {"if (number == 7) see(1); else see(2)", 1},
        {"/* a comment */ unsigned char c = 200; c += 100; // and one\n see(c);", 44},
        {"for (;;) { break; } ; see(5)", 5},
        {"long x = 1; for (x = 4; x; x--) ; see(x)", 0},
        {"double d = 1; float f = 3; d /= f; see(d * 3 == 1 && (float)d != d)", 1},
    };
    data.number = 7;
    for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
        const char *why;
        const snippet *s = snippet_parse(&m, &names, programs[i].text);
        if (!s) fail_msg("%s: %s", programs[i].text, m.why);
        if (!snippet_check(s, &why)) fail_msg("%s: %s", programs[i].text, why);
        eval_snippet(s);
        if (seen != programs[i].seen) fail_msg("%s: %llu", programs[i].text, (unsigned long long)seen);
    }
}

static void errors_say_where_and_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"", "1: there is no code"},
        {"number = ", "10: an expression is missing here"},
        {"number = text", "8: cannot assign a 'char *' as 'int'"},
        {"text = 5", "6: cannot assign a 'int' as 'char *'"},
        {"see(nothing)", "5: 'nothing' is not known"},
        {"see(away + 1)", "5: 'away' has been optimised away here"},
        {"see($rdx)", "5: '$rdx' is not known"},
        {"see(1, 2)", "4: the routine has 1 parameters, not 2"},
        {"add(1, text, real)", "4: floating point cannot be passed for '...'"},
        {"add(real, number)", "4: cannot pass a 'int' as 'char *'"},
        {"see(whole)", "4: a 'struct whole' is not a value"},
        {"whole.b = 1", "7: 'struct whole' has no member 'b'"},
        {"number->a = 1", "7: 'int' is not a pointer"},
        {"text.a = 1", "6: 'char *' has no members (a pointer: ->)"},
        {"text * 2", "6: '*' cannot be between 'char *' and 'int'"},
        {"real % 2", "6: '%' cannot be between 'double' and 'double'"},
        {"5 = number", "3: only variables and what lies in memory can be assigned"},
        {"&number + &real == 0", "9: '+' cannot be between 'int *' and 'double *'"},
        {"if (number) { number++", "23: '}' is missing here"},
        {"if (see(1)) number++", "5: this has no value"},
        {"break", "1: break stands outside of a loop"},
        {"number ++ 5", "11: ';' is missing here"},
        {"\"abc", "1: this string does not end"},
        {"'ab'", "1: a character stands alone between its quotes"},
        {"see(08)", "5: this is not a number"},
        {"see(123456789012345678901)", "5: this number is too large"},
        {"number = 1;\n  number = @", "2:12: this character has no meaning here"},
        {"unknown + 1", "9: the type of this is not known (or it is void): say it, as in *(int *)&x"},
        {"struct none *p", "8: 'struct none' is not known"},
        {"static void v", "13: the size of 'void' is not known"},
        {"static int v = 4", "14: a static variable begins as zero"},
        {"int a[4]", "5: a variable of one execution has a simple type, not 'int [4]' (others: static)"},
        {"if (1) int a", "8: a declaration stands in a block"},
        {"number = see", "8: a routine of the tool can only be called"},
        {"number()", "7: only routines and procedures can be called"},
        {"&5", "1: only what lies in memory has an address"},
        {"(struct whole)number", "1: a 'int' cannot become a 'struct whole'"},
        {"unsigned float f", "16: there is no such type"},
        {"{ int a = 1; number = a; } number = a", "37: 'a' is not known"},
        {"}", "1: this has no meaning here"},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snippet_maker m = eval_maker();
        if (snippet_parse(&m, &names, wrong[i].text)) fail_msg("%s: taken", wrong[i].text);
        if (strcmp(m.why, wrong[i].why)) fail_msg("%s\n  %s\nnot\n  %s", wrong[i].text, m.why, wrong[i].why);
    }
}

static void what_is_too_deep_is_refused(void **state)
{
    (void)state;
    static char text[5000];
    snippet_maker m = eval_maker();
    static const char *const units[] = {
        "(", "-", "{", "if (1) ", "see(", "number = ", "1 ? 1 : ", "(int)", "while (1) ", "number[", "int a; "};
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        text[0] = 0;
        while (strlen(text) + strlen(units[i]) < sizeof text - 10) strcat(text, units[i]);
        assert_null(snippet_parse(&m, &names, text));
        if (!strstr(m.why, "too deep") && !strstr(m.why, "too many")) fail_msg("%s...: %s", units[i], m.why);
    }
}

static void types_as_text(void **state)
{
    (void)state;
    char out[100];
    snippet_maker m = eval_maker();
    static const char *const types[][2] = {{"long unsigned int", "unsigned long"},
                                           {"const char *const *", "char **"},
                                           {"short [3][4]", "short [3][4]"},
                                           {"uint32_t *", "unsigned int *"},
                                           {"void *", "void *"},
                                           {"long double", "long double"},
                                           {"signed", "int"}};
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        const image_ctype *t = snippet_parse_type(&m, &names, types[i][0]);
        if (!t) fail_msg("%s: %s", types[i][0], m.why);
        assert_string_equal(image_ctype_text(t, out, sizeof out), types[i][1]);
    }
    assert_null(snippet_parse_type(&m, &names, "int x"));
    assert_null(snippet_parse_type(&m, &names, "int *3"));
    assert_null(snippet_parse_type(&m, &names, "short long"));
    const image_ctype *f = snippet_parse_prototype(&m, &names, "const char *name(int fd, void *, unsigned char c, ...)",
                                                   out, sizeof out);
    assert_non_null(f);
    assert_string_equal(out, "name");
    assert_int_equal(f->member_count, 3);
    assert_true(f->variadic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_values),
        cmocka_unit_test(statements),
        cmocka_unit_test(errors_say_where_and_why),
        cmocka_unit_test(what_is_too_deep_is_refused),
        cmocka_unit_test(types_as_text),
        cmocka_unit_test(as_a_compiler_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
