/* Procedures that look at their return address, before they push anything that lies above it or with what they have
 * pushed counted: hand-written ones find a text or a number behind the call there, and return behind it. A call of such
 * stays where it is; what stands behind it may be no code. */
#include "object/file.h"

enum { STEPS = 24 };

static bool moves_stack_by(const isa *a, const isa_insn *in, int64_t *by)
{
    isa_operand o[ISA_MAX_OPERANDS];
    int n = a->operands(in, o);
    const char *name = a->mnemonic(in->op);
    bool adds = strcmp(name, "add") == 0, subtracts = strcmp(name, "sub") == 0;
    if ((!adds && !subtracts) || n < 2 || o[0].kind != ISA_OPERAND_REG || o[0].reg != a->stack_reg ||
        o[1].kind != ISA_OPERAND_IMM)
        return false;
    *by = adds ? -o[1].imm : o[1].imm;
    return true;
}

/* With `depth` bytes pushed. False: where the stack pointer is is not known from here on. */
static bool step(const isa *a, const isa_insn *in, int64_t *depth, bool *looks)
{
    isa_mem mem[ISA_MAX_MEM];
    isa_effects fx;
    int64_t by = 0;
    int n = a->memory(in, mem);
    bool pushes = false;
    for (int i = 0; i < n; i++) {
        if (mem[i].base != a->stack_reg || mem[i].access == ISA_ADDRESS_ONLY) continue;
        *looks |= mem[i].index == ISA_NO_REG && mem[i].disp == *depth;
        if (!(mem[i].bits & ISA_MEM_STACK)) continue;
        pushes = true;
        by += mem[i].access & ISA_WRITE ? mem[i].size : -(int64_t)mem[i].size;
    }
    a->effects(in, &fx);
    bool moves = fx.writes >> a->stack_reg & 1;
    if (moves && !pushes && !moves_stack_by(a, in, &by)) return false;
    *depth += moves ? by : 0;
    return true;
}

static bool looks_at_return(const object_file *o, uint64_t at)
{
    int64_t depth = 0;
    bool looks = false;
    isa_insn in;
    for (unsigned i = 0; i < STEPS && !looks && object_insn_at(o, at, &in); i++, at += in.len) {
        if (in.flow != ISA_FLOW_NEXT && in.flow != ISA_FLOW_COND) break;
        if (!step(o->isa->isa, &in, &depth, &looks)) break;
    }
    return looks;
}

void object_find_returns(object_plan *p)
{
    for (uint32_t i = 0; i < p->o->cfg->proc_count; i++) p->looks[i] = looks_at_return(p->o, p->o->cfg->procs[i].addr);
}

bool object_call_stays(const object_plan *p, const isa_insn *in)
{
    if (in->flow != ISA_FLOW_CALL && in->flow != ISA_FLOW_CALL_IND) return false;
    uint32_t callee = in->flow == ISA_FLOW_CALL ? cfg_proc_covering(p->o->cfg, in->target) : CFG_NONE;
    bool known = callee != CFG_NONE && p->o->cfg->procs[callee].addr == in->target;
    return known ? p->looks[callee] : p->by_hand;
}

bool object_calls_oddly(const object_plan *p, const cfg_proc *proc)
{
    isa_insn in;
    for (uint32_t b = proc->first_block; p->by_hand && b < proc->first_block + proc->block_count; b++) {
        if (!object_last_insn(p->o, &p->o->cfg->blocks[b], &in) || in.flow != ISA_FLOW_CALL) continue;
        uint32_t callee = cfg_proc_covering(p->o->cfg, in.target);
        if (callee != CFG_NONE && p->looks[callee] && p->o->cfg->procs[callee].addr == in.target) return true;
    }
    return false;
}
