/* Snippet trees: checking, folding, printing. */
#include "snippet/snippet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static inl_arena arena;

static snippet *node(unsigned kind, const snippet *a, const snippet *b)
{
    snippet *s = snippet_new(&arena, (snippet_kind)kind);
    s->a = a, s->b = b;
    return s;
}

static const snippet *number(uint64_t v)
{
    snippet *s = node(SNIPPET_CONST, NULL, NULL);
    s->value = v;
    return s;
}

static const snippet *binary(unsigned op, const snippet *a, const snippet *b, bool is_signed)
{
    snippet *s = node(SNIPPET_BINARY, a, b);
    s->op = (uint8_t)op, s->is_signed = is_signed;
    return s;
}

static uint64_t folded(unsigned op, uint64_t a, uint64_t b, bool is_signed)
{
    const snippet *s = snippet_simplify(&arena, binary(op, number(a), number(b), is_signed));
    assert_int_equal(s->kind, SNIPPET_CONST);
    return s->value;
}

static void constants_fold(void **state)
{
    (void)state;
    assert_int_equal(folded(SNIPPET_SUB, 3, 5, false), (uint64_t)-2);
    assert_int_equal(folded(SNIPPET_DIV, 7, 0, false), 0);
    assert_int_equal(folded(SNIPPET_MOD, 7, 0, true), 0);
    assert_int_equal(folded(SNIPPET_DIV, (uint64_t)-7, 2, true), (uint64_t)-3);
    assert_int_equal(folded(SNIPPET_DIV, 1ull << 63, (uint64_t)-1, true), 1ull << 63);
    assert_int_equal(folded(SNIPPET_SHL, 1, 65, false), 2);
    assert_int_equal(folded(SNIPPET_SAR, (uint64_t)-8, 1, false), (uint64_t)-4);
    assert_int_equal(folded(SNIPPET_LT, (uint64_t)-1, 0, false), 1);
    assert_int_equal(folded(SNIPPET_ULT, (uint64_t)-1, 0, false), 0);
    assert_int_equal(folded(SNIPPET_LOR, 0, 9, false), 1);
    assert_int_equal(folded(SNIPPET_MIN, (uint64_t)-1, 0, false), -1);
    assert_int_equal(folded(SNIPPET_UMIN, (uint64_t)-1, 0, false), 0);
    assert_int_equal(folded(SNIPPET_MAX, (uint64_t)-1, 0, false), 0);
    assert_int_equal(folded(SNIPPET_UMAX, (uint64_t)-1, 0, false), -1);
}

static void neutral_operands_vanish(void **state)
{
    (void)state;
    const snippet *pc = node(SNIPPET_PC, NULL, NULL);
    assert_ptr_equal(snippet_simplify(&arena, binary(SNIPPET_ADD, pc, number(0), false)), pc);
    assert_ptr_equal(snippet_simplify(&arena, binary(SNIPPET_MUL, pc, number(1), false)), pc);
    const snippet *inner = binary(SNIPPET_MUL, number(2), number(3), false);
    const snippet *sum = snippet_simplify(&arena, binary(SNIPPET_ADD, pc, inner, false));
    assert_int_equal(sum->b->value, 6);
    snippet *choice = node(SNIPPET_IF, number(0), pc);
    choice->c = number(4);
    assert_int_equal(snippet_simplify(&arena, choice)->value, 4);
}

static const snippet *extension(const snippet *a, unsigned size, bool is_signed)
{
    snippet *s = node(SNIPPET_UNARY, a, NULL);
    s->op = SNIPPET_EXTEND, s->size = (uint8_t)size, s->is_signed = is_signed;
    return s;
}

static void extensions_fold(void **state)
{
    (void)state;
    assert_int_equal(snippet_simplify(&arena, extension(number(0x1ff), 1, true))->value, -1);
    assert_int_equal(snippet_simplify(&arena, extension(number(0x1ff), 1, false))->value, 0xff);
    const snippet *pc = node(SNIPPET_PC, NULL, NULL);
    assert_ptr_equal(snippet_simplify(&arena, extension(pc, 8, true)), pc);
    /* what is loaded with the other sign; what is cut off again */
    snippet *load = node(SNIPPET_LOAD, pc, NULL);
    load->size = 4;
    const snippet *s = snippet_simplify(&arena, extension(load, 4, true));
    assert_int_equal(s->kind, SNIPPET_LOAD);
    assert_true(s->is_signed);
    assert_int_equal(snippet_simplify(&arena, extension(load, 2, true))->kind, SNIPPET_UNARY);
    s = snippet_simplify(&arena, extension(extension(pc, 4, true), 2, false));
    assert_ptr_equal(s->a, pc);
    assert_ptr_not_equal(snippet_simplify(&arena, extension(extension(pc, 2, true), 4, false))->a, pc);
    snippet *store = node(SNIPPET_STORE, pc, extension(pc, 4, true));
    store->size = 4;
    assert_ptr_equal(snippet_simplify(&arena, store)->b, pc);
    store->size = 8;
    assert_ptr_not_equal(snippet_simplify(&arena, store)->b, pc);
}

static const snippet *local(unsigned kind, uint32_t index, const snippet *a, const snippet *b)
{
    snippet *s = node(kind, a, b);
    s->index = index;
    return s;
}

static void locals_and_breaks_have_their_places(void **state)
{
    (void)state;
    const char *why;
    const snippet *leave = node(SNIPPET_BREAK, NULL, NULL), *pc = node(SNIPPET_PC, NULL, NULL);
    snippet *choice = node(SNIPPET_IF, pc, leave);
    assert_false(snippet_check(choice, &why));
    assert_true(snippet_check(node(SNIPPET_WHILE, pc, choice), &why));
    assert_true(snippet_check(node(SNIPPET_WHILE, pc, node(SNIPPET_SEQ, pc, leave)), &why));
    assert_true(snippet_check(node(SNIPPET_WHILE, pc, local(SNIPPET_LET, 0, pc, leave)), &why));
    assert_false(snippet_check(node(SNIPPET_WHILE, leave, pc), &why));
    assert_false(snippet_check(node(SNIPPET_WHILE, pc, binary(SNIPPET_ADD, pc, leave, false)), &why));
    assert_false(snippet_check(node(SNIPPET_WHILE, pc, node(SNIPPET_IF, leave, pc)), &why));
    const snippet *use = local(SNIPPET_LOCAL, 4, NULL, NULL), *set = local(SNIPPET_SET_LOCAL, 4, pc, NULL);
    assert_true(snippet_check(local(SNIPPET_LET, 4, pc, node(SNIPPET_SEQ, set, use)), &why));
    assert_true(snippet_check(local(SNIPPET_LET, 4, pc, local(SNIPPET_LET, 5, use, use)), &why));
    assert_false(snippet_check(local(SNIPPET_LET, 4, use, pc), &why));
    assert_false(snippet_check(local(SNIPPET_LET, 5, pc, set), &why));
    assert_int_equal(snippet_fresh_local(use, pc), 5);
    const snippet *deep = pc;
    for (uint32_t i = 0; i < SNIPPET_MAX_LOCALS; i++) deep = local(SNIPPET_LET, i, pc, deep);
    assert_true(snippet_check(deep, &why));
    assert_false(snippet_check(local(SNIPPET_LET, 99, pc, deep), &why));
}

static void bad_trees_are_refused(void **state)
{
    (void)state;
    const char *why = NULL;
    snippet *load = node(SNIPPET_LOAD, NULL, NULL);
    assert_false(snippet_check(load, &why));
    assert_non_null(why);
    load->a = number(1), load->size = 3;
    assert_false(snippet_check(load, &why));
    load->size = 4;
    assert_true(snippet_check(load, &why));
    assert_null(why);
    assert_false(snippet_check(NULL, &why));
    assert_false(snippet_check(node(SNIPPET_CONTEXT, NULL, NULL), &why));
    snippet *call = node(SNIPPET_CALL, NULL, NULL);
    assert_false(snippet_check(call, &why));
    const snippet *args[] = {node(SNIPPET_CONTEXT, NULL, NULL)};
    call->fn = (void (*)(void))bad_trees_are_refused;
    call->args = args, call->nargs = 1;
    assert_true(snippet_check(call, &why));
    assert_true(snippet_has(call, SNIPPET_CONTEXT));
    assert_false(snippet_has(call, SNIPPET_EA));
    args[0] = NULL;
    assert_false(snippet_check(call, &why));
}

static void records_must_fit(void **state)
{
    (void)state;
    const char *why;
    static const uint8_t sizes[] = {8, 4};
    snippet_buffer buffer = {0, 8, NULL, 0};
    const snippet *args[] = {number(1), number(2)};
    snippet *append = node(SNIPPET_APPEND, NULL, NULL);
    append->buffer = &buffer, append->args = args, append->nargs = 2, append->arg_sizes = sizes;
    assert_false(snippet_check(append, &why));
    buffer.record_size = 12;
    assert_true(snippet_check(append, &why));
}

static void trees_print(void **state)
{
    (void)state;
    char text[80], small[8];
    snippet *load = node(SNIPPET_LOAD, binary(SNIPPET_ADD, node(SNIPPET_PC, NULL, NULL), number(8), false), NULL);
    load->size = 4;
    snippet_print(load, text, sizeof text);
    assert_string_equal(text, "(load32 (add pc 0x8))");
    snippet_print(load, small, sizeof small);
    assert_string_equal(small, "(load32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_fold),
        cmocka_unit_test(neutral_operands_vanish),
        cmocka_unit_test(bad_trees_are_refused),
        cmocka_unit_test(records_must_fit),
        cmocka_unit_test(trees_print),
        cmocka_unit_test(extensions_fold),
        cmocka_unit_test(locals_and_breaks_have_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
