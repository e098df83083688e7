/* The program's registers where a signal finds the thread in the gate, or at a blocked table of indirect branches. */
#include "jit/jit.h"
#include "jit/x86_64/layout.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

#include <string.h>
#include <ucontext.h>

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

enum { CALL = 0xe8, RET = 0xc3, CALL_BYTES = 5, FLAG_RF = 0x10000 };

/* A paired return's, on the thread's table: of the program's own instructions none is one. */
static bool is_return(uint64_t pc) { return jit_cache_contains(pc) && *(const uint8_t *)pc == RET; }

/* RCX is the target; RCX and RDX of the program are in their slots. The miss routine's store into the
 * table is the one place where more is: RAX, RBX and the flags. Of a paired return R11 is in its slot too, and RSP in
 * R11. */
void jit_uc_ibl_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out)
{
    run_uc_context(uc, t, tls_base, out);
    uint64_t target = out->gpr[RUN_RCX];
    bool storing = run_uc_is_write(uc) && !jit_cache_contains(run_uc_pc(uc));
    bool returning = is_return(run_uc_pc(uc));
    if (returning) run_set_sp(out, out->gpr[RUN_R11]);
    isa_regs more = returning ? 1u << RUN_R11 : storing ? 1u << RUN_RAX | 1u << RUN_RBX : 0;
    run_uc_unspill(t, out, 1u << RUN_RCX | 1u << RUN_RDX | more, storing);
    out->flags &= ~(uint64_t)FLAG_RF; /* the fault is not the program's */
    out->pc = target;
}

bool jit_uc_skip_landing(void *uc)
{
    greg_t *pc = &((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
    const uint8_t *at = (const uint8_t *)*pc;
    int32_t distance;
    if (!jit_cache_contains((uint64_t)*pc) || *at != CALL) return false;
    memcpy(&distance, at + CALL_BYTES - sizeof distance, sizeof distance);
    *pc += CALL_BYTES + distance;
    return true;
}
