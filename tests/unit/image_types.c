/* Types and variables from debug information: as compilers write it, and beside what the compiler itself says of sizes
 * and offsets. */
#include "image/ctype.h"
#include "image_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char source[] =
    "#include <stdbool.h>\n"
    "#include <stdint.h>\n"
    "#include <stddef.h>\n"
    "struct inner { short s; struct { int deep; union { long l; float f; }; }; };\n"
    "enum color { RED, GREEN = -7, BLUE };\n"
    "typedef struct { unsigned a : 3; int b : 7; uint64_t c : 40; bool last : 1; } bits;\n"
    "typedef struct node node;\n"
    "struct node { node *next; const char *name; struct inner in[3][2]; enum color color; bits bits; double d;\n"
    "              int (*call)(node *, long, ...); unsigned char byte; };\n"
    "node list = {.in[1][0].deep = 5};\n"
    "static long hidden = 4;\n"
    "const volatile unsigned short constant = 9;\n"
    "__thread int own;\n"
    "extern int elsewhere;\n"
    "int array[7];\n"
    "__attribute__((noinline)) long work(int count, const char *text, node *n, double real)\n"
    "{\n"
    "    static int inside = 3;\n"
    "    long sum = hidden++ + inside++;\n"
    "    for (int i = 0; i < count; i++) { long square = (long)i * i; sum += square + text[i % 3] + n->byte; }\n"
    "    return sum + (long)real;\n"
    "}\n"
    "int main(int argc, char **argv) { own = argc; return (int)work(argc, argv[0], &list, 1.5) + array[own] + "
    "constant; }\n"
    "size_t facts[] = {sizeof(node), offsetof(node, in), offsetof(node, color), offsetof(node, bits), sizeof(bits),\n"
    "                  offsetof(node, byte), sizeof(struct inner), offsetof(struct inner, f)};\n";

enum { SIZE_NODE, AT_IN, AT_COLOR, AT_BITS, SIZE_BITS, AT_BYTE, SIZE_INNER, AT_F, FACTS };
static uint64_t facts[FACTS];

static void read_facts(image *im)
{
    uint64_t at, size;
    const uint8_t *bytes;
    assert_true(image_symbol(im, "facts", &at, &size));
    assert_int_equal(size, sizeof facts);
    assert_true(image_bytes(im, at, &bytes) >= sizeof facts);
    memcpy(facts, bytes, sizeof facts);
}

static const image_ctype *global(image *im, const char *name)
{
    const char *why;
    image_variable v;
    uint64_t at, size;
    assert_true(image_global(im, 0, name, &v, &why));
    assert_int_equal(v.kind, IMAGE_PLACE_ADDRESS);
    assert_true(image_symbol(im, name, &at, &size));
    assert_int_equal(v.offset, at);
    if (v.type->size) assert_int_equal(v.type->size, size);
    return v.type;
}

static void spelled(const image_ctype *t, const char *text)
{
    char out[200];
    assert_non_null(t);
    assert_string_equal(image_ctype_text(t, out, sizeof out), text);
}

static uint64_t offset_of(const image_ctype *t, const char *name, const char *type)
{
    uint64_t offset;
    const image_member *m = image_ctype_member(t, name, &offset);
    assert_non_null(m);
    if (type) spelled(m->type, type);
    return offset;
}

static void check_members(const image_ctype *t)
{
    uint64_t offset;
    assert_int_equal(t->size, facts[SIZE_NODE]);
    assert_int_equal(offset_of(t, "next", "struct node *"), 0);
    assert_int_equal(offset_of(t, "name", "char *"), 8);
    assert_int_equal(offset_of(t, "in", "struct inner [3][2]"), facts[AT_IN]);
    assert_int_equal(offset_of(t, "color", "enum color"), facts[AT_COLOR]);
    assert_int_equal(offset_of(t, "byte", "unsigned char"), facts[AT_BYTE]);
    offset_of(t, "call", "int (*)()");
    assert_null(image_ctype_member(t, "absent", &offset));
    const image_ctype *in = image_ctype_member(t, "in", &offset)->type->of->of;
    assert_int_equal(in->size, facts[SIZE_INNER]);
    assert_int_equal(offset_of(in, "f", "float"), facts[AT_F]);
    assert_int_equal(offset_of(in, "l", "long"), facts[AT_F]);
    const image_ctype *call = image_ctype_member(t, "call", &offset)->type->of;
    assert_int_equal(call->kind, IMAGE_CTYPE_FUNCTION);
    assert_int_equal(call->member_count, 2);
    assert_true(call->variadic);
    assert_true(image_ctype_same(call->members[0].type->of, t));
}

static void check_bits(const image_ctype *t)
{
    static const struct {
        const char *name;
        unsigned first, count;
        bool is_signed;
    } fields[] = {{"a", 0, 3, false}, {"b", 3, 7, true}, {"c", 10, 40, false}, {"last", 50, 1, false}};
    uint64_t offset;
    const image_ctype *b = image_ctype_member(t, "bits", &offset)->type;
    assert_int_equal(offset, facts[AT_BITS]);
    spelled(b, "bits");
    assert_int_equal(b->size, facts[SIZE_BITS]);
    for (unsigned i = 0; i < 4; i++) {
        const image_ctype *f = image_ctype_member(b, fields[i].name, &offset)->type;
        assert_int_equal(f->kind, IMAGE_CTYPE_BITS);
        assert_int_equal(offset * 8 + f->bit_offset, fields[i].first);
        assert_int_equal(f->bit_count, fields[i].count);
        assert_int_equal(f->is_signed, fields[i].is_signed);
        assert_true(f->bit_offset + f->bit_count <= f->size * 8);
        assert_true(offset + f->size <= b->size);
    }
}

static void check_enum(const image_ctype *t)
{
    const image_member *m;
    uint64_t offset;
    const image_ctype *e = image_ctype_member(t, "color", &offset)->type;
    assert_int_equal(image_ctype_members(e, &m), 3);
    assert_string_equal(m[1].name, "GREEN");
    assert_int_equal((int64_t)m[1].offset, -7);
    assert_int_equal((int64_t)m[2].offset, -6);
    assert_true(e->is_signed);
}

static void check_locals(image *im, bool optimised)
{
    const image_proc *p = image_proc_named(im, "work");
    const char *why;
    image_variable v;
    assert_true(image_local(im, p->addr, "count", &v, &why));
    assert_int_equal(v.parameter, 1);
    spelled(v.type, "int");
    if (optimised) assert_int_equal(v.kind, IMAGE_PLACE_REGISTER);
    assert_true(image_local(im, p->addr, "n", &v, &why));
    assert_int_equal(v.parameter, 3);
    spelled(v.type, "struct node *");
    assert_true(image_local(im, p->addr, "inside", &v, &why));
    assert_int_equal(v.kind, IMAGE_PLACE_ADDRESS);
    assert_false(image_local(im, p->addr, "absent", &v, &why));
    assert_null(why);
    assert_false(image_local(im, p->addr, "array", &v, &why)); /* a global one */
    const image_ctype *t = image_proc_type(im, p->addr + 1);
    assert_non_null(t);
    spelled(t->of, "long");
    assert_int_equal(t->member_count, 4);
    assert_string_equal(t->members[3].name, "real");
}

typedef struct listed {
    const image_proc *p;
    image *im;
    char names[400];
    unsigned parameters, wrong;
} listed;

static void list_local(void *arg, const image_listed *v)
{
    listed *l = arg;
    sprintf(l->names + strlen(l->names), "%s ", v->name);
    l->parameters += v->is_parameter;
    l->wrong += !(v->low >= l->p->addr && v->low < v->high && v->high <= l->p->addr + l->p->size) || v->line < 15;
}

static void list_global(void *arg, const image_listed *v)
{
    listed *l = arg;
    uint64_t at, size;
    sprintf(l->names + strlen(l->names), "%s ", v->name);
    if (image_symbol(l->im, v->name, &at, &size) && v->high) l->wrong += v->low != at || v->high != at + size;
}

/* At the procedure's beginning, and all. Compilers put them in one order or the other. */
static void check_lists(image *im, bool optimised)
{
    listed here = {.p = image_proc_named(im, "work")}, all = here, globals = {.im = im};
    image_locals(im, here.p->addr, false, list_local, &here);
    image_locals(im, here.p->addr, true, list_local, &all);
    image_globals(im, list_global, &globals);
    assert_int_equal(here.wrong + all.wrong + globals.wrong, 0);
    assert_int_equal(here.parameters, 4);
    assert_int_equal(all.parameters, 4);
    if (!optimised) assert_string_equal(here.names, "count text n real inside sum ");
    assert_non_null(strstr(all.names, "square "));
    if (!optimised) assert_null(strstr(here.names, "square "));
    assert_non_null(strstr(globals.names, "hidden "));
    assert_non_null(strstr(globals.names, "facts "));
    assert_null(strstr(globals.names, "elsewhere"));
    assert_null(strstr(globals.names, "inside"));
}

static void check_globals(image *im)
{
    const char *why;
    image_variable v;
    spelled(global(im, "array"), "int [7]");
    spelled(global(im, "constant"), "unsigned short");
    spelled(global(im, "facts"), "unsigned long [8]");
    assert_true(image_global(im, image_proc_named(im, "work")->addr, "hidden", &v, &why));
    /* Where the compiler has no relocation for it, it says nothing of the place. */
    if (image_global(im, 0, "own", &v, &why)) assert_int_equal(v.kind, IMAGE_PLACE_TLS);
    else assert_string_equal(why, "it has been optimised away");
    assert_false(image_global(im, 0, "elsewhere", &v, &why));
    assert_null(why);
}

static void check(const char *compiler, const char *name, const char *flags, bool optimised)
{
    image *im = sample_open(sample_build(compiler, name, "c", source, flags));
    assert_true(image_has_types(im));
    read_facts(im);
    const image_ctype *t = global(im, "list");
    spelled(t, "struct node");
    assert_ptr_equal(image_ctype_named(im, 0, "struct node"), t);
    assert_ptr_equal(image_ctype_named(im, 0, "node"), t);
    assert_null(image_ctype_named(im, 0, "struct absent"));
    spelled(image_ctype_named(im, 0, "size_t"), "unsigned long");
    check_members(t);
    check_bits(t);
    check_enum(t);
    check_locals(im, optimised);
    check_lists(im, optimised);
    check_globals(im);
    image_close(im);
}

static void as_the_compiler_says(void **state)
{
    (void)state;
    check(SAMPLE_CC, "plain", "-g -O0", false);
    check(SAMPLE_CC, "optimised", "-g -O2", true);
    check(SAMPLE_CC, "four", "-gdwarf-4 -O1 -fdebug-types-section", true);
    check(SAMPLE_CC, "three", "-gdwarf-3 -gstrict-dwarf -O0", false);
    check(SAMPLE_CC, "two", "-gdwarf-2 -O0", false);
    if (sample_shell("clang --version > /dev/null 2>&1") && !strcmp(SAMPLE_CC, "cc"))
        check("clang", "clang", "-g -O1", true);
}

static void a_local_is_where_the_debugger_finds_it(void **state)
{
    (void)state;
    image *im = sample_open(sample_build(SAMPLE_CC, "places", "c", source, "-g -O0"));
    const image_proc *p = image_proc_named(im, "work");
    const char *why;
    image_variable v;
    bool shadowed = false;
    for (uint64_t pc = p->addr; pc < p->addr + p->size; pc++) {
        if (image_local(im, pc, "square", &v, &why)) shadowed = true;
        assert_true(image_local(im, pc, "sum", &v, &why));
        assert_int_equal(v.kind, IMAGE_PLACE_RELATIVE);
        assert_int_equal(v.parameter, 0);
    }
    assert_true(shadowed);
    assert_false(image_local(im, p->addr, "square", &v, &why));
    image_close(im);
}

static void nothing_without_debug_information(void **state)
{
    (void)state;
    const char *why;
    image_variable v;
    image *im = sample_open(sample_build(SAMPLE_CC, "bare", "c", source, "-O0"));
    assert_false(image_has_types(im));
    assert_false(image_global(im, 0, "list", &v, &why));
    assert_false(image_local(im, image_proc_named(im, "work")->addr, "sum", &v, &why));
    assert_null(image_ctype_named(im, 0, "node"));
    assert_null(image_proc_type(im, image_proc_named(im, "work")->addr));
    image_close(im);
}

/* Whole images are seen from nowhere: each unit has its own language's words. */
static void words_before_names_are_those_of_the_language(void **state)
{
    (void)state;
    static const char tagged[] = "struct tagged { int a; } it; int main(void) { return it.a; }";
    image *im = sample_open(sample_build(SAMPLE_CC, "words", "c", tagged, "-g -O0"));
    assert_non_null(image_ctype_named(im, 0, "struct tagged"));
    assert_null(image_ctype_named(im, 0, "tagged"));
    image_close(im);
    if (!sample_shell("g++ --version > /dev/null 2>&1") || strcmp(SAMPLE_CC, "cc") != 0) return;
    im = sample_open(sample_build("g++", "none", "cc", tagged, "-g -O0"));
    assert_non_null(image_ctype_named(im, 0, "tagged"));
    assert_ptr_equal(image_ctype_named(im, 0, "tagged"), image_ctype_named(im, 0, "struct tagged"));
    image_close(im);
}

static void numbers_that_are_none_of_cs_have_names_alone(void **state)
{
    (void)state;
    static const char numbers[] = "typedef int four __attribute__((vector_size(16))); four whole;\n"
                                  "_Complex int parts; _Float128 wide; int main(void) { return whole[0]; }\n"
                                  "#ifdef __x86_64__\n_Decimal64 decimal;\n#endif\n";
    uint64_t offset;
    image *im = sample_open(sample_build(SAMPLE_CC, "numbers", "c", numbers, "-g -O0"));
    assert_true(global(im, "whole")->is_vector);
    assert_int_equal(offset_of(global(im, "parts"), "imag", "int"), 4);
    assert_int_equal(global(im, "wide")->kind, IMAGE_CTYPE_OTHER);
    if (image_symbol(im, "decimal", &offset, &offset)) assert_int_equal(global(im, "decimal")->kind, IMAGE_CTYPE_OTHER);
    image_close(im);
}

static const image_ctype *in_program(image *im, const char *name)
{
    const char *why;
    image_variable v;
    assert_true(image_local(im, image_proc_named(im, "MAIN__")->addr, name, &v, &why));
    return v.type;
}

/* Counted from 0, the first index leads farthest; what has a descriptor is had by its first element's address. */
static void arrays_of_fortran_are_as_c_has_them(void **state)
{
    (void)state;
    static const char source_f90[] = "program rows\n"
                                     "  integer, save :: plain(5), low(-2:2), table(3,2)\n"
                                     "  real(8), allocatable, save :: later(:)\n"
                                     "  character(len=8), save :: label\n"
                                     "  allocate(later(3)); plain = 1; low = 2; table = 3; label = 'four'\n"
                                     "end program\n";
    if (!sample_shell("gfortran --version > /dev/null 2>&1") || strcmp(SAMPLE_CC, "cc") != 0) return;
    image *im = sample_open(sample_build("gfortran", "rows", "f90", source_f90, "-g -O0"));
    spelled(in_program(im, "plain"), "integer(kind=4) [5]");
    spelled(in_program(im, "low"), "integer(kind=4) [5]");
    spelled(in_program(im, "table"), "integer(kind=4) [2][3]");
    spelled(in_program(im, "later"), "real(kind=8) *");
    spelled(in_program(im, "label"), "char [8]");
    assert_int_equal(in_program(im, "table")->size, 24);
    image_close(im);
}

/* As dwz makes them: a variable whose type is in another file, at the eleventh byte behind its unit's beginning. */
static void a_type_may_be_in_a_file_that_others_share(void **state)
{
    (void)state;
    static const char holds[] = ".section .debug_abbrev\n"
                                ".uleb128 1,0x3c\n.byte 1,0,0\n" /* a partial unit, with children */
                                ".uleb128 2,0x24\n.byte 0\n.uleb128 3,8,0xb,0xb,0x3e,0xb\n.byte 0,0,0\n"
                                ".section .debug_info\n.long 2f-1f\n1: .2byte 4\n.long 0\n.byte 8\n"
                                ".uleb128 1\n.uleb128 2\n.asciz \"shared\"\n.byte 4,5,0\n2:\n";
    static const char uses[] = ".data\n.globl it\n.type it,%object\n.size it,4\nit: .long 7\n"
                               ".section .debug_abbrev\n"
                               ".uleb128 1,0x11\n.byte 1\n.uleb128 0x13,0xb\n.byte 0,0\n"
                               ".uleb128 2,0x34\n.byte 0\n.uleb128 3,8,0x49,0x1f20,2,0x18\n.byte 0,0,0\n"
                               ".section .debug_info\n.long 2f-1f\n1: .2byte 4\n.long 0\n.byte 8\n"
                               ".uleb128 1\n.byte 12\n"
                               ".uleb128 2\n.asciz \"it\"\n.long 12\n.byte 9,3\n.quad it\n.byte 0\n2:\n"
                               ".section .debug_line\n.long 0\n"
                               ".section .gnu_debugaltlink\n.asciz \"shared.debug\"\n.byte 0x12,0x34,0x56,0x78\n";
    const char *why,
        *other = sample_build(SAMPLE_CC, "shared.debug", "s", holds, "-shared -nostdlib -Wl,--build-id=0x12345678");
    const char *one = sample_build(SAMPLE_CC, "shares", "s", uses, "-shared -nostdlib -Wl,--build-id=none");
    image_variable v;
    image *im = sample_open(one);
    spelled(global(im, "it"), "shared");
    assert_non_null(image_ctype_named(im, 0, "shared"));
    assert_null(image_debug_lacks(im, 0));
    image_close(im);
    assert_true(sample_shell("mv '%s' '%s.away'", other, other));
    im = sample_open(one);
    assert_false(image_global(im, 0, "it", &v, &why));
    assert_non_null(image_debug_lacks(im, 0));
    image_close(im);
}

static void types_are_spelled(void **state)
{
    (void)state;
    const image_ctype array = {.kind = IMAGE_CTYPE_ARRAY, .of = &image_ctype_char, .count = 16};
    const image_ctype pointer = {.kind = IMAGE_CTYPE_POINTER, .of = &array};
    const image_ctype pointers = {.kind = IMAGE_CTYPE_ARRAY, .of = &pointer, .count = 2};
    spelled(&pointers, "char (*[2])[16]");
    spelled(image_ctype_basic("unsigned long"), "unsigned long");
    spelled(image_ctype_basic("uint16_t"), "unsigned short");
    assert_null(image_ctype_basic("stat"));
    assert_false(image_ctype_same(image_ctype_int(4, true), image_ctype_int(4, false)));
    assert_false(image_ctype_same(&pointer, &array));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_compiler_says),
        cmocka_unit_test(a_local_is_where_the_debugger_finds_it),
        cmocka_unit_test(nothing_without_debug_information),
        cmocka_unit_test(words_before_names_are_those_of_the_language),
        cmocka_unit_test(numbers_that_are_none_of_cs_have_names_alone),
        cmocka_unit_test(arrays_of_fortran_are_as_c_has_them),
        cmocka_unit_test(a_type_may_be_in_a_file_that_others_share),
        cmocka_unit_test(types_are_spelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
