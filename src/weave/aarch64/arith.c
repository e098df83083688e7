/* Arithmetic and comparison: three operands, and flags that only comparisons touch. */
#include "weave/aarch64/machine.h"

enum { CNTVCT = 0xd53be040 /* mrs x0, cntvct_el0 */ };

/* Where a result goes whose operands are a and b: one that is given up, or a new register. Both are dropped, but
 * stay as they are until something else is taken. */
static unsigned result_of(weaver *w, weave_val a, weave_val b, unsigned hint)
{
    unsigned reg;
    if (a.kind == WEAVE_REG && w->lock[a.reg] == 1) reg = a.reg;
    else if (b.kind == WEAVE_REG && w->lock[b.reg] == 1) reg = b.reg;
    else reg = weave_take(w, 0, hint);
    if (a.kind != WEAVE_REG || a.reg != reg) weave_drop(w, a);
    if (b.kind != WEAVE_REG || b.reg != reg) weave_drop(w, b);
    return reg;
}

static void swap(weave_val *a, weave_val *b)
{
    weave_val t = *a;
    *a = *b, *b = t;
}

static bool fits24(uint64_t v) { return v + (1 << 24) - 1 < (1 << 25) - 1; }

static weave_val add(weaver *w, a64_arith op, weave_val a, weave_val b, unsigned hint)
{
    if (op == A64_ARITH_ADD && a.kind == WEAVE_IMM) swap(&a, &b);
    weave_in_reg(w, &a, 0);
    bool small = b.kind == WEAVE_IMM && fits24(b.imm);
    if (!small) weave_in_reg(w, &b, 0);
    unsigned reg = result_of(w, a, b, hint);
    if (small) a64_add_ri(w->c, reg, a.reg, op == A64_ARITH_SUB ? -(int64_t)b.imm : (int64_t)b.imm);
    else a64_arith_rr(w->c, op, 8, reg, a.reg, b.reg, 0);
    return weave_owned(reg);
}

static weave_val logic(weaver *w, a64_logic op, weave_val a, weave_val b, unsigned hint)
{
    unsigned field;
    if (a.kind == WEAVE_IMM) swap(&a, &b);
    weave_in_reg(w, &a, 0);
    bool mask = b.kind == WEAVE_IMM && a64_mask_encode(b.imm, 8, &field);
    if (!mask) weave_in_reg(w, &b, 0);
    unsigned reg = result_of(w, a, b, hint);
    if (mask) a64_logic_ri(w->c, op, 8, reg, a.reg, b.imm);
    else a64_logic_rr(w->c, op, 8, reg, a.reg, b.reg, 0);
    return weave_owned(reg);
}

static weave_val shift(weaver *w, a64_shift op, weave_val a, weave_val b, unsigned hint)
{
    weave_in_reg(w, &a, 0);
    if (b.kind != WEAVE_IMM) weave_in_reg(w, &b, 0);
    unsigned reg = result_of(w, a, b, hint);
    if (b.kind == WEAVE_IMM) a64_shift_ri(w->c, op, 8, reg, a.reg, b.imm & 63);
    else a64_shift_rr(w->c, op, 8, reg, a.reg, b.reg);
    return weave_owned(reg);
}

static weave_val multiply(weaver *w, weave_val a, weave_val b, unsigned hint)
{
    weave_in_reg(w, &a, 0);
    weave_in_reg(w, &b, 0);
    unsigned reg = result_of(w, a, b, hint);
    a64_madd(w->c, 8, reg, a.reg, b.reg, A64_ZR);
    return weave_owned(reg);
}

/* Division by zero gives 0, as it shall; a remainder by zero has to be made so. */
static weave_val divide(weaver *w, weave_val a, weave_val b, bool is_signed, bool remainder, unsigned hint)
{
    isa_code *c = w->c;
    weave_in_reg(w, &a, 0);
    weave_in_reg(w, &b, 0);
    if (!remainder) {
        unsigned reg = result_of(w, a, b, hint);
        a64_div(c, is_signed, 8, reg, a.reg, b.reg);
        return weave_owned(reg);
    }
    unsigned reg = weave_take(w, 0, hint);
    a64_div(c, is_signed, 8, reg, a.reg, b.reg);
    a64_msub(c, 8, reg, reg, b.reg, a.reg);
    isa_label good = a64_cbz_label(c, true, 8, b.reg);
    a64_mov_ri(c, reg, 0);
    a64_bind(c, good);
    weave_drop(w, a);
    weave_drop(w, b);
    return weave_owned(reg);
}

unsigned weave_a64_compare(weaver *w, unsigned op, weave_val a, weave_val b)
{
    static const uint8_t conds[] = {A64_EQ, A64_NE, A64_LT, A64_LE, A64_GT, A64_GE, A64_LO, A64_LS, A64_HI, A64_HS};
    weave_in_reg(w, &a, 0);
    /* Of a negative number its opposite would be added, which says something else of unsigned ones: of 0 alone. */
    bool small = b.kind == WEAVE_IMM && (b.imm < 4096 || (b.imm < 1 << 24 && !(b.imm & 4095)));
    if (!small) weave_in_reg(w, &b, 0);
    weave_flags_clobber(w);
    if (small) a64_arith_ri(w->c, A64_ARITH_SUBS, 8, A64_ZR, a.reg, (int64_t)b.imm);
    else a64_arith_rr(w->c, A64_ARITH_SUBS, 8, A64_ZR, a.reg, b.reg, 0);
    weave_drop(w, a);
    weave_drop(w, b);
    return conds[op - SNIPPET_EQ];
}

weave_val weave_a64_binary(weaver *w, const snippet *s, weave_val a, weave_val b, unsigned hint)
{
    switch (s->op) {
    case SNIPPET_ADD: return add(w, A64_ARITH_ADD, a, b, hint);
    case SNIPPET_SUB: return add(w, A64_ARITH_SUB, a, b, hint);
    case SNIPPET_AND: return logic(w, A64_LOGIC_AND, a, b, hint);
    case SNIPPET_OR: return logic(w, A64_LOGIC_ORR, a, b, hint);
    case SNIPPET_XOR: return logic(w, A64_LOGIC_EOR, a, b, hint);
    case SNIPPET_MUL: return multiply(w, a, b, hint);
    case SNIPPET_DIV: return divide(w, a, b, s->is_signed, false, hint);
    case SNIPPET_MOD: return divide(w, a, b, s->is_signed, true, hint);
    case SNIPPET_SHL: return shift(w, A64_SHIFT_LSL, a, b, hint);
    case SNIPPET_SHR: return shift(w, A64_SHIFT_LSR, a, b, hint);
    default: return shift(w, A64_SHIFT_ASR, a, b, hint);
    }
}

weave_val weave_a64_unary(weaver *w, unsigned op, weave_val a, unsigned hint)
{
    weave_in_reg(w, &a, 0);
    unsigned reg = result_of(w, a, weave_imm(0), hint);
    if (op == SNIPPET_NOT) {
        a64_logic_rr(w->c, A64_LOGIC_ORN, 8, reg, A64_ZR, a.reg, 0);
    } else if (op == SNIPPET_NEG) {
        a64_arith_rr(w->c, A64_ARITH_SUB, 8, reg, A64_ZR, a.reg, 0);
    } else { /* 64 leading zeros, or fewer */
        a64_clz(w->c, 8, reg, a.reg);
        a64_shift_ri(w->c, A64_SHIFT_LSR, 8, reg, reg, 6);
    }
    return weave_owned(reg);
}

/* The timer's counter: what a process may read on every system. */
weave_val weave_a64_cycles(weaver *w)
{
    unsigned reg = weave_take(w, 0, ISA_NO_REG);
    a64_put(w->c, (uint32_t)CNTVCT | reg);
    return weave_owned(reg);
}
