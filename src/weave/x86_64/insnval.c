/* Values that depend on the instruction at the point: addresses, sizes, targets, predicates. All are
 * computed without touching the flags, except comparisons of the count register and the places of numbered bits. */
#include "weave/x86_64/vectors.h"
#include "weave/x86_64/machine.h"

static bool has_addr32(const isa_insn *in)
{
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x67) return true;
    return false;
}

/* base + index * scale + disp, the segment not yet added; `given` is the index when it is a value */
static weave_val offset_part(weaver *w, const isa_mem *m, const weave_val *given, unsigned hint)
{
    if (m->bits & ISA_MEM_PCREL && w->opt->pc_relative) {
        unsigned reg = weave_take(w, 0, hint);
        x86_lea(w->c, reg, x86_rip((uint64_t)m->disp));
        return weave_owned(reg);
    }
    if (m->base == ISA_NO_REG && m->index == ISA_NO_REG) return weave_imm((uint64_t)m->disp);
    if (m->index == ISA_NO_REG && m->disp == 0) return weave_reg_value(w, m->base, hint);
    weave_val base = {WEAVE_IMM, 0, 0, 0}, index = {WEAVE_IMM, 0, 0, 0};
    x86_addr at = {ISA_NO_REG, ISA_NO_REG, m->scale ? m->scale : 1, 0, false, m->disp};
    if (m->base != ISA_NO_REG) {
        base = weave_reg_value(w, m->base, ISA_NO_REG);
        at.base = base.reg;
    }
    if (m->index != ISA_NO_REG) {
        index = given ? *given : weave_reg_value(w, m->index, ISA_NO_REG);
        if (m->bits & ISA_MEM_INDEX8) {
            weave_own(w, &index, 0, ISA_NO_REG);
            x86_movzx_rr(w->c, 1, index.reg, index.reg);
        }
        at.index = index.reg;
    }
    unsigned reg = base.kind == WEAVE_REG ? base.reg : index.kind == WEAVE_REG ? index.reg : weave_take(w, 0, hint);
    x86_lea(w->c, reg, at);
    if (!(base.kind == WEAVE_REG && base.reg == reg)) weave_drop(w, base);
    if (!(index.kind == WEAVE_REG && index.reg == reg)) weave_drop(w, index);
    return weave_owned(reg);
}

/* Of a string of bits that begins at `v` the word that holds the one which the register operand numbers, from there up
 * or down. */
static weave_val word_of_bit(weaver *w, const isa_mem *m, weave_val v, unsigned hint)
{
    isa_operand op[ISA_MAX_OPERANDS];
    int n = w->run->isa->operands(&weave_here(w)->in, op), k = 0;
    while (k < n && op[k].kind != ISA_OPERAND_REG) k++;
    if (k == n) return v;
    snippet number = {.kind = SNIPPET_REG, .reg = op[k].reg};
    snippet bit = {.kind = SNIPPET_UNARY, .op = SNIPPET_EXTEND, .size = (uint8_t)m->size, .is_signed = 1, .a = &number};
    snippet three = {.kind = SNIPPET_CONST, .value = 3}, word = {.kind = SNIPPET_CONST, .value = -(uint64_t)m->size};
    snippet byte = {.kind = SNIPPET_BINARY, .op = SNIPPET_SAR, .a = &bit, .b = &three};
    snippet first = {.kind = SNIPPET_BINARY, .op = SNIPPET_AND, .a = &byte, .b = &word};
    weave_own(w, &v, 0, hint);
    weave_val distance = weave_eval(w, &first, ISA_NO_REG);
    weave_in_reg(w, &distance, 0);
    x86_lea(w->c, v.reg, x86_indexed(v.reg, distance.reg, 1, 0));
    weave_drop(w, distance);
    return v;
}

weave_val weave_x86_address(weaver *w, const isa_mem *m, const weave_val *index, unsigned hint)
{
    weave_val v = offset_part(w, m, index, hint);
    if (m->bits & ISA_MEM_BIT_OFFSET) v = word_of_bit(w, m, v, hint);
    if (m->bits & ISA_MEM_ADDR32) {
        if (v.kind == WEAVE_IMM) {
            v.imm = (uint32_t)v.imm;
        } else {
            weave_own(w, &v, 0, hint);
            x86_movzx_rr(w->c, 4, v.reg, v.reg);
        }
    }
    if (m->segment == X86_SEG_NONE) return v;
    weave_own(w, &v, 0, hint);
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    if (m->segment == X86_SEG_FS) x86_rdfsbase(w->c, t);
    else x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(app_gs_base)));
    x86_lea(w->c, v.reg, x86_indexed(v.reg, t, 1, 0));
    weave_unlock(w, t);
    return v;
}

/* XSAVE and its kin, and tiles: their size depends on the state, on the processor at hand. */
static unsigned state_form(const isa_insn *in)
{
    unsigned op = in->raw[in->opcode_at], field = in->raw[in->modrm_at] >> 3 & 7;
    if (x86_encoding_of(in) != X86_LEGACY) return WEAVE_STATE_TILE;
    if ((op == 0xae && field == 5) || (op == 0xc7 && field == 3)) return WEAVE_STATE_RESTORED;
    return op == 0xc7 ? WEAVE_STATE_COMPACTED : WEAVE_STATE_STANDARD;
}

/* The number of the tile is where other instructions name a vector register. */
static unsigned tile_number(const isa_insn *in) { return in->raw[in->modrm_at] >> 3 & 7; }

weave_val weave_x86_variable_size(weaver *w, unsigned operand, const isa_mem *m)
{
    (void)m;
    const isa_insn *in = &weave_here(w)->in;
    unsigned form = state_form(in);
    snippet low = {.kind = SNIPPET_REG, .reg = X86_RAX}, high = {.kind = SNIPPET_REG, .reg = X86_RDX};
    snippet which = {.kind = SNIPPET_CONST, .value = form}, header = {.kind = SNIPPET_CONST};
    if (form == WEAVE_STATE_TILE) low = (snippet){.kind = SNIPPET_CONST, .value = tile_number(in)};
    if (form == WEAVE_STATE_RESTORED) header = (snippet){.kind = SNIPPET_MEM_VALUE, .index = operand};
    const snippet *args[] = {&low, &high, &which, &header};
    snippet call = {.kind = SNIPPET_CALL, .nargs = 4, .args = args, .fn = (void (*)(void))weave_state_bytes};
    return weave_call(w, &call, true);
}

/* The address that a return takes lies on the stack. */
weave_val weave_x86_return_target(weaver *w, const isa_insn *in, unsigned hint)
{
    (void)in;
    return weave_load_program(w, weave_reg_value(w, X86_RSP, hint), 0, 8, hint);
}

weave_val weave_x86_return_address(weaver *w, unsigned hint)
{
    return weave_load(w, weave_reg_value(w, X86_RSP, hint), 0, 8, false, hint);
}

/* Behind the return address at a procedure's entry, at the stack pointer at a call instruction. */
weave_val weave_x86_stack_argument(weaver *w, unsigned index, bool at_call, unsigned hint)
{
    unsigned reg = weave_take(w, 0, hint);
    x86_load(w->c, 8, reg, x86_at(X86_RSP, 8 * ((int32_t)index + !at_call)));
    return weave_owned(reg);
}

static weave_val set_if_program(weaver *w, unsigned cond, unsigned hint)
{
    weave_flags_to_hw(w);
    return weave_set_if(w, cond, hint);
}

/* Whether rcx (ecx with an address-size prefix) compares with `with` as `cond` says. */
static weave_val compare_rcx(weaver *w, int32_t with, unsigned cond, unsigned hint)
{
    unsigned width = has_addr32(&weave_here(w)->in) ? 4 : 8;
    weave_val v = weave_reg_value(w, X86_RCX, ISA_NO_REG);
    weave_flags_clobber(w);
    x86_alu_ri(w->c, X86_CMP, width, v.reg, with);
    weave_drop(w, v);
    return weave_set_if(w, cond, hint);
}

weave_val weave_x86_taken(weaver *w, const isa_insn *in, unsigned hint)
{
    uint8_t op = in->raw[in->opcode_at];
    if (op == 0xe3) return compare_rcx(w, 0, X86_E, hint);
    if (op == 0xe2) return compare_rcx(w, 1, X86_NE, hint);
    weave_val zero = set_if_program(w, op == 0xe1 ? X86_E : X86_NE, hint);
    weave_val more = compare_rcx(w, 1, X86_NE, ISA_NO_REG);
    weave_flags_clobber(w);
    x86_alu_rr(w->c, X86_AND, 4, zero.reg, more.reg);
    weave_drop(w, more);
    return zero;
}

/* loop, jrcxz: to the code behind a jump that is taken otherwise */
isa_label weave_x86_branch_unless_taken(weaver *w, const isa_insn *in)
{
    uint8_t bytes[16];
    unsigned len = in->len;
    for (unsigned k = 0; k < len; k++) bytes[k] = in->raw[k];
    bytes[len - 1] = 5;
    x86_bytes(w->c, bytes, len);
    return x86_jmp_label(w->c, 4);
}

cfg_need weave_x86_branch_reads(const isa_insn *in)
{
    if (in->flow == ISA_FLOW_COND) return (cfg_need){0, x86_cond_flags(in->cond)};
    if (in->flow == ISA_FLOW_COND_REG) return (cfg_need){WEAVE_BIT(X86_RCX), X86_ZF};
    return (cfg_need){0, 0};
}

int weave_x86_predicate(const isa_insn *in)
{
    static const uint8_t fcmov[] = {X86_B, X86_E, X86_BE, X86_P};
    uint8_t op = in->raw[in->opcode_at];
    if (!(in->bits & ISA_BIT_PREDICATED) || in->bits & ISA_BIT_REP || !in->opcode_at) {
        bool x87 = in->bits & ISA_BIT_PREDICATED && (op == 0xda || op == 0xdb);
        if (!x87 || !in->modrm_at) return -1;
    }
    uint8_t modrm = in->raw[in->modrm_at];
    if ((op == 0xda || op == 0xdb) && modrm >= 0xc0 && modrm < 0xe0) return fcmov[modrm >> 3 & 3] ^ (op & 1);
    if (in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f && (op & 0xf0) == 0x40) return op & 15;
    return -1;
}

cfg_need weave_x86_predicate_reads(const isa_insn *in)
{
    int cond = weave_x86_predicate(in);
    if (cond >= 0) return (cfg_need){0, x86_cond_flags((unsigned)cond)};
    return (cfg_need){in->bits & ISA_BIT_REP ? WEAVE_BIT(X86_RCX) : 0, 0};
}

weave_val weave_x86_rep_executes(weaver *w, const isa_insn *in, unsigned hint)
{
    (void)in;
    return compare_rcx(w, 0, X86_NE, hint);
}

weave_val weave_x86_rep_count(weaver *w, const isa_insn *in, unsigned hint)
{
    weave_val v = weave_reg_value(w, X86_RCX, hint);
    if (!has_addr32(in)) return v;
    weave_own(w, &v, 0, hint);
    x86_movzx_rr(w->c, 4, v.reg, v.reg);
    return v;
}

/* div, idiv */
bool weave_x86_may_fault(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    return (op == 0xf6 || op == 0xf7) && in->modrm_at && (in->raw[in->modrm_at] >> 3 & 7) >= 6;
}
