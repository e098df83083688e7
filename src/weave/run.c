/* Points of a run: attaching snippets, with refusal of those that make no sense there. */
#include "weave/isa.h"

typedef struct point {
    const weave_insn *insn; /* NULL for a block */
    weave_where where;
    const isa *isa;
} point;

static bool is_branch(unsigned flow)
{
    return flow == ISA_FLOW_JUMP || flow == ISA_FLOW_COND || flow == ISA_FLOW_COND_REG || flow == ISA_FLOW_CALL ||
           flow == ISA_FLOW_JUMP_IND || flow == ISA_FLOW_CALL_IND || flow == ISA_FLOW_RETURN;
}

const char *weave_setting_fault(const isa *set, const isa_insn *in, const isa_mem *m)
{
    const weave_isa *w = weave_isa_of(set);
    unsigned place;
    if (in->flow != ISA_FLOW_NEXT)
        return "the address at which a transfer of control reads where it goes cannot be set";
    bool accesses = m->access & ISA_READ_WRITE && in->bits & ISA_BIT_MEM;
    if (!accesses) return "the instruction does not access this operand";
    if (m->bits & ISA_MEM_VECTOR_INDEX) return "a gather or scatter has no single address that could be set";
    if (!w || !w->placeable) return "addresses of operands cannot be set on this kind of processor yet";
    return w->placeable(in, m, &place);
}

static const char *setting_fault(const point *p, const isa_mem *m)
{
    if (p->where != WEAVE_BEFORE) return "an operand's address is set before its instruction, and nowhere else";
    return weave_setting_fault(p->isa, &p->insn->in, m);
}

static const char *memory_fault(point *p, const snippet *s)
{
    isa_mem mem[ISA_MAX_MEM];
    if (!p->insn) return "a block has no memory operands";
    int n = p->isa->memory(&p->insn->in, mem);
    if ((int)s->index >= n) return "the instruction has no such memory operand";
    const isa_mem *m = &mem[s->index];
    if (s->kind == SNIPPET_ELEMENT_EA || s->kind == SNIPPET_ELEMENT_ACTIVE)
        return s->value < (m->mask ? m->elements : 1u) ? NULL : "the memory operand has no such element";
    if (m->bits & ISA_MEM_VECTOR_INDEX && s->kind != SNIPPET_ACCESS_SIZE)
        return "a gather or scatter has no single effective address, only its elements have";
    if (s->kind == SNIPPET_SET_EA) return setting_fault(p, m);
    if (s->kind != SNIPPET_MEM_VALUE) return NULL;
    if (m->access == ISA_ADDRESS_ONLY || m->access == ISA_PREFETCH)
        return "the instruction does not access this operand";
    return m->size == 1 || m->size == 2 || m->size == 4 || m->size == 8
               ? NULL
               : "memory values of this size are not available";
}

static const char *node_fault(point *p, const snippet *s)
{
    bool branch = p->insn && is_branch(p->insn->in.flow);
    switch (s->kind) {
    case SNIPPET_EA:
    case SNIPPET_SET_EA:
    case SNIPPET_ELEMENT_EA:
    case SNIPPET_ELEMENT_ACTIVE:
    case SNIPPET_ACCESS_SIZE:
    case SNIPPET_MEM_VALUE: return memory_fault(p, s);
    case SNIPPET_TAKEN:
    case SNIPPET_TARGET: return branch ? NULL : "only a branch has a target";
    case SNIPPET_FALLTHROUGH:
    case SNIPPET_REP_COUNT:
    case SNIPPET_EXECUTES: return p->insn ? NULL : "a block has no instruction to ask about";
    default: return NULL;
    }
}

static const char *tree_fault(point *p, const snippet *s)
{
    if (!s) return NULL;
    const char *why = node_fault(p, s);
    if (!why) why = tree_fault(p, s->a);
    if (!why) why = tree_fault(p, s->b);
    if (!why) why = tree_fault(p, s->c);
    for (unsigned i = 0; !why && i < s->nargs; i++) why = tree_fault(p, s->args[i]);
    return why;
}

static const char *place_fault(const weave_run *run, weave_where where, uint32_t index)
{
    static const char gone[] =
        "its handle is gone: those of blocks and instructions end with the callback that got them";
    if (where == WEAVE_ANYWHERE || where == WEAVE_HEAD) return index < run->block_count ? NULL : gone;
    if (index >= run->insn_count) return gone;
    unsigned flow = run->insns[index].in.flow;
    if (where == WEAVE_AFTER && flow != ISA_FLOW_NEXT)
        return "nothing can be inserted after an instruction that does not fall through";
    if (where == WEAVE_TAKEN && !is_branch(flow)) return "only a branch has a taken edge";
    return NULL;
}

weave_list *weave_list_at(weave_run *run, weave_where where, uint32_t index)
{
    switch (where) {
    case WEAVE_BEFORE: return &run->insns[index].before;
    case WEAVE_AFTER: return &run->insns[index].after;
    case WEAVE_TAKEN: return &run->insns[index].taken;
    case WEAVE_HEAD: return &run->blocks[index].entry;
    case WEAVE_ANYWHERE: return &run->blocks[index].anywhere;
    }
    return NULL;
}

bool weave_remove(weave_list *list, const weave_insert *which)
{
    weave_insert *before = NULL, *i = list->first;
    while (i && i != which) {
        before = i;
        i = i->next;
    }
    if (!i) return false;
    if (before) before->next = i->next;
    else list->first = i->next;
    if (list->last == i) list->last = before;
    return true;
}

void weave_put_first(weave_list *list, weave_insert *i)
{
    if (!weave_remove(list, i)) return;
    i->next = list->first;
    list->first = i;
    if (!list->last) list->last = i;
}

weave_insert *weave_insert_at(weave_run *run, weave_where where, uint32_t index, const snippet *code, bool predicated,
                              const char **why)
{
    const char *fault = code ? place_fault(run, where, index) : "an empty snippet";
    weave_insn *insn = fault || where == WEAVE_ANYWHERE ? NULL
                       : where == WEAVE_HEAD            ? &run->insns[run->blocks[index].first]
                                                        : &run->insns[index];
    if (!fault) {
        point p = {insn, where, run->isa};
        fault = tree_fault(&p, code);
    }
    weave_insert *n = fault ? NULL : run->spare ? run->spare : inl_arena_alloc(run->arena, sizeof *n);
    if (!n) {
        *why = fault ? fault : "memory is used up";
        return NULL;
    }
    if (n == run->spare) run->spare = n->next;
    *n = (weave_insert){.code = code, .predicated = predicated && insn && (insn->in.bits & ISA_BIT_PREDICATED)};
    weave_list *list = weave_list_at(run, where, index);
    if (list->last) list->last->next = n;
    else list->first = n;
    list->last = n;
    return n;
}

uint32_t weave_list_length(const weave_list *l)
{
    uint32_t n = 0;
    for (const weave_insert *i = l->first; i; i = i->next) n++;
    return n;
}

uint32_t weave_insn_length(const weave_insn *n)
{
    return weave_list_length(&n->before) + weave_list_length(&n->after) + weave_list_length(&n->taken);
}

uint32_t weave_give_up(weave_run *run, uint32_t first, uint32_t blocks, uint64_t at)
{
    const weave_block *from = &run->blocks[first], *to = &run->blocks[first + blocks - 1];
    uint32_t n = 0;
    for (unsigned all = 0; all < 2 && !n; all++)
        for (uint32_t i = from->first; i < to->first + to->count; i++) {
            weave_insn *insn = &run->insns[i];
            if (!all && insn->in.addr != at) continue;
            n += weave_insn_length(insn);
            insn->before = insn->after = insn->taken = (weave_list){0};
        }
    for (uint32_t i = first; i < first + blocks && !n; i++) {
        n += weave_list_length(&run->blocks[i].anywhere);
        run->blocks[i].anywhere = (weave_list){0};
    }
    return n;
}
