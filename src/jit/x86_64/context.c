/* The program's registers where a signal finds the thread in the gate, or at a blocked table of indirect branches. */
#include "jit/jit.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

static bool on_private_stack(const run_thread *t, uint64_t sp)
{
    return sp - (uint64_t)(uintptr_t)t->stack_low <= t->stack_size;
}

void jit_uc_gate_context(const void *uc, run_thread *t, uint64_t tls_base, uint64_t pc, weave_context *out)
{
    uint64_t at = run_uc_pc(uc);
    run_uc_context(uc, t, tls_base, out);
    if (on_private_stack(t, run_sp(out))) run_set_sp(out, t->frame.slot[RUN_RSP]);
    if (at >= (uint64_t)(uintptr_t)jit_gate_flags) out->flags = out->gpr[RUN_R11];
    out->gpr[RUN_RCX] = jit_of(t)->syscall_resume;
    out->pc = pc;
}

/* RCX is the target; RCX and RDX of the program are in their slots. The miss routine's store into the
 * table is the one place where more is: RAX, RBX and the flags. */
void jit_uc_ibl_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out)
{
    run_uc_context(uc, t, tls_base, out);
    uint64_t target = out->gpr[RUN_RCX];
    bool storing = run_uc_is_write(uc);
    run_uc_unspill(t, out, 1u << RUN_RCX | 1u << RUN_RDX | (storing ? 1u << RUN_RAX | 1u << RUN_RBX : 0), storing);
    out->pc = target;
}
