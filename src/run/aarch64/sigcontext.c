/* From the registers that the kernel hands to Inlay's handler to the program's own: which of them are
 * in the thread's frame instead depends on where the thread was. */
#include "run/aarch64/abi.h"
#include "run/aarch64/sigframe.h"
#include "run/aarch64/sigvectors.h"

static mcontext_t *registers(const void *uc) { return &((ucontext_t *)(uintptr_t)uc)->uc_mcontext; }

uint64_t run_uc_pc(const void *uc) { return registers(uc)->pc; }

uint64_t run_uc_sp(const void *uc) { return registers(uc)->sp; }

void run_uc_set_sp(void *uc, uint64_t sp) { registers(uc)->sp = sp; }

void run_uc_set_pc(void *uc, uint64_t pc)
{
    enum { BRANCH_KIND = 3 << 10, STEP = 1 << 21 };
    registers(uc)->pc = pc;
    registers(uc)->pstate &= ~(uint64_t)(BRANCH_KIND | STEP);
}

long run_uc_answer(const void *uc) { return (long)registers(uc)->regs[0]; }

void run_uc_set_answer(void *uc, long answer) { registers(uc)->regs[0] = (uint64_t)answer; }

uint64_t *run_uc_mask(void *uc) { return (uint64_t *)&((ucontext_t *)uc)->uc_sigmask; }

bool run_uc_is_write(const void *uc)
{
    enum { CLASS = 26, DATA_ABORT = 0x24, IS_WRITE = 1 << 6 };
    uint64_t why = sigvectors_syndrome(registers(uc)->__reserved);
    return why >> CLASS == DATA_ABORT && why & IS_WRITE;
}

void run_uc_keep_trap(run_thread *t, const void *uc)
{
    t->trap_err = sigvectors_syndrome(registers(uc)->__reserved);
    t->trap_addr = registers(uc)->fault_address;
}

void run_uc_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out)
{
    const mcontext_t *mc = registers(uc);
    for (unsigned r = 0; r < RUN_SP; r++) out->gpr[r] = mc->regs[r];
    run_set_sp(out, mc->sp);
    out->pc = mc->pc;
    out->flags = mc->pstate;
    out->tls_base = tls_base == (uint64_t)(uintptr_t)t->frame.first_tls ? 0 : tls_base;
}

/* It is always at the instruction itself. */
bool run_uc_is_behind(const void *uc, int signo)
{
    (void)uc, (void)signo;
    return false;
}

uint64_t run_after_trap(uint64_t app) { return app; }

void run_uc_unspill(const run_thread *t, weave_context *c, isa_regs spilled, bool flags_saved)
{
    for (int r = 0; r < RUN_GPRS; r++)
        if (spilled >> r & 1) c->gpr[r] = t->frame.slot[r];
    if (flags_saved) c->flags = run_flags_unpacked(c->flags, t->frame.flags);
}
