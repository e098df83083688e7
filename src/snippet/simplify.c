/* Constant folding: what a tree's value is without knowing its point.
 *
 * Arithmetic here is the definition of what woven code computes: 64 bits, wrapping; shift counts are
 * taken modulo 64; a division by zero gives 0 (a tool must not kill the program it watches), and so
 * does its remainder; the smallest number divided by -1 is itself.
 */
#include "snippet/snippet.h"

static uint64_t divide(uint64_t a, uint64_t b, bool is_signed, bool remainder)
{
    if (b == 0) return 0;
    if (!is_signed) return remainder ? a % b : a / b;
    if (b == UINT64_MAX) return remainder ? 0 : 0 - a;
    return (uint64_t)(remainder ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

uint64_t snippet_compute(unsigned op, uint64_t a, uint64_t b, bool is_signed)
{
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    switch (op) {
    case SNIPPET_ADD: return a + b;
    case SNIPPET_SUB: return a - b;
    case SNIPPET_MUL: return a * b;
    case SNIPPET_DIV: return divide(a, b, is_signed, false);
    case SNIPPET_MOD: return divide(a, b, is_signed, true);
    case SNIPPET_AND: return a & b;
    case SNIPPET_OR: return a | b;
    case SNIPPET_XOR: return a ^ b;
    case SNIPPET_SHL: return a << (b & 63);
    case SNIPPET_SHR: return a >> (b & 63);
    case SNIPPET_SAR: return (uint64_t)(sa >> (b & 63));
    case SNIPPET_EQ: return a == b;
    case SNIPPET_NE: return a != b;
    case SNIPPET_LT: return sa < sb;
    case SNIPPET_LE: return sa <= sb;
    case SNIPPET_GT: return sa > sb;
    case SNIPPET_GE: return sa >= sb;
    case SNIPPET_ULT: return a < b;
    case SNIPPET_ULE: return a <= b;
    case SNIPPET_UGT: return a > b;
    case SNIPPET_UGE: return a >= b;
    case SNIPPET_MIN: return sa < sb ? a : b;
    case SNIPPET_MAX: return sa > sb ? a : b;
    case SNIPPET_UMIN: return a < b ? a : b;
    case SNIPPET_UMAX: return a > b ? a : b;
    case SNIPPET_LAND: return a && b;
    case SNIPPET_LOR: return a || b;
    case SNIPPET_NEG: return 0 - a;
    case SNIPPET_NOT: return ~a;
    default: return !a;
    }
}

/* The low `size` bytes of a value, as 64 bits. */
uint64_t snippet_extend(uint64_t v, unsigned size, bool is_signed)
{
    unsigned gone = 64 - 8 * size;
    return is_signed ? (uint64_t)((int64_t)(v << gone) >> gone) : v << gone >> gone;
}

static bool is_const(const snippet *s) { return s && s->kind == SNIPPET_CONST; }

static const snippet *constant(inl_arena *arena, uint64_t value, const snippet *otherwise)
{
    snippet *s = snippet_new(arena, SNIPPET_CONST);
    if (!s) return otherwise;
    s->value = value;
    return s;
}

/* A copy of `s` whose kids and arguments are simplified, or `s` itself when nothing changed. */
static const snippet *simplify_kids(inl_arena *arena, const snippet *s)
{
    const snippet *a = s->a ? snippet_simplify(arena, s->a) : NULL;
    const snippet *b = s->b ? snippet_simplify(arena, s->b) : NULL;
    const snippet *c = s->c ? snippet_simplify(arena, s->c) : NULL;
    const snippet **args = NULL;
    for (unsigned i = 0; i < s->nargs; i++) {
        const snippet *arg = snippet_simplify(arena, s->args[i]);
        if (arg == s->args[i]) continue;
        if (!args) {
            args = inl_arena_alloc(arena, s->nargs * sizeof *args);
            if (!args) return s;
            for (unsigned k = 0; k < s->nargs; k++) args[k] = s->args[k];
        }
        args[i] = arg;
    }
    if (a == s->a && b == s->b && c == s->c && !args) return s;
    snippet *copy = inl_arena_alloc(arena, sizeof *copy);
    if (!copy) return s;
    *copy = *s;
    copy->a = a, copy->b = b, copy->c = c;
    if (args) copy->args = args;
    return copy;
}

static const snippet *simplify_binary(inl_arena *arena, const snippet *s)
{
    if (is_const(s->a) && is_const(s->b))
        return constant(arena, snippet_compute(s->op, s->a->value, s->b->value, s->is_signed), s);
    if (is_const(s->a) && (s->op == SNIPPET_LAND || s->op == SNIPPET_LOR)) {
        bool decides = (s->op == SNIPPET_LOR) == (s->a->value != 0);
        return decides ? constant(arena, s->op == SNIPPET_LOR, s) : s;
    }
    bool neutral_zero = s->op == SNIPPET_ADD || s->op == SNIPPET_SUB || s->op == SNIPPET_OR || s->op == SNIPPET_XOR ||
                        s->op == SNIPPET_SHL || s->op == SNIPPET_SHR || s->op == SNIPPET_SAR;
    if (is_const(s->b) && s->b->value == 0 && neutral_zero) return s->a;
    if (is_const(s->b) && s->b->value == 1 && (s->op == SNIPPET_MUL || s->op == SNIPPET_DIV)) return s->a;
    if (is_const(s->a) && s->a->value == 0 && (s->op == SNIPPET_ADD || s->op == SNIPPET_OR)) return s->b;
    return s;
}

static bool is_extension(const snippet *s) { return s->kind == SNIPPET_UNARY && s->op == SNIPPET_EXTEND; }

static snippet *copy_of(inl_arena *arena, const snippet *s)
{
    snippet *copy = inl_arena_alloc(arena, sizeof *copy);
    if (copy) *copy = *s;
    return copy;
}

/* What is loaded is extended in the same step, and the outer one of two extensions is enough. */
static const snippet *simplify_extension(inl_arena *arena, const snippet *s)
{
    if (s->size == 8) return s->a;
    if (is_extension(s->a) && s->a->size >= s->size) {
        snippet *copy = copy_of(arena, s);
        if (!copy) return s;
        copy->a = s->a->a;
        return simplify_extension(arena, copy);
    }
    if (s->a->kind != SNIPPET_LOAD || s->a->size != s->size) return s;
    snippet *copy = copy_of(arena, s->a);
    if (!copy) return s;
    copy->is_signed = s->is_signed;
    return copy;
}

/* Bytes that are not stored need not be right. */
static const snippet *simplify_store(inl_arena *arena, const snippet *s)
{
    const snippet *v = s->b;
    while (is_extension(v) && v->size >= s->size) v = v->a;
    snippet *copy = v == s->b ? NULL : copy_of(arena, s);
    if (!copy) return s;
    copy->b = v;
    return copy;
}

static const snippet *simplify_unary(inl_arena *arena, const snippet *s)
{
    if (!is_const(s->a)) return is_extension(s) ? simplify_extension(arena, s) : s;
    uint64_t v = s->a->value;
    if (s->op == SNIPPET_EXTEND) v = snippet_extend(v, s->size, s->is_signed);
    else v = snippet_compute(s->op, v, 0, false);
    return constant(arena, v, s);
}

const snippet *snippet_simplify(inl_arena *arena, const snippet *s)
{
    if (!s) return NULL;
    s = simplify_kids(arena, s);
    switch (s->kind) {
    case SNIPPET_BINARY: return simplify_binary(arena, s);
    case SNIPPET_UNARY: return simplify_unary(arena, s);
    case SNIPPET_STORE: return simplify_store(arena, s);
    case SNIPPET_IF:
        if (!is_const(s->a)) return s;
        if (s->a->value) return s->b;
        return s->c ? s->c : constant(arena, 0, s);
    case SNIPPET_SEQ: return is_const(s->a) ? s->b : s;
    default: return s;
    }
}
