/* Values that depend on the instruction at the point: addresses, sizes, targets, predicates. All are
 * computed without touching the flags, except comparisons of the count register. */
#include "weave/x86_64/vectors.h"
#include "weave/x86_64/weaver.h"

enum { COMPACTION_WORD = 520 }; /* in an image of XSAVE's: its top bit tells the form */

static weave_val owned(unsigned reg) { return (weave_val){WEAVE_REG, (uint8_t)reg, 0, 0}; }

static bool has_addr32(const isa_insn *in)
{
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x67) return true;
    return false;
}

const isa_mem *weave_mem(const weaver *w, unsigned index, isa_mem room[ISA_MAX_MEM])
{
    int n = w->run->isa->memory(&weave_here(w)->in, room);
    return (int)index < n ? &room[index] : NULL;
}

bool weave_ea_needs_before(const weaver *w, const snippet *s)
{
    const isa_insn *in = &weave_here(w)->in;
    if (s->kind == SNIPPET_REP_COUNT || s->kind == SNIPPET_EXECUTES) return (in->bits & ISA_BIT_REP) != 0;
    if (s->kind != SNIPPET_EA && s->kind != SNIPPET_MEM_VALUE && s->kind != SNIPPET_ELEMENT_EA) return false;
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, s->index, room);
    if (!m) return false;
    uint64_t used = m->base < 64 ? 1ull << m->base : 0;
    if (m->index < 64 && !(m->bits & ISA_MEM_VECTOR_INDEX)) used |= 1ull << m->index;
    return (used & w->fx[w->at].writes) != 0;
}

/* base + index * scale + disp, the segment not yet added; `given` is the index when it is a value */
static weave_val offset_part(weaver *w, const isa_mem *m, const weave_val *given, unsigned hint)
{
    if (m->bits & ISA_MEM_PCREL && w->opt->pc_relative) {
        unsigned reg = weave_take(w, 0, hint);
        x86_lea(w->c, reg, x86_rip((uint64_t)m->disp));
        return owned(reg);
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
    return owned(reg);
}

weave_val weave_ea(weaver *w, unsigned index, unsigned hint)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, index, room);
    if (!m || m->bits & ISA_MEM_VECTOR_INDEX) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "this memory operand has no single effective address");
        return weave_imm(0);
    }
    return weave_address(w, m, NULL, hint);
}

weave_val weave_address(weaver *w, const isa_mem *m, const weave_val *index, unsigned hint)
{
    weave_val v = offset_part(w, m, index, hint);
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

static weave_val state_size(weaver *w, uint32_t operand)
{
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

weave_val weave_access_size(weaver *w, unsigned index)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, index, room);
    if (!m) return weave_imm(0);
    if (!(m->bits & ISA_MEM_VARIABLE)) return weave_imm((uint64_t)m->size * m->count);
    if (weave_here(w)->in.bits & ISA_BIT_UNKNOWN) return weave_imm(0);
    return state_size(w, index);
}

/* A load that may fault as the instruction itself would: its state is put on record. */
static void load_program(weaver *w, unsigned size, unsigned reg, x86_addr at)
{
    uint32_t from = (uint32_t)w->c->at;
    x86_load(w->c, size, reg, at);
    weave_note_state(w, from, w->at + w->after, w->st);
}

void weave_note_state(weaver *w, uint32_t from, uint32_t index, weave_state st)
{
    weave_output *out = w->out;
    if (out->fault_count == w->fault_room) {
        uint32_t room = w->fault_room ? 2 * w->fault_room : 8;
        weave_fault *bigger = inl_arena_alloc(w->run->arena, room * sizeof *bigger);
        if (!bigger) {
            weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
            return;
        }
        for (uint32_t i = 0; i < out->fault_count; i++) bigger[i] = out->faults[i];
        out->faults = bigger;
        w->fault_room = room;
    }
    out->faults[out->fault_count++] = (weave_fault){from,
                                                    (uint32_t)w->c->at,
                                                    index,
                                                    st.in_slot & (uint16_t)~st.in_reg,
                                                    (uint16_t) ~(st.in_slot | st.in_reg),
                                                    st.flags_slot && !st.flags_hw};
}

static weave_val load_at(weaver *w, weave_val at, int32_t offset, unsigned size, unsigned hint)
{
    weave_in_reg(w, &at, 0);
    unsigned reg = at.kind == WEAVE_REG ? at.reg : weave_take(w, 0, hint);
    load_program(w, size, reg, x86_at(at.reg, offset));
    if (at.kind != WEAVE_REG) weave_drop(w, at);
    return owned(reg);
}

weave_val weave_mem_value(weaver *w, const snippet *s, unsigned hint)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, s->index, room);
    weave_val at;
    if (!m || m->size > 8) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "this memory operand has no value of at most 8 bytes");
        return weave_imm(0);
    }
    if (!weave_saved_value(w, s, hint, &at)) at = weave_ea(w, s->index, hint);
    if (!(m->bits & ISA_MEM_VARIABLE)) return load_at(w, at, 0, m->size, hint);
    return load_at(w, at, COMPACTION_WORD, 8, hint); /* asked by state_size only */
}

static weave_val indirect_target(weaver *w, unsigned hint)
{
    isa_operand op[ISA_MAX_OPERANDS];
    int n = w->run->isa->operands(&weave_here(w)->in, op);
    for (int i = 0; i < n; i++) {
        if (op[i].implicit) continue;
        if (op[i].kind == ISA_OPERAND_REG) return weave_reg_value(w, op[i].reg, hint);
        if (op[i].kind == ISA_OPERAND_MEM) return load_at(w, weave_ea(w, op[i].mem, hint), 0, 8, hint);
    }
    weave_fail(w, INL_ERR_UNSUPPORTED, "the branch has no target that could be computed");
    return weave_imm(0);
}

weave_val weave_target(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    switch (in->flow) {
    case ISA_FLOW_RETURN: return load_at(w, weave_reg_value(w, X86_RSP, hint), 0, 8, hint);
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND: return indirect_target(w, hint);
    default: return weave_imm(in->target);
    }
}

static weave_val set_if(weaver *w, unsigned cond, unsigned hint)
{
    unsigned reg = weave_take(w, 0, hint);
    x86_setcc(w->c, cond, reg);
    x86_movzx_rr(w->c, 1, reg, reg);
    return owned(reg);
}

static weave_val set_if_program(weaver *w, unsigned cond, unsigned hint)
{
    weave_flags_to_hw(w);
    return set_if(w, cond, hint);
}

/* Whether rcx (ecx with an address-size prefix) compares with `with` as `cond` says. */
static weave_val compare_rcx(weaver *w, int32_t with, unsigned cond, unsigned hint)
{
    unsigned width = has_addr32(&weave_here(w)->in) ? 4 : 8;
    weave_val v = weave_reg_value(w, X86_RCX, ISA_NO_REG);
    weave_flags_clobber(w);
    x86_alu_ri(w->c, X86_CMP, width, v.reg, with);
    weave_drop(w, v);
    return set_if(w, cond, hint);
}

static weave_val taken_on_register(weaver *w, const isa_insn *in, unsigned hint)
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

weave_val weave_taken(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    if (in->flow == ISA_FLOW_COND) return set_if_program(w, in->cond, hint);
    if (in->flow == ISA_FLOW_COND_REG) return taken_on_register(w, in, hint);
    return weave_imm(1);
}

int weave_predicate_cond(const isa_insn *in)
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

weave_val weave_executes(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    int cond = weave_predicate_cond(in);
    if (cond >= 0) return set_if_program(w, (unsigned)cond, hint);
    if (in->bits & ISA_BIT_REP) return compare_rcx(w, 0, X86_NE, hint);
    return weave_imm(1);
}

weave_val weave_rep_count(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    if (!(in->bits & ISA_BIT_REP)) return weave_imm(1);
    weave_val v = weave_reg_value(w, X86_RCX, hint);
    if (!has_addr32(in)) return v;
    weave_own(w, &v, 0, hint);
    x86_movzx_rr(w->c, 4, v.reg, v.reg);
    return v;
}

/* Integer arguments by the ABI. On the stack they begin behind the return address at a procedure's
 * entry, and at the stack pointer at a call instruction. */
weave_val weave_arg(weaver *w, const snippet *s, unsigned hint)
{
    static const uint8_t regs[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9};
    if (s->index < 6) return weave_reg_value(w, regs[s->index], hint);
    unsigned flow = weave_here(w)->in.flow;
    bool call = flow == ISA_FLOW_CALL || flow == ISA_FLOW_CALL_IND;
    int32_t disp = 8 * ((int32_t)s->index - 6 + !call);
    unsigned reg = weave_take(w, 0, hint);
    x86_load(w->c, 8, reg, x86_at(X86_RSP, disp));
    return owned(reg);
}
