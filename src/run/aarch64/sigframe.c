/* The frame that the kernel builds for a handler (sigframe.h), built and undone here. The program may change anything
 * in it before it returns; what it hands back is checked as the kernel checks it. */
#include "run/aarch64/sigframe.h"

#include <string.h>

#include "run/aarch64/abi.h"
#include "run/aarch64/sigvectors.h"

/* --- building --- */

static void fill_context(const run_thread *t, mcontext_t *mc)
{
    for (unsigned r = 0; r < RUN_SP; r++) mc->regs[r] = t->ctx.gpr[r];
    mc->sp = run_sp(&t->ctx);
    mc->pc = t->ctx.pc;
    mc->pstate = t->ctx.flags;
    mc->fault_address = t->trap_addr;
}

/* Where the frame goes, whose records have `records` bytes; *link: the two words behind it. 0 when the alternate stack
 * cannot hold it. */
static uint64_t place(const run_thread *t, const run_action *a, size_t records, uint64_t *link)
{
    bool bounded;
    uint64_t sp = run_altstack_top(t, a, run_sp(&t->ctx), &bounded);
    size_t size = RUN_FRAME_RECORDS + records;
    if (size < sizeof(run_frame)) size = sizeof(run_frame);
    *link = (sp - RUN_FRAME_LINK) & ~15ull;
    sp = *link - ((size + 15) & ~(size_t)15);
    return bounded && !run_altstack_holds(t, sp) ? 0 : sp;
}

static bool put_frame(const run_thread *t, uint64_t sp, const siginfo_t *info, uint64_t saved, size_t records)
{
    union {
        run_frame frame;
        uint8_t bytes[RUN_FRAME_RECORDS + SIGVECTORS_MOST];
    } u __attribute__((aligned(16)));
    run_frame *f = &u.frame;
    memset(f, 0, sizeof *f);
    memcpy(f->info, info, sizeof f->info);
    f->stack.ss_sp = t->altstack.ss_sp;
    f->stack.ss_flags = t->altstack.ss_flags;
    f->stack.ss_size = t->altstack.ss_size;
    f->mask = saved;
    fill_context(t, &f->mc);
    sigvectors_put(t, u.bytes + RUN_FRAME_RECORDS, sp + RUN_FRAME_RECORDS);
    size_t size = RUN_FRAME_RECORDS + records;
    return run_write(sp, &u, size < sizeof *f ? sizeof *f : size);
}

/* The kernel's own restorer is in the vdso; where there is none, Inlay's does the same. */
static uint64_t restorer_of(const run_action *a)
{
    if (a->flags & SA_RESTORER) return a->restorer;
    return (uint64_t)(uintptr_t)run_signal_restorer;
}

bool run_sigframe_push(run_thread *t, int signo, const siginfo_t *info, const run_action *a, uint64_t saved)
{
    weave_context *c = &t->ctx;
    size_t records = sigvectors_bytes(t);
    uint64_t link, sp = place(t, a, records, &link), was[2] = {c->gpr[RUN_X29], c->gpr[RUN_X30]};
    if (!sp || !put_frame(t, sp, info, saved, records) || !run_write(link, was, sizeof was)) return false;
    c->gpr[RUN_X0] = (uint64_t)signo;
    if (a->flags & SA_SIGINFO) {
        c->gpr[RUN_X1] = sp;
        c->gpr[RUN_X2] = sp + RUN_FRAME_CONTEXT;
    }
    c->gpr[RUN_X29] = link;
    c->gpr[RUN_X30] = restorer_of(a);
    run_set_sp(c, sp);
    c->pc = a->handler;
    return true;
}

/* --- undoing --- */

bool run_sigframe_pop(run_thread *t, uint64_t *mask)
{
    weave_context *c = &t->ctx;
    uint64_t at = run_sp(c);
    run_frame f;
    if (at & 15 || !run_read(&f, at, sizeof f) || !sigvectors_take(t, at + RUN_FRAME_RECORDS)) return false;
    for (unsigned r = 0; r < RUN_SP; r++) c->gpr[r] = f.mc.regs[r];
    run_set_sp(c, f.mc.sp);
    c->pc = f.mc.pc;
    c->flags = run_flags_unpacked(c->flags, f.mc.pstate);
    *mask = f.mask;
    run_altstack_take(t, &f.stack, run_sp(c));
    return true;
}

void run_trap_set(run_thread *t, int signo, int code, uint64_t addr)
{
    (void)code;
    enum { CLASS = 26, UNKNOWN = 0, FETCH = 0x20, IS_LONG = 1 << 25, TRANSLATION = 7 };
    uint64_t why = signo == SIGSEGV && addr ? (uint64_t)FETCH << CLASS | TRANSLATION : (uint64_t)UNKNOWN << CLASS;
    t->trap_err = why | IS_LONG;
    t->trap_addr = addr;
}
