/* Procedures that flags are handed to, or by: those of hand-written assembly may be, since their authors agree on what
 * they like. What compilers make is not: between procedures flags mean nothing.
 *
 * Who has made an object stands in its comments. Where that is no compiler, flags are kept at all entries and exits. In
 * others there may be assembly in between (naked procedures, asm outside of procedures): there flags are kept where a
 * use of what was handed over is seen: an entry behind which they are read, a caller that reads them behind the call.
 */
#include "object/file.h"

enum { STEPS = 48 };

static const char *const assemblers[] = {"Netwide Assembler", "yasm", "Yasm"};

static bool is_by_hand(const object_file *o)
{
    uint32_t section = object_section_named(o, ".comment");
    const inl_bytes *b = section ? &o->sections.items[section].data : NULL;
    if (!b || !b->size) return true;
    for (size_t i = 0; i < sizeof assemblers / sizeof *assemblers; i++)
        if (memmem(b->data, b->size, assemblers[i], strlen(assemblers[i]))) return true;
    return false;
}

/* Is a flag read, from an instruction on, that nothing has given a value on the way? Calls and returns end the way. */
static bool reads_from(const object_plan *p, uint64_t at, uint32_t killed, unsigned steps)
{
    isa_insn in;
    isa_effects fx;
    for (; steps && object_insn_at(p->o, at, &in); steps--, at += in.len) {
        p->o->isa->isa->effects(&in, &fx);
        if (fx.flags_read & ~killed & p->o->isa->arithmetic) return true;
        killed |= fx.flags_kill;
        if (in.flow == ISA_FLOW_JUMP) at = in.target - in.len;
        else if (in.flow == ISA_FLOW_COND && reads_from(p, in.target, killed, steps / 4)) return true;
        else if (in.flow != ISA_FLOW_NEXT && in.flow != ISA_FLOW_COND) return false;
    }
    return false;
}

void object_find_flags(object_plan *p)
{
    const cfg_program *c = p->o->cfg;
    p->by_hand = is_by_hand(p->o);
    for (uint32_t i = 0; i < c->proc_count; i++) p->keeps[i] = p->by_hand || reads_from(p, c->procs[i].addr, 0, STEPS);
    for (uint32_t i = 0; i < c->block_count && !p->by_hand; i++) {
        const cfg_block *b = &c->blocks[i];
        isa_insn in;
        if (!(b->flags & CFG_BLOCK_CALL) || !object_last_insn(p->o, b, &in)) continue;
        uint32_t callee = in.flow == ISA_FLOW_CALL ? cfg_proc_covering(c, in.target) : CFG_NONE;
        if (callee == CFG_NONE || p->keeps[callee]) continue;
        p->keeps[callee] = reads_from(p, b->addr + b->size, 0, STEPS);
    }
}
