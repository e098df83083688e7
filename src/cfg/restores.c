/* Jumps that go on elsewhere with what was kept there: longjmp, a switch to another stack.
 *
 *     mov (%rdi),%rbx         registers that a procedure preserves, the frame pointer at least (__builtin_longjmp),
 *     mov 16(%rdi),%r12
 *     ...
 *     mov 48(%rdi),%rsp       the stack pointer
 *     jmp *56(%rdi)           and where to go, all from one place in memory
 *
 *     mov %rdi,%rsp           or the stack is one that is given,
 *     mov (%rsp),%rbx         with the registers on it
 *     ...
 *     mov 48(%rsp),%r8        and where to go, which may be given as well
 *     lea 56(%rsp),%rsp
 *     jmp *%r8
 *
 * Each may have been loaded before, and changed on its way (glibc hides such pointers). No compiler writes a jump
 * within a procedure so. */
#include "cfg/work.h"

enum { MOST_HOPS = 8 };

/* The register by which it loads; or none. */
static unsigned base_of_load(const cfg_work *w, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = in->bits & ISA_BIT_MEM ? w->isa->memory(in, mem) : 0;
    if (n != 1 || !(mem[0].access & ISA_READ) || mem[0].segment || mem[0].index != ISA_NO_REG ||
        mem[0].bits & (ISA_MEM_IMPLICIT | ISA_MEM_PCREL))
        return ISA_NO_REG;
    return mem[0].base;
}

/* Where the value of `reg` was kept, by the register that says so: the stack pointer for what is given by the caller,
 * too. Or none. */
static unsigned kept_at(cfg_view *v, unsigned reg, cfg_point at)
{
    const cfg_work *w = v->work;
    const unsigned stack = w->machine->stack;
    bool is_copy = false;
    for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
        cfg_defs d;
        cfg_shape s;
        isa_effects fx;
        cfg_reach(v, reg, at, &d);
        if (is_copy && reg != stack && d.count == 0) return stack;
        if (d.unknown || d.count != 1) return ISA_NO_REG;
        w->isa->effects(&d.def[0].in, &fx);
        cfg_shape_of(w, &d.def[0].in, &s);
        at = d.def[0].at;
        if (fx.reads >> reg & 1) continue; /* changed */
        unsigned base = base_of_load(w, &d.def[0].in);
        if (base != ISA_NO_REG) return base;
        if (s.sem != SEM_MOV || !s.has_src || s.src.kind != ISA_OPERAND_REG) return ISA_NO_REG;
        reg = s.src.reg;
        is_copy = true;
    }
    return ISA_NO_REG;
}

static unsigned target_kept_at(cfg_view *v, const isa_insn *jump, cfg_point at)
{
    cfg_shape s;
    unsigned base = base_of_load(v->work, jump);
    if (base != ISA_NO_REG) return base;
    cfg_shape_of(v->work, jump, &s);
    return s.dst.kind == ISA_OPERAND_REG ? kept_at(v, s.dst.reg, at) : ISA_NO_REG;
}

bool cfg_restores(cfg_view *v, uint32_t block)
{
    const cfg_machine *m = v->work->machine;
    uint32_t count;
    const isa_insn *in = cfg_view_insns(v, block, &count);
    if (count == 0 || in[count - 1].flow != ISA_FLOW_JUMP_IND) return false;
    const isa_insn jump = in[count - 1];
    const cfg_point at = {block, count - 1};
    unsigned base = target_kept_at(v, &jump, at);
    if (base == m->frame) return false; /* its own variables: an array's end, a computed goto */
    if (base == ISA_NO_REG || kept_at(v, m->stack, at) != base) return false;
    isa_regs preserved = ~m->call_clobbers & ~(1ull << m->stack);
    for (unsigned reg = 0; reg < 64; reg++)
        if (preserved >> reg & 1 && kept_at(v, reg, at) == base) return true;
    return false;
}
