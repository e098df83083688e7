#include "snippet_gen.h"
#include "image_sample.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char types[] =
    "#include <stdbool.h>\n#include <stdint.h>\n"
    "struct point { int x; short y; unsigned char z; double w; };\n"
    "struct all { signed char c; unsigned char uc; short s; unsigned short us; int i; unsigned int ui; long l;\n"
    "    unsigned long ul; bool b; float f; double d; int arr[8]; unsigned short half[4]; struct point pt, other;\n"
    "    struct point *pp; int *ip; struct all_bits { unsigned lo : 5; int hi : 9; unsigned long wide : 40; } bits;\n"
    "    enum all_kind { NONE, SOME, MANY = 9 } kind; long k; };\n";
static const char routines[] =
    "double mixed(int a, double b, float c, long d) { return a * 0.5 + b - c + d % 7; }\n"
    "float half_of(float a, unsigned char b) { return a / 2 + b; }\n"
    "short nearest(double a) { return a > 30000 ? 30000 : a < -30000 ? -30000 : a == a ? (short)a : 7; }\n"
    "bool same(float a, double b) { return a == b; }\n"
    "long many(int a, long b, short c, unsigned d, signed char e, long f, unsigned short g, double h, long i, float "
    "j,\n"
    "    bool k) { return a + 3 * b + 5 * c + 7l * d + 11 * e + 13 * f + 17 * g + (h > j) * 19 + 23 * i + k; }\n";
static const char macros[] = "#define min(a, b) ({ __typeof__((a) + (b)) x_ = (a), y_ = (b); x_ < y_ ? x_ : y_; })\n"
                             "#define max(a, b) ({ __typeof__((a) + (b)) x_ = (a), y_ = (b); x_ > y_ ? x_ : y_; })\n"
                             "#define V(n) (v->n)\n";
static const char *const fields[] = {"c", "uc",  "s",    "us", "i",     "ui", "l",  "ul",   "b",    "f",
                                     "d", "arr", "half", "pt", "other", "pp", "ip", "bits", "kind", "k"};

static uint32_t state;
static uint32_t any(uint32_t n)
{
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state % n;
}

typedef struct text {
    char *at;
    size_t left;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->at, t->left, fmt, ap);
    va_end(ap);
    assert_true((size_t)n < t->left);
    t->at += n, t->left -= (size_t)n;
}

static unsigned loops, locals;
static void integer(text *t, unsigned depth);
static void real(text *t, unsigned depth);

/* A call of one of the header's routines: i an integer, r a real one. */
static void call(text *t, const char *name, const char *parameters, unsigned depth)
{
    put(t, "%s(", name);
    for (const char *p = parameters; *p; p++) {
        if (p > parameters) put(t, ", ");
        if (*p == 'i') integer(t, depth);
        else real(t, depth);
    }
    put(t, ")");
}

static const char *const whole[] = {"c", "uc", "s", "us", "i", "ui", "l", "ul", "b"};

static void whole_object(text *t)
{
    switch (any(6)) {
    case 0: put(t, "arr[%u]", any(8)); break;
    case 1: put(t, any(2) ? "pt.%s" : "pp->%s", any(2) ? "x" : any(2) ? "y" : "z"); break;
    case 2: put(t, any(2) ? "half[ui & 3]" : "(*(ip + (uc & 3)))"); break;
    default: put(t, "%s", whole[any(9)]); break;
    }
}

static void real(text *t, unsigned depth)
{
    unsigned kind = depth ? any(11) : any(4);
    switch (kind) {
    case 0: put(t, "d"); return;
    case 1: put(t, "f"); return;
    case 2: put(t, any(2) ? "%u.25" : "%u.5f", any(90)); return;
    case 3: put(t, any(2) ? "pt.w" : "pp->w"); return;
    case 4:
        put(t, "(%s)(", any(2) ? "float" : "double");
        integer(t, depth - 1);
        put(t, ")");
        return;
    case 5:
        put(t, "-(");
        real(t, depth - 1);
        put(t, ")");
        return;
    case 6: put(t, any(2) ? "min(" : "max("); break;
    case 7: call(t, "mixed", "irri", depth - 1); return;
    case 8: call(t, "half_of", "ri", depth - 1); return;
    default: put(t, "("); break;
    }
    real(t, depth - 1);
    put(t, "%s", kind == 6 ? ", " : (const char *[]){" + ", " - ", " * ", " / "}[any(4)]);
    real(t, depth - 1);
    put(t, ")");
}

static void constant(text *t)
{
    static const char *const words[] = {
        "0",           "1",   "-1",  "0x7fffffff", "2147483648",    "0xffffffffu", "'a'",
        "12345678901", "1ul", "077", "SOME",       "sizeof(short)", "sizeof pt",   "-9223372036854775807"};
    put(t, "%s", words[any(sizeof words / sizeof *words)]);
}

static void integer_pair(text *t, unsigned depth)
{
    static const char *const between[] = {
        " + ", " - ", " * ", " & ", " | ", " ^ ", " == ", " != ", " < ", " <= ", " > ", " >= ", " && ", " || "};
    put(t, "(");
    integer(t, depth - 1);
    put(t, "%s", between[any(14)]);
    integer(t, depth - 1);
    put(t, ")");
}

static void simple(text *t)
{
    switch (any(9)) {
    case 0: constant(t); return;
    case 1: put(t, any(3) ? "bits.hi" : any(2) ? "bits.lo" : "(long)bits.wide"); return;
    case 2: put(t, any(2) ? "kind" : "(pp == &pt)"); return;
    case 3: put(t, any(2) ? "(int)(ip - arr)" : "(&pt != pp)"); return;
    case 4:
        if (locals) {
            put(t, "t%u", any(locals));
            return;
        } /* fall through */
    default: whole_object(t); return;
    }
}

static void around(text *t, const char *before, unsigned depth, const char *behind)
{
    put(t, "%s", before);
    integer(t, depth);
    put(t, "%s", behind);
}

static void comparison(text *t, unsigned depth)
{
    static const char *const between[] = {" < ", " >= ", " == ", " != ", " > ", " <= "};
    put(t, "(");
    real(t, depth);
    put(t, "%s", between[any(6)]);
    real(t, depth);
    put(t, ")");
}

/* What C leaves undefined is avoided: a shift's count, a divisor that is 0 or -1. */
static void integer(text *t, unsigned depth)
{
    static const char *const casts[] = {"(signed char)(", "(unsigned char)(", "(short)(", "(unsigned short)(", "(int)(",
                                        "(unsigned)(",    "(long)(",          "(bool)(",  "(unsigned long)("};
    static const char *const unary[] = {"-(", "~(", "!("};
    if (!depth--) {
        simple(t);
        return;
    }
    switch (any(15)) {
    case 0: around(t, casts[any(9)], depth, ")"); return;
    case 1: around(t, unary[any(3)], depth, ")"); return;
    case 2: around(t, "(", depth, any(2) ? " << (" : " >> ("), around(t, "", 0, " & 31))"); return;
    case 3: around(t, "(", depth, any(2) ? " / ((" : " % (("), around(t, "", 0, " & 15) + 1))"); return;
    case 4: around(t, "(", depth, " ? "), around(t, "", depth, " : "), around(t, "", depth, ")"); return;
    case 5: around(t, any(2) ? "min(" : "max(", depth, ", "), around(t, "", depth, ")"); return;
    case 6: comparison(t, depth); return;
    case 7: put(t, "(d > 1e6 ? 1 : d < -1e6 ? 2 : d == d ? (int)d : 3)"); return;
    case 8: around(t, "arr[(", depth, ") & 7]"); return;
    case 9: simple(t); return;
    case 10: call(t, any(2) ? "nearest" : "(long)nearest", "r", depth); return;
    case 11: call(t, "same", "rr", depth); return;
    case 12: call(t, "many", "iiiiiiiriri", 0); return;
    default: integer_pair(t, depth + 1); return;
    }
}

static void assignment(text *t)
{
    static const char *const ops[] = {"+=", "-=", "*=", "&=", "|=", "^="};
    switch (any(9)) {
    case 0:
        put(t, "%s = ", any(2) ? "d" : "f");
        real(t, 2);
        break;
    case 1:
        put(t, "%s %s ", any(2) ? "pt.w" : "f", (const char *[]){"+=", "-=", "*="}[any(3)]);
        real(t, 1);
        break;
    case 2:
        put(t, "bits.%s %s ", (const char *[]){"lo", "hi", "wide"}[any(3)], any(2) ? "=" : ops[any(6)]);
        integer(t, 2);
        break;
    case 3: put(t, any(2) ? "other = pt" : "other = *pp"); break;
    case 4: put(t, any(2) ? "ip = arr + (uc & 3)" : any(2) ? "ip = &arr[us & 3]" : "pp = b ? &pt : &other"); break;
    case 5:
        put(t, any(2) ? "l = ul = " : "c = k = ");
        integer(t, 2);
        break;
    case 6: put(t, any(2) ? "l = arr[us & 7]++" : any(2) ? "k += --ui" : "ul = s--"); break;
    case 7:
        whole_object(t);
        put(t, "%s", any(2) ? "++" : "--");
        break;
    default:
        whole_object(t);
        put(t, " %s ", any(2) ? "=" : ops[any(6)]);
        integer(t, 3);
        break;
    }
    put(t, ";");
}

static void statement(text *t, unsigned depth);

static void declared(text *t, unsigned depth)
{
    static const char *const types[] = {"int", "unsigned short", "long", "signed char"};
    unsigned outer = locals;
    put(t, "{ %s t%u = ", types[any(4)], locals);
    integer(t, 2);
    put(t, ";");
    locals++;
    statement(t, depth - 1);
    put(t, "t%u += ", locals - 1);
    integer(t, 1);
    put(t, "; k ^= t%u; }", locals - 1);
    locals = outer;
}

static void loop(text *t, unsigned depth)
{
    if (any(2)) {
        put(t, "for (int n%u = 0; n%u < %u; n%u++) {", loops, loops, any(5), loops);
    } else {
        put(t, "{ long n%u = %u; while (n%u-- > 0) {", loops, any(5), loops);
        put(t, "k += n%u;", loops);
    }
    bool whiles = t->at[-1] == ';';
    loops++;
    statement(t, depth - 1);
    if (any(2)) put(t, "if ("), integer(t, 1), put(t, ") break;");
    statement(t, depth - 1);
    loops--;
    put(t, whiles ? "} }" : "}");
}

static void statement(text *t, unsigned depth)
{
    switch (depth ? any(6) : 5) {
    case 0:
        put(t, "if (");
        integer(t, 2);
        put(t, ") {");
        statement(t, depth - 1);
        put(t, "} else ");
        statement(t, depth - 1);
        return;
    case 1:
        put(t, "if (");
        real(t, 2);
        put(t, ") ");
        statement(t, depth - 1);
        return;
    case 2:
        put(t, "{");
        statement(t, depth - 1);
        statement(t, depth - 1);
        put(t, "}");
        return;
    case 3:
        if (loops < 2) {
            loop(t, depth);
            return;
        } /* fall through */
    case 4:
        if (locals < 3) {
            declared(t, depth);
            return;
        } /* fall through */
    default: assignment(t); return;
    }
}

/* The text, with the names of variables made macros' for the compiler. */
static void put_functions(text *out, unsigned count, uint32_t seed, char (*texts)[GEN_TEXT])
{
    put(out, "%s", macros);
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) put(out, "#define %s V(%s)\n", fields[i], fields[i]);
    for (unsigned i = 0; i < count; i++) {
        state = (seed + i) * 2654435761u + 1;
        text t = {texts[i], GEN_TEXT};
        statement(&t, 3);
        put(out, "void f%u(struct all *v) { %s }\n", i, texts[i]);
    }
}

static size_t room_for(unsigned count) { return 8192 + (size_t)count * (GEN_TEXT + 500); }

void gen_build(gen_library *g, unsigned count, uint32_t seed)
{
    char *source = malloc(room_for(count)), flags[200];
    text out = {source, room_for(count)};
    g->texts = calloc(count, sizeof *g->texts);
    g->count = count;
    assert_non_null(source);
    put(&out, "%sstruct all prototype;\n%s", types, routines);
    put_functions(&out, count, seed, g->texts);
    snprintf(flags, sizeof flags, "-g -O0 -w -fwrapv -ffp-contract=off -shared -fPIC -std=gnu11");
    const char *path = sample_build(SAMPLE_CC, "generated.so", "c", source, flags);
    free(source);
    g->im = sample_open(path);
    g->handle = dlopen(path, RTLD_NOW);
    assert_non_null(g->handle);
    g->all = image_ctype_named(g->im, 0, "struct all");
    assert_non_null(g->all);
    assert_true(g->all->size >= 1 && g->all->size <= GEN_BYTES);
}

static void write_file(const char *folder, const char *name, const char *content)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    assert_int_equal(fclose(f), 0);
}

void gen_write(const char *folder, unsigned count, uint32_t seed)
{
    char *source = malloc(room_for(count)), *lines = malloc(room_for(count));
    char(*texts)[GEN_TEXT] = calloc(count, sizeof *texts);
    text out = {source, room_for(count)}, list = {lines, room_for(count)};
    assert_true(source && lines && texts);
    put(&out, "#include \"all.h\"\n#include \"routines.h\"\n");
    put_functions(&out, count, seed, texts);
    put(&out, "void (*const functions[])(struct all *) = {");
    for (unsigned i = 0; i < count; i++) put(&out, "f%u, ", i);
    put(&out, "};\nconst unsigned function_count = %u;\n", count);
    for (unsigned i = 0; i < count; i++) put(&list, "%s\n", texts[i]);
    write_file(folder, "functions.c", source);
    write_file(folder, "texts", lines);
    write_file(folder, "all.h", types);
    out = (text){source, room_for(count)};
    put(&out, "#include \"all.h\"\n%s", routines);
    write_file(folder, "routines.c", source);
    out = (text){source, room_for(count)};
    put(&out,
        "double mixed(int, double, float, long);\nfloat half_of(float, unsigned char);\nshort nearest(double);\n"
        "bool same(float, double);\nlong many(int, long, short, unsigned, signed char, long, unsigned short, double, "
        "long, float, bool);\n");
    write_file(folder, "routines.h", source);
    free(source), free(lines), free(texts);
}

void gen_close(gen_library *g)
{
    image_close(g->im);
    dlclose(g->handle);
    free(g->texts);
}

void gen_native(const gen_library *g, unsigned which, void *variables)
{
    char name[32];
    snprintf(name, sizeof name, "f%u", which);
    void (*f)(void *) = (void (*)(void *))dlsym(g->handle, name);
    assert_non_null(f);
    f(variables);
}

static uint64_t offset_of(const gen_library *g, const char *name)
{
    uint64_t offset;
    assert_non_null(image_ctype_member(g->all, name, &offset));
    return offset;
}

static void set(const gen_library *g, uint8_t *v, const char *name, const void *value, size_t size)
{
    memcpy(v + offset_of(g, name), value, size);
}

void gen_fill(const gen_library *g, void *variables, uint32_t seed)
{
    uint8_t *v = variables;
    state = seed * 2246822519u + 1;
    for (unsigned i = 0; i < GEN_BYTES; i++) v[i] = (uint8_t)any(256);
    double d = (double)any(1000) / 8 - 40, w = -2.5;
    float f = (float)any(100) / 4;
    bool b = any(2);
    uint8_t *pt = v + offset_of(g, "pt"), *arr = v + offset_of(g, "arr");
    int *ip = (int *)(void *)arr + any(4);
    unsigned kind = any(3);
    set(g, v, "d", &d, sizeof d);
    set(g, v, "f", &f, sizeof f);
    set(g, v, "b", &b, sizeof b);
    set(g, v, "pp", &pt, sizeof pt);
    set(g, v, "ip", &ip, sizeof ip);
    set(g, v, "kind", &kind, sizeof kind);
    memcpy(pt + 8, &w, sizeof w);
    memcpy(v + offset_of(g, "other") + 8, &d, sizeof d);
    if (any(2)) memset(v + offset_of(g, "l"), any(2) ? 0xff : 0, 8);
}

static bool no_numbers(const uint8_t *a, const uint8_t *b, size_t size)
{
    double x, y;
    float f, g;
    memcpy(&x, a, 8), memcpy(&y, b, 8), memcpy(&f, a, 4), memcpy(&g, b, 4);
    return size == 4 ? f != f && g != g : x != x && y != y;
}

bool gen_same(const gen_library *g, const void *a, const void *b, char *which, size_t size)
{
    const image_member *m;
    size_t n = image_ctype_members(g->all, &m);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *x = (const uint8_t *)a + m[i].offset, *y = (const uint8_t *)b + m[i].offset;
        size_t bytes = m[i].type->size;
        bool point = m[i].type->kind == IMAGE_CTYPE_STRUCT && bytes == 16;
        if (point && !memcmp(x, y, 7) && (!memcmp(x + 8, y + 8, 8) || no_numbers(x + 8, y + 8, 8))) continue;
        if (!memcmp(x, y, bytes)) continue;
        if (m[i].type->kind == IMAGE_CTYPE_FLOAT && no_numbers(x, y, bytes)) continue;
        uint64_t v = 0, w = 0;
        memcpy(&v, x, bytes < 8 ? bytes : 8), memcpy(&w, y, bytes < 8 ? bytes : 8);
        snprintf(which, size, "%s is %#llx, should be %#llx", m[i].name, (unsigned long long)v, (unsigned long long)w);
        return false;
    }
    return true;
}

/* --- names --- */

typedef struct names_of {
    gen_library *g;
    void *variables;
} names_of;

static const snippet *find(void *arg, snippet_maker *m, const char *name)
{
    names_of *n = arg;
    uint64_t offset;
    const image_member *kinds;
    if (image_ctype_member(n->g->all, name, &offset)) {
        const image_ctype *word = image_ctype_int(8, false);
        const snippet *all = typed_object(m, n->g->all, typed_constant(m, word, (uint64_t)(uintptr_t)n->variables));
        return typed_member(m, all, name);
    }
    if (image_symbol(n->g->im, name, &offset, &(uint64_t){0})) {
        const image_ctype *f = image_proc_type(n->g->im, offset);
        return f ? typed_routine(m, (void (*)(void))dlsym(n->g->handle, name), f, NULL) : NULL;
    }
    const image_ctype *kind = image_ctype_member(n->g->all, "kind", &offset)->type;
    size_t count = image_ctype_members(kind, &kinds);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(kinds[i].name, name)) return typed_constant(m, image_ctype_int(4, true), kinds[i].offset);
    return NULL;
}

static const image_ctype *type(void *arg, snippet_maker *m, const char *name)
{
    (void)m;
    return image_ctype_named(((names_of *)arg)->g->im, 0, name);
}

snippet_names gen_names(gen_library *g, void *variables)
{
    static names_of n;
    n = (names_of){g, variables};
    return (snippet_names){.arg = &n, .find = find, .type = type};
}

/* --- trees, run here --- */

static inl_arena arena;
static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return inl_arena_alloc(&arena, bytes);
}
snippet_maker eval_maker(void) { return (snippet_maker){.alloc = alloc}; }

static uint64_t locals_now[64];
static bool leaving;

static uint64_t apply(const snippet *s, uint64_t a, uint64_t b)
{
    snippet x = {.kind = SNIPPET_CONST, .value = a}, y = {.kind = SNIPPET_CONST, .value = b}, t = *s;
    t.a = &x, t.b = s->kind == SNIPPET_BINARY ? &y : NULL;
    return snippet_simplify(&arena, &t)->value;
}

/* Integers and floating point go their own ways, whatever their order. */
#define WORDS  uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
#define REALS  double, double, double, double
#define PASSED v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], r[0], r[1], r[2], r[3]

static uint64_t eval_call(const snippet *s)
{
    uint64_t v[SNIPPET_MAX_ARGS] = {0}, answer = 0;
    double r[4] = {0};
    unsigned words = 0, reals = 0;
    for (unsigned i = 0; i < s->nargs; i++) {
        bool real = s->args[i]->kind == SNIPPET_REAL_ARG;
        uint64_t value = eval_snippet(real ? s->args[i]->a : s->args[i]);
        assert_true(reals + real <= 4);
        if (real) memcpy(&r[reals++], &value, sizeof value);
        else v[words++] = value;
    }
    if (!s->size) return ((uint64_t(*)(WORDS, WORDS, REALS))s->fn)(PASSED);
    double real = ((double (*)(WORDS, WORDS, REALS))s->fn)(PASSED);
    memcpy(&answer, &real, s->size);
    return answer;
}

uint64_t eval_snippet(const snippet *s)
{
    uint64_t a, b = 0;
    assert_true(s->index < 64);
    switch (s->kind) {
    case SNIPPET_CONST: return s->value;
    case SNIPPET_LOAD:
        a = eval_snippet(s->a);
        memcpy(&b, (void *)(uintptr_t)a, s->size);
        return snippet_extend(b, s->size, s->is_signed);
    case SNIPPET_STORE:
        a = eval_snippet(s->a), b = eval_snippet(s->b);
        memcpy((void *)(uintptr_t)a, &b, s->size);
        return 0;
    case SNIPPET_UNARY: return apply(s, eval_snippet(s->a), 0);
    case SNIPPET_BINARY:
        a = eval_snippet(s->a);
        if (s->op == SNIPPET_LAND && !a) return 0;
        if (s->op == SNIPPET_LOR && a) return 1;
        return apply(s, a, eval_snippet(s->b));
    case SNIPPET_IF: return eval_snippet(s->a) ? eval_snippet(s->b) : s->c ? eval_snippet(s->c) : 0;
    case SNIPPET_SEQ: eval_snippet(s->a); return leaving ? 0 : eval_snippet(s->b);
    case SNIPPET_WHILE:
        while (!leaving && eval_snippet(s->a)) eval_snippet(s->b);
        leaving = false;
        return 0;
    case SNIPPET_BREAK: leaving = true; return 0;
    case SNIPPET_LET: /* an outer one of the number is hidden only */
        a = eval_snippet(s->a), b = locals_now[s->index];
        locals_now[s->index] = a;
        a = eval_snippet(s->b);
        locals_now[s->index] = b;
        return a;
    case SNIPPET_LOCAL: return locals_now[s->index];
    case SNIPPET_SET_LOCAL: locals_now[s->index] = eval_snippet(s->a); return 0;
    case SNIPPET_CALL: return eval_call(s);
    default: fail_msg("a node that has no value here"); return 0;
    }
}
