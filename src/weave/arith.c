/* Arithmetic, comparison and logic on values: the order of evaluation, and what needs no instruction set. The
 * meaning of each operation is that of snippet/simplify.c. */
#include "weave/weaver.h"

/* Both operands, the first one parked meanwhile when registers are short. */
static void operands(weaver *w, const snippet *s, weave_val *a, weave_val *b, unsigned hint)
{
    *a = weave_eval(w, s->a, hint);
    if (s->b->kind != SNIPPET_CONST) weave_park(w, a);
    *b = weave_eval(w, s->b, ISA_NO_REG);
    if (a->kind == WEAVE_TEMP) weave_in_reg(w, a, 0);
}

bool weave_is_compare(unsigned op) { return op >= SNIPPET_EQ && op <= SNIPPET_UGE; }

unsigned weave_compare_emit(weaver *w, const snippet *s)
{
    weave_val a, b;
    operands(w, s, &a, &b, ISA_NO_REG);
    return w->isa->compare(w, s->op, a, b);
}

/* A spill in between only moves, and keeps the flags. */
weave_val weave_set_if(weaver *w, unsigned cond, unsigned hint)
{
    unsigned reg = weave_take(w, 0, hint);
    w->isa->condition(w->c, cond, reg);
    return weave_owned(reg);
}

weave_val weave_compare(weaver *w, const snippet *s, unsigned hint)
{
    return weave_set_if(w, weave_compare_emit(w, s), hint);
}

/* a && b is: if a then (b != 0) else 0. */
static weave_val logical(weaver *w, const snippet *s, unsigned hint)
{
    static const snippet zero = {.kind = SNIPPET_CONST}, one = {.kind = SNIPPET_CONST, .value = 1};
    snippet truth = {.kind = SNIPPET_BINARY, .op = SNIPPET_NE, .a = s->b, .b = &zero};
    snippet choice = {.kind = SNIPPET_IF, .a = s->a};
    if (s->op == SNIPPET_LAND) choice.b = &truth, choice.c = &zero;
    else choice.b = &one, choice.c = &truth;
    return weave_if(w, &choice, hint);
}

/* The comparison says whether the first is it; else the second takes its place. */
static weave_val least_or_most(weaver *w, const snippet *s, unsigned hint)
{
    static const uint8_t ops[] = {SNIPPET_LT, SNIPPET_GT, SNIPPET_ULT, SNIPPET_UGT};
    weave_val a, b;
    operands(w, s, &a, &b, hint);
    weave_own(w, &a, 0, hint);
    weave_in_reg(w, &b, 0);
    weave_lock(w, a.reg);
    weave_lock(w, b.reg);
    unsigned cond = w->isa->compare(w, ops[s->op - SNIPPET_MIN], a, b);
    isa_label stays = w->isa->branch(w->c, cond, true);
    w->isa->move(w->c, a.reg, b.reg);
    w->isa->bind(w->c, stays);
    weave_unlock(w, b.reg);
    return weave_owned(a.reg);
}

weave_val weave_binary(weaver *w, const snippet *s, unsigned hint)
{
    weave_val a, b;
    if (s->op == SNIPPET_LAND || s->op == SNIPPET_LOR) return logical(w, s, hint);
    if (weave_is_compare(s->op)) return weave_compare(w, s, hint);
    if (s->op >= SNIPPET_MIN && s->op <= SNIPPET_UMAX) return least_or_most(w, s, hint);
    operands(w, s, &a, &b, hint);
    return w->isa->binary(w, s, a, b, hint);
}

static weave_val extend(weaver *w, const snippet *s, unsigned hint)
{
    weave_val v = weave_eval(w, s->a, hint);
    if (v.kind == WEAVE_IMM) return weave_imm(snippet_extend(v.imm, s->size, s->is_signed));
    weave_in_reg(w, &v, 0);
    unsigned from = v.reg;
    if (v.kind != WEAVE_REG || w->lock[v.reg] != 1) {
        unsigned reg = weave_take(w, 0, hint);
        weave_drop(w, v);
        v = weave_owned(reg);
    }
    w->isa->extend(w->c, s->size, s->is_signed, v.reg, from);
    return v;
}

weave_val weave_unary(weaver *w, const snippet *s, unsigned hint)
{
    if (s->op == SNIPPET_EXTEND) return extend(w, s, hint);
    return w->isa->unary(w, s->op, weave_eval(w, s->a, hint), hint);
}
