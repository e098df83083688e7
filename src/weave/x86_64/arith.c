/* Arithmetic and comparison. What can be done with lea is, so that flags stay untouched. */
#include "weave/x86_64/machine.h"

static bool fits32(uint64_t v) { return v == (uint64_t)(int64_t)(int32_t)v; }

static weave_val add(weaver *w, weave_val a, weave_val b, unsigned hint)
{
    if (a.kind == WEAVE_IMM) {
        weave_val t = a;
        a = b, b = t;
    }
    weave_in_reg(w, &a, 0);
    bool small = b.kind == WEAVE_IMM && fits32(b.imm);
    if (!small) weave_in_reg(w, &b, 0);
    if (!small && b.reg == X86_RSP) { /* no index */
        weave_val t = a;
        a = b, b = t;
        if (b.reg == X86_RSP) weave_own(w, &b, 0, hint);
    }
    unsigned reg = a.kind == WEAVE_REG ? a.reg : !small && b.kind == WEAVE_REG ? b.reg : weave_take(w, 0, hint);
    if (small) x86_lea(w->c, reg, x86_at(a.reg, (int32_t)b.imm));
    else x86_lea(w->c, reg, x86_indexed(a.reg, b.reg, 1, 0));
    if (reg != a.reg || a.kind != WEAVE_REG) weave_drop(w, a);
    if (!small && (reg != b.reg || b.kind != WEAVE_REG)) weave_drop(w, b);
    return weave_owned(reg);
}

static weave_val alu(weaver *w, x86_alu op, weave_val a, weave_val b, unsigned hint)
{
    weave_own(w, &a, 0, hint);
    bool small = b.kind == WEAVE_IMM && fits32(b.imm);
    if (!small) weave_in_reg(w, &b, 0);
    weave_flags_clobber(w);
    if (small) x86_alu_ri(w->c, op, 8, a.reg, (int64_t)b.imm);
    else x86_alu_rr(w->c, op, 8, a.reg, b.reg);
    weave_drop(w, b);
    return a;
}

static weave_val multiply(weaver *w, weave_val a, weave_val b, unsigned hint)
{
    if (a.kind == WEAVE_IMM) {
        weave_val t = a;
        a = b, b = t;
    }
    weave_own(w, &a, 0, hint);
    weave_in_reg(w, &b, 0);
    weave_flags_clobber(w);
    x86_imul_rr(w->c, 8, a.reg, b.reg);
    weave_drop(w, b);
    return a;
}

/* Shifted left, flags kept. */
static weave_val scaled(weaver *w, weave_val a, unsigned count, unsigned hint)
{
    weave_in_reg(w, &a, 0);
    unsigned from = a.reg, reg = from;
    if (a.kind != WEAVE_REG || w->lock[from] != 1 || from == X86_RSP) reg = weave_take(w, 0, hint);
    if (from == X86_RSP) { /* no index */
        x86_mov_rr(w->c, 8, reg, from);
        from = reg;
    }
    if (reg != a.reg) weave_drop(w, a);
    for (unsigned left = count, now; left; left -= now, from = reg) {
        now = left < 3 ? left : 3;
        x86_lea(w->c, reg, x86_indexed(ISA_NO_REG, from, 1u << now, 0));
    }
    return weave_owned(reg);
}

static weave_val shift(weaver *w, x86_shift op, weave_val a, weave_val b, unsigned hint)
{
    isa_regs rcx = WEAVE_BIT(X86_RCX);
    if (b.kind == WEAVE_IMM) {
        unsigned count = b.imm & 63;
        bool scales = op == X86_SHL && count >= 1 && (count <= 3 || (count <= 6 && !weave_flags_free(w)));
        if (scales) return scaled(w, a, count, hint);
        weave_own(w, &a, 0, hint);
        if (count) {
            weave_flags_clobber(w);
            x86_shift_ri(w->c, op, 8, a.reg, count);
        }
        return a;
    }
    weave_own(w, &a, rcx, hint == X86_RCX ? ISA_NO_REG : hint);
    weave_in_reg(w, &b, 0);
    weave_flags_clobber(w);
    if (b.reg == X86_RCX) {
        x86_shift_cl(w->c, op, 8, a.reg);
    } else {
        weave_fixed cl = weave_fixed_begin(w, X86_RCX);
        x86_mov_rr(w->c, 4, X86_RCX, b.reg);
        x86_shift_cl(w->c, op, 8, a.reg);
        weave_fixed_end(w, cl);
    }
    weave_drop(w, b);
    return a;
}

/* rdx:rax divided by `by`, guarded: by zero everything is 0, by -1 nothing faults. */
static void guarded_divide(x86_code *c, unsigned by, bool is_signed)
{
    x86_label minus = {0, 0};
    x86_alu_rr(c, X86_XOR, 4, X86_RDX, X86_RDX);
    x86_test_rr(c, 8, by, by);
    x86_label zero = x86_jcc_label(c, X86_E, 1);
    if (is_signed) {
        static const uint8_t cqo[] = {0x48, 0x99};
        x86_alu_ri(c, X86_CMP, 8, by, -1);
        minus = x86_jcc_label(c, X86_E, 1);
        x86_bytes(c, cqo, sizeof cqo);
    }
    x86_div_r(c, 8, by, is_signed);
    x86_label done = x86_jmp_label(c, 1), done_too = {0, 0};
    if (is_signed) {
        x86_bind(c, minus);
        x86_neg(c, 8, X86_RAX);
        done_too = x86_jmp_label(c, 1);
    }
    x86_bind(c, zero);
    x86_mov_ri(c, X86_RAX, 0);
    if (is_signed) x86_bind(c, done_too);
    x86_bind(c, done);
}

static weave_val divide(weaver *w, weave_val a, weave_val b, bool is_signed, bool remainder)
{
    unsigned ta = weave_temp_take(w), tb = weave_temp_take(w);
    weave_in_reg(w, &a, 0);
    weave_temp_store(w, ta, a.reg);
    weave_drop(w, a);
    weave_in_reg(w, &b, 0);
    x86_store(w->c, 8, weave_temp_addr(tb), b.reg);
    weave_drop(w, b);
    weave_flags_clobber(w);
    weave_fixed rax = weave_fixed_begin(w, X86_RAX), rdx = weave_fixed_begin(w, X86_RDX);
    unsigned by = weave_take(w, 0, ISA_NO_REG);
    x86_load(w->c, 8, X86_RAX, weave_temp_addr(ta));
    x86_load(w->c, 8, by, weave_temp_addr(tb));
    guarded_divide(w->c, by, is_signed);
    x86_store(w->c, 8, weave_temp_addr(ta), remainder ? X86_RDX : X86_RAX);
    weave_unlock(w, by);
    weave_fixed_end(w, rdx);
    weave_fixed_end(w, rax);
    weave_temp_drop(w, tb);
    weave_val v = {WEAVE_TEMP, 0, (uint8_t)ta, 0};
    weave_in_reg(w, &v, 0);
    return v;
}

unsigned weave_x86_compare(weaver *w, unsigned op, weave_val a, weave_val b)
{
    static const uint8_t conds[] = {X86_E, X86_NE, X86_L, X86_LE, X86_G, X86_GE, X86_B, X86_BE, X86_A, X86_AE};
    weave_in_reg(w, &a, 0);
    bool small = b.kind == WEAVE_IMM && fits32(b.imm);
    if (!small) weave_in_reg(w, &b, 0);
    weave_flags_clobber(w);
    if (small && b.imm == 0) x86_test_rr(w->c, 8, a.reg, a.reg);
    else if (small) x86_alu_ri(w->c, X86_CMP, 8, a.reg, (int64_t)b.imm);
    else x86_alu_rr(w->c, X86_CMP, 8, a.reg, b.reg);
    weave_drop(w, a);
    weave_drop(w, b);
    return conds[op - SNIPPET_EQ];
}

weave_val weave_x86_binary(weaver *w, const snippet *s, weave_val a, weave_val b, unsigned hint)
{
    switch (s->op) {
    case SNIPPET_ADD: return add(w, a, b, hint);
    case SNIPPET_SUB:
        if (b.kind == WEAVE_IMM && fits32(0 - b.imm)) return add(w, a, weave_imm(0 - b.imm), hint);
        return alu(w, X86_SUB, a, b, hint);
    case SNIPPET_AND: return alu(w, X86_AND, a, b, hint);
    case SNIPPET_OR: return alu(w, X86_OR, a, b, hint);
    case SNIPPET_XOR: return alu(w, X86_XOR, a, b, hint);
    case SNIPPET_MUL: return multiply(w, a, b, hint);
    case SNIPPET_DIV: return divide(w, a, b, s->is_signed, false);
    case SNIPPET_MOD: return divide(w, a, b, s->is_signed, true);
    case SNIPPET_SHL: return shift(w, X86_SHL, a, b, hint);
    case SNIPPET_SHR: return shift(w, X86_SHR, a, b, hint);
    default: return shift(w, X86_SAR, a, b, hint);
    }
}

weave_val weave_x86_unary(weaver *w, unsigned op, weave_val a, unsigned hint)
{
    if (op == SNIPPET_LNOT) {
        weave_in_reg(w, &a, 0);
        weave_flags_clobber(w);
        x86_test_rr(w->c, 8, a.reg, a.reg);
        weave_drop(w, a);
        return weave_set_if(w, X86_E, hint);
    }
    weave_own(w, &a, 0, hint);
    if (op == SNIPPET_NOT) {
        x86_not(w->c, 8, a.reg);
    } else {
        weave_flags_clobber(w);
        x86_neg(w->c, 8, a.reg);
    }
    return a;
}

/* What lies there is its own address, as the ABI has it. */
void weave_x86_thread_pointer(x86_code *c, unsigned reg)
{
    x86_load(c, 8, reg, (x86_addr){ISA_NO_REG, ISA_NO_REG, 1, X86_SEG_FS, false, 0});
}

/* The time-stamp counter. */
weave_val weave_x86_cycles(weaver *w)
{
    weave_flags_clobber(w);
    weave_fixed a = weave_fixed_begin(w, X86_RAX), d = weave_fixed_begin(w, X86_RDX);
    unsigned temp = weave_temp_take(w);
    x86_rdtsc(w->c);
    x86_shift_ri(w->c, X86_SHL, 8, X86_RDX, 32);
    x86_alu_rr(w->c, X86_OR, 8, X86_RAX, X86_RDX);
    x86_store(w->c, 8, weave_temp_addr(temp), X86_RAX);
    weave_fixed_end(w, d);
    weave_fixed_end(w, a);
    weave_val v = {WEAVE_TEMP, 0, (uint8_t)temp, 0};
    weave_in_reg(w, &v, 0);
    return v;
}
