/* A signal that finds a thread in the gate, at or right behind the system call that is made there: the context
 * becomes that of the program's own code, so that its handler is jumped to with a frame as it is natively.
 *
 *   at the call     it has not been made, or is to be made again: at the gate's begin, once more
 *   waiting         likewise
 *   right behind    it has been made: behind the program's call; a tool that watches is told first
 */
#include <signal.h>
#include <ucontext.h>

#include "moved/private.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/unwind.h"

_Static_assert(RUN_UNWIND_THREADS == MOVE_TOLD_BASE + offsetof(move_told, threads), "debuggers look there");

enum { CALL_SIZE = RUN_SYSCALL_BYTES };

typedef struct finished {
    run_thread *t;
    greg_t *answer;
} finished;

static void tell(void *arg)
{
    finished *f = arg;
    f->t->where = RUN_IN_RUNTIME;
    moved_tell_of_exit(f->t);
    *f->answer = (greg_t)run_number(&f->t->ctx);
    f->t->where = RUN_IN_CODE;
}

static void finish(run_thread *t, void *uc)
{
    uint64_t before = run_kernel_mask_all();
    finished f = {t, &((ucontext_t *)uc)->uc_mcontext.gregs[REG_RAX]};
    weave_context kept = t->ctx;
    run_uc_context(uc, t, run_tls_base(), &t->ctx);
    t->ctx.pc = t->frame.slot[RUN_RCX];
    moved_on_tool_stack(t, tell, &f);
    t->ctx = kept;
    run_kernel_mask_set(before);
}

moved_settled moved_settle_registers(const run_thread *t, weave_context *c)
{
    const char *const calls[] = {moved_gate_direct, moved_gate_passed, moved_gate_called};
    const char *at = (const char *)(uintptr_t)c->pc;
    for (int i = 0; i < 3; i++) {
        if (at == calls[i] - CALL_SIZE) {
            c->gpr[RUN_RCX] = t->frame.slot[RUN_RCX];
            c->pc = (uint64_t)(uintptr_t)moved_gate_begin;
            return MOVED_SETTLED;
        }
        if (at != calls[i]) continue;
        c->pc = t->frame.slot[RUN_RCX];
        return calls[i] == moved_gate_called ? MOVED_SETTLED_TELLS : MOVED_SETTLED;
    }
    if (at < moved_wait_allowed || at >= moved_gate_waited) return MOVED_SETTLED_NOT;
    c->gpr[RUN_RCX] = t->frame.slot[RUN_RCX];
    c->pc = (uint64_t)(uintptr_t)moved_gate_begin;
    return MOVED_SETTLED;
}

/* The program's flags stay as they are. */
void moved_settle(run_thread *t, void *uc)
{
    weave_context c;
    run_uc_context(uc, t, 0, &c);
    moved_settled how = moved_settle_registers(t, &c);
    if (how == MOVED_SETTLED_NOT) return;
    greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    g[REG_RCX] = (greg_t)c.gpr[RUN_RCX];
    g[REG_RIP] = (greg_t)c.pc;
    if (how == MOVED_SETTLED_TELLS) finish(t, uc);
}

bool moved_gate_asks(uint64_t pc, const weave_context *c, uint64_t *behind, isa_regs *junk)
{
    *behind = c ? c->gpr[RUN_RCX] : 0;
    *junk = 1u << RUN_RCX;
    return pc == (uint64_t)(uintptr_t)moved_gate_begin;
}
