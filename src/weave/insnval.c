/* Values that depend on the instruction at the point: addresses, sizes, targets, predicates. */
#include "weave/weaver.h"

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
    unsigned temp;
    const isa_mem *m = weave_mem(w, s->index, room);
    if (!m || weave_is_placed(w, m, &temp)) return false;
    uint64_t used = m->base < 64 ? 1ull << m->base : 0;
    if (m->index < 64 && !(m->bits & ISA_MEM_VECTOR_INDEX)) used |= 1ull << m->index;
    return (used & w->fx[w->at].writes) != 0;
}

/* Of an operand with one address, or of the first of consecutive elements. */
weave_val weave_address_of(weaver *w, const isa_mem *m, unsigned hint)
{
    unsigned temp;
    if (!weave_is_placed(w, m, &temp)) return w->isa->address(w, m, NULL, hint);
    unsigned r = weave_take(w, 0, hint);
    weave_temp_load(w, r, temp);
    return weave_owned(r);
}

weave_val weave_ea(weaver *w, unsigned index, unsigned hint)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, index, room);
    if (!m || m->bits & ISA_MEM_VECTOR_INDEX) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "this memory operand has no single effective address");
        return weave_imm(0);
    }
    return weave_address_of(w, m, hint);
}

weave_val weave_access_size(weaver *w, unsigned index)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, index, room);
    if (!m) return weave_imm(0);
    if (!(m->bits & ISA_MEM_VARIABLE)) return weave_imm((uint64_t)m->size * m->count);
    if (weave_here(w)->in.bits & ISA_BIT_UNKNOWN) return weave_imm(0);
    return w->isa->variable_size(w, index, m);
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
                                                    st.in_slot & ~st.in_reg,
                                                    w->isa->all & ~(st.in_slot | st.in_reg),
                                                    st.flags_slot && !st.flags_hw};
}

weave_val weave_load_program(weaver *w, weave_val at, int32_t offset, unsigned size, unsigned hint)
{
    weave_in_reg(w, &at, 0);
    unsigned reg = at.kind == WEAVE_REG ? at.reg : weave_take(w, 0, hint);
    uint32_t from = (uint32_t)w->c->at;
    w->isa->load(w->c, size, false, reg, at.reg, offset);
    weave_note_state(w, from, w->at + w->after, w->st);
    if (at.kind != WEAVE_REG) weave_drop(w, at);
    return weave_owned(reg);
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
    if (!(m->bits & ISA_MEM_VARIABLE)) return weave_load_program(w, at, 0, m->size, hint);
    return weave_load_program(w, at, w->isa->size_word, 8, hint); /* asked by variable_size only */
}

static weave_val indirect_target(weaver *w, unsigned hint)
{
    isa_operand op[ISA_MAX_OPERANDS];
    int n = w->run->isa->operands(&weave_here(w)->in, op);
    for (int i = 0; i < n; i++) {
        if (op[i].implicit) continue;
        if (op[i].kind == ISA_OPERAND_REG) return weave_reg_value(w, op[i].reg, hint);
        if (op[i].kind == ISA_OPERAND_MEM) return weave_load_program(w, weave_ea(w, op[i].mem, hint), 0, 8, hint);
    }
    weave_fail(w, INL_ERR_UNSUPPORTED, "the branch has no target that could be computed");
    return weave_imm(0);
}

weave_val weave_target(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    switch (in->flow) {
    case ISA_FLOW_RETURN: return w->isa->return_target(w, in, hint);
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND: return indirect_target(w, hint);
    default: return weave_imm(in->target);
    }
}

static weave_val set_if_program(weaver *w, unsigned cond, unsigned hint)
{
    weave_flags_to_hw(w);
    return weave_set_if(w, cond, hint);
}

weave_val weave_taken(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    if (in->flow == ISA_FLOW_COND) return set_if_program(w, in->cond, hint);
    if (in->flow == ISA_FLOW_COND_REG) return w->isa->taken(w, in, hint);
    return weave_imm(1);
}

weave_val weave_executes(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    int cond = w->isa->predicate(in);
    if (cond >= 0) return set_if_program(w, (unsigned)cond, hint);
    return in->bits & ISA_BIT_REP ? w->isa->rep_executes(w, in, hint) : weave_imm(1);
}

weave_val weave_rep_count(weaver *w, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    return in->bits & ISA_BIT_REP ? w->isa->rep_count(w, in, hint) : weave_imm(1);
}

/* Integer arguments by the ABI. */
weave_val weave_arg(weaver *w, const snippet *s, unsigned hint)
{
    const weave_abi *abi = &w->isa->abi;
    if (s->index < abi->arg_count) return weave_reg_value(w, abi->args[s->index], hint);
    unsigned flow = weave_here(w)->in.flow;
    bool at_call = flow == ISA_FLOW_CALL || flow == ISA_FLOW_CALL_IND || weave_here(w)->was_call;
    return w->isa->stack_argument(w, s->index - abi->arg_count, at_call, hint);
}
