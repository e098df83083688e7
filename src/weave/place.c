/* Operands whose addresses snippets set (SNIPPET_SET_EA).
 *
 * The address of such an operand waits in one of the frame's first temporaries, which one its instruction set says
 * (placeable): from before the instruction's first snippet, where it becomes what the program computes, until behind
 * its last. Setting it is a store there; whoever asks for the operand's address or content, before the instruction or
 * after it, looks there; and the instruction is written anew, with what is there for its address (copy_placed). So it
 * does not matter on which ways through the snippets it is set.
 */
#include "weave/weaver.h"

static unsigned places_of(const isa *set, const weave_isa *isa, const isa_insn *in, const snippet *s)
{
    isa_mem mem[ISA_MAX_MEM];
    unsigned place, places = 0;
    if (!s || !snippet_has(s, SNIPPET_SET_EA)) return 0;
    bool here = s->kind == SNIPPET_SET_EA && (int)s->index < set->memory(in, mem);
    if (here && !isa->placeable(in, &mem[s->index], &place)) places = 1u << place;
    places |= places_of(set, isa, in, s->a) | places_of(set, isa, in, s->b) | places_of(set, isa, in, s->c);
    for (unsigned i = 0; i < s->nargs; i++) places |= places_of(set, isa, in, s->args[i]);
    return places;
}

unsigned weave_sets_places(const weave_insn *insn)
{
    const weave_isa *isa = weave_isa_of(insn->run->isa);
    unsigned places = 0;
    if (!isa->placeable || !(insn->in.bits & ISA_BIT_MEM)) return 0;
    for (const weave_insert *n = insn->before.first; n; n = n->next)
        places |= places_of(insn->run->isa, isa, &insn->in, n->code);
    return places;
}

void weave_place_begin(weaver *w, uint32_t i)
{
    const weave_insn *insn = &w->run->insns[i];
    isa_mem mem[ISA_MAX_MEM];
    unsigned places = insn->placed ? insn->placed : weave_sets_places(insn), place;
    if (!places) return;
    w->temps |= places;
    w->placed = (uint8_t)places;
    if (insn->placed) return;
    int n = w->run->isa->memory(&insn->in, mem);
    for (int k = 0; k < n && !w->status; k++) {
        if (w->isa->placeable(&insn->in, &mem[k], &place) || !(places >> place & 1)) continue;
        weave_val v = w->isa->address(w, &mem[k], NULL, ISA_NO_REG);
        weave_in_reg(w, &v, 0);
        weave_temp_store(w, place, v.reg);
        weave_drop(w, v);
    }
}

void weave_place_set(weaver *w, const snippet *s)
{
    isa_mem room[ISA_MAX_MEM];
    unsigned place;
    const isa_mem *m = weave_mem(w, s->index, room);
    if (!m || !weave_is_placed(w, m, &place)) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "the address of this operand cannot be set");
        return;
    }
    weave_val v = weave_eval(w, s->a, ISA_NO_REG);
    weave_in_reg(w, &v, 0);
    weave_temp_store(w, place, v.reg);
    weave_drop(w, v);
}

bool weave_is_placed(const weaver *w, const isa_mem *m, unsigned *temp)
{
    return w->placed && !w->isa->placeable(&weave_here(w)->in, m, temp) && w->placed >> *temp & 1;
}

void weave_place_end(weaver *w)
{
    w->temps &= ~(uint32_t)w->placed;
    w->placed = 0;
}
