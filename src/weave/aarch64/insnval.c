/* Values that depend on the instruction at the point: addresses, targets, whether a branch is taken. None touches the
 * flags. No instruction repeats itself, is carried out on a condition only (a conditional select always is), or faults
 * for other reasons than memory: division has an answer for everything. */
#include "weave/aarch64/machine.h"

enum {
    DCZID = 0xd53b00e0,  /* mrs x0, dczid_el0: log2 of the words that dc zva clears */
    ZVA = 0xd50b7420,    /* dc zva, x0 */
    ON_BIT = 0x36000000, /* tbz, tbnz */
    NONZERO = 1 << 24,   /* of cbz and tbz: the opposite */
    ALL_64 = 1u << 31,   /* of cbz: the whole register */
};

bool weave_a64_may_fault(const isa_insn *in)
{
    (void)in;
    return false;
}

cfg_need weave_a64_branch_reads(const isa_insn *in)
{
    if (in->flow == ISA_FLOW_COND) return (cfg_need){0, a64_cond_flags(in->cond)};
    unsigned reg = a64_word(in) & 31;
    if (in->flow == ISA_FLOW_COND_REG && reg != 31) return (cfg_need){WEAVE_BIT(reg), 0};
    return (cfg_need){0, 0};
}

cfg_need weave_a64_predicate_reads(const isa_insn *in)
{
    (void)in;
    return (cfg_need){0, 0};
}

int weave_a64_predicate(const isa_insn *in)
{
    (void)in;
    return -1;
}

weave_val weave_a64_rep(weaver *w, const isa_insn *in, unsigned hint)
{
    (void)in, (void)hint;
    weave_fail(w, INL_ERR_UNSUPPORTED, "no instruction repeats itself here");
    return weave_imm(0);
}

/* cbz and cbnz: a register without a bit set has all its bits in front of the first one. */
weave_val weave_a64_taken(weaver *w, const isa_insn *in, unsigned hint)
{
    uint32_t word = a64_word(in);
    bool on_bit = (word & 0x7e000000) == ON_BIT, nonzero = word & NONZERO;
    unsigned reg = word & 31, width = word & ALL_64 ? 8 : 4, bit = (word >> 31 << 5) | (word >> 19 & 31);
    if (reg == 31) return weave_imm(!nonzero);
    weave_val v = weave_reg_value(w, reg, hint);
    unsigned dst = v.kind == WEAVE_REG ? v.reg : weave_take(w, 0, hint);
    if (dst != v.reg) weave_drop(w, v);
    if (on_bit) a64_shift_ri(w->c, A64_SHIFT_LSR, 8, dst, v.reg, bit);
    else a64_clz(w->c, width, dst, v.reg);
    if (on_bit) a64_logic_ri(w->c, A64_LOGIC_AND, 8, dst, dst, 1);
    else a64_shift_ri(w->c, A64_SHIFT_LSR, 8, dst, dst, width == 8 ? 6 : 5);
    if (on_bit != nonzero) a64_logic_ri(w->c, A64_LOGIC_EOR, 8, dst, dst, 1);
    return weave_owned(dst);
}

/* ret and its kin name a register, but those that check the address besides: they take the link register. */
weave_val weave_a64_return_target(weaver *w, const isa_insn *in, unsigned hint)
{
    isa_operand o[ISA_MAX_OPERANDS];
    int n = w->run->isa->operands(in, o);
    for (int i = 0; i < n; i++)
        if (o[i].kind == ISA_OPERAND_REG && o[i].reg < A64_SP) return weave_reg_value(w, o[i].reg, hint);
    return weave_reg_value(w, A64_LR, hint);
}

weave_val weave_a64_return_address(weaver *w, unsigned hint) { return weave_reg_value(w, A64_LR, hint); }

/* At the stack pointer, at a call as at the entry. */
weave_val weave_a64_stack_argument(weaver *w, unsigned index, bool at_call, unsigned hint)
{
    (void)at_call;
    unsigned reg = weave_take(w, 0, hint);
    a64_load(w->c, 8, reg, a64_at(A64_SP, 8 * (int32_t)index));
    return weave_owned(reg);
}

/* --- addresses --- */

static weave_val constant_address(weaver *w, const isa_mem *m, unsigned hint)
{
    if (!(m->bits & ISA_MEM_PCREL && w->opt->pc_relative)) return weave_imm((uint64_t)m->disp);
    unsigned reg = weave_take(w, 0, hint);
    a64_address(w->c, reg, (uint64_t)m->disp);
    return weave_owned(reg);
}

/* A result may take the place of an operand that is given up. */
static unsigned place_of(weaver *w, weave_val v, unsigned hint)
{
    return v.kind == WEAVE_REG && w->lock[v.reg] == 1 ? v.reg : weave_take(w, 0, hint);
}

static weave_val add_index(weaver *w, const isa_mem *m, weave_val base, const weave_val *given, unsigned hint)
{
    weave_val index = given ? *given : weave_reg_value(w, m->index, ISA_NO_REG);
    isa_modify how = m->index_low != 4 ? ISA_MODIFY_UXTX : m->index_signed ? ISA_MODIFY_SXTW : ISA_MODIFY_UXTW;
    unsigned shift = m->scale > 1 ? (unsigned)__builtin_ctz(m->scale) : 0;
    weave_in_reg(w, &base, 0);
    weave_in_reg(w, &index, 0);
    unsigned reg = place_of(w, base, hint);
    a64_arith_ext(w->c, A64_ARITH_ADD, reg, base.reg, index.reg, how, shift);
    if (base.kind != WEAVE_REG || base.reg != reg) weave_drop(w, base);
    weave_drop(w, index);
    return weave_owned(reg);
}

static weave_val add_offset(weaver *w, weave_val v, int64_t offset, unsigned hint)
{
    if (!offset) return v;
    if (v.kind == WEAVE_IMM) return weave_imm(v.imm + (uint64_t)offset);
    unsigned reg = place_of(w, v, hint);
    if (!a64_add_ri(w->c, reg, v.reg, offset)) w->c->unreachable = true; /* no operand has so much */
    if (v.kind != WEAVE_REG || v.reg != reg) weave_drop(w, v);
    return weave_owned(reg);
}

weave_val weave_a64_address(weaver *w, const isa_mem *m, const weave_val *index, unsigned hint)
{
    bool no_base = m->base == ISA_NO_REG || m->base == A64_ZR;
    bool no_index = m->index == ISA_NO_REG || m->index == A64_ZR;
    if (no_base && no_index) return constant_address(w, m, hint);
    weave_val v = no_base ? weave_imm(0) : weave_reg_value(w, m->base, hint);
    if (!no_index) v = add_index(w, m, v, index, hint);
    return add_offset(w, v, m->disp, hint);
}

/* dc zva clears as much as the processor says. */
weave_val weave_a64_variable_size(weaver *w, unsigned operand, const isa_mem *m)
{
    (void)operand, (void)m;
    const isa_insn *in = &weave_here(w)->in;
    if ((a64_word(in) & ~31u) != ZVA) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "the size of this access depends on the state: it cannot be told yet");
        return weave_imm(0);
    }
    unsigned reg = weave_take(w, 0, ISA_NO_REG), four = weave_take(w, 0, ISA_NO_REG);
    a64_put(w->c, (uint32_t)DCZID | reg);
    a64_logic_ri(w->c, A64_LOGIC_AND, 8, reg, reg, 15);
    a64_mov_ri(w->c, four, 4);
    a64_shift_rr(w->c, A64_SHIFT_LSL, 8, reg, four, reg);
    weave_unlock(w, four);
    return weave_owned(reg);
}

/* --- elements: none of the instructions that are known has a mask --- */

static const char no_masks[] = "masked operands are not supported for this instruction set";

void weave_a64_save_masks(weaver *w, const isa_insn *in, const isa_mem *m)
{
    (void)in, (void)m;
    weave_fail(w, INL_ERR_UNSUPPORTED, no_masks);
}

weave_val weave_a64_element_index(weaver *w, const isa_mem *m, unsigned element)
{
    (void)m, (void)element;
    weave_fail(w, INL_ERR_UNSUPPORTED, no_masks);
    return weave_imm(0);
}

int weave_a64_element_condition(weaver *w, const isa_mem *m, unsigned element)
{
    (void)m, (void)element;
    weave_fail(w, INL_ERR_UNSUPPORTED, no_masks);
    return -1;
}
