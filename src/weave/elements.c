/* Elements of masked memory operands: gathers, scatters, masked moves, compress and expand.
 *
 * Which elements an instruction accesses, and where a gather's lie, is told by a mask and an index
 * register as they are BEFORE the instruction, which itself may change them (a gather clears its mask).
 * So both are stored to the frame once, in front of the instruction's first snippet, and every element
 * node, before or after the instruction, looks there.
 *
 * An instruction has at most one masked operand.
 */
#include "weave/weaver.h"

static bool has_elements(const weave_list *list)
{
    for (const weave_insert *n = list->first; n; n = n->next)
        if (snippet_has(n->code, SNIPPET_ELEMENT_EA) || snippet_has(n->code, SNIPPET_ELEMENT_ACTIVE)) return true;
    return false;
}

void weave_save_elements(weaver *w, uint32_t i)
{
    const weave_insn *insn = &w->run->insns[i];
    const unsigned both = ISA_BIT_MEM | ISA_BIT_FP;
    isa_mem mem[ISA_MAX_MEM];
    if ((insn->in.bits & both) != both) return;
    if (!has_elements(&insn->before) && !has_elements(&insn->after)) return;
    int n = w->run->isa->memory(&insn->in, mem);
    for (int k = 0; k < n; k++)
        if (mem[k].mask) w->isa->save_masks(w, &insn->in, &mem[k]);
}

static const isa_mem *operand(weaver *w, const snippet *s, isa_mem room[ISA_MAX_MEM])
{
    const isa_mem *m = weave_mem(w, s->index, room);
    if (m && s->value < (m->mask ? m->elements : 1u)) return m;
    weave_fail(w, INL_ERR_UNSUPPORTED, "the memory operand has no such element");
    return NULL;
}

/* Of elements one behind the other. */
static weave_val with_offset(weaver *w, weave_val v, int32_t offset, unsigned hint)
{
    if (!offset) return v;
    if (v.kind == WEAVE_IMM) return weave_imm(v.imm + (uint64_t)offset);
    unsigned from = v.reg;
    if (v.kind == WEAVE_REG && w->lock[from] == 1) {
        w->isa->add(w->c, from, from, offset);
        return v;
    }
    unsigned reg = weave_take(w, 0, hint);
    w->isa->add(w->c, reg, from, offset);
    weave_drop(w, v);
    return weave_owned(reg);
}

weave_val weave_element_ea(weaver *w, const snippet *s, unsigned hint)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = operand(w, s, room);
    if (!m) return weave_imm(0);
    if (!m->index_size) return with_offset(w, weave_address_of(w, m, hint), (int32_t)s->value * m->element, hint);
    weave_val index = w->isa->element_index(w, m, (unsigned)s->value);
    return w->isa->address(w, m, &index, hint);
}

int weave_element_cond(weaver *w, const snippet *s)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = operand(w, s, room);
    return m && m->mask ? w->isa->element_condition(w, m, (unsigned)s->value) : -1;
}

weave_val weave_element_active(weaver *w, const snippet *s, unsigned hint)
{
    int cond = weave_element_cond(w, s);
    return cond < 0 ? weave_imm(1) : weave_set_if(w, (unsigned)cond, hint);
}
