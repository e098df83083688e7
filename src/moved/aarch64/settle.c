/* A signal that finds a thread in the gate, where the kernel has the program's mask: the context becomes that of the
 * program's own code, so that its handler is jumped to with a frame as it is natively.
 *
 *   the call has not been made yet, or is to be made again     at what stands in its place, once more
 *   it has been made                                           behind that; a tool that watches is told first
 *
 * A call changes x0 only, so all that the gate uses can be put back at each of its instructions: the table says where
 * it is. */
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "moved/private.h"
#include "run/aarch64/abi.h"

enum {             /* where the program's registers are */
       IN_X30 = 1, /* where to go back to is in x30, not yet in its slot */
       X17 = 2,    /* x17 in its slot */
       PUSHED = 4, /* x16 and x30 on the stack */
       LOWER = 8,  /* the stack pointer is 16 lower */
       SLOTS = 16, /* all that the gate uses in slots, x0 as well, */
       X0 = 32,    /* or x0 not */
       DONE = 64,  /* the call has been made */
       TELL = 128, /* and a tool wants to know */
       INSN = 4,
};

extern const char moved_gate_noted[], moved_gate_made[], moved_gate_concerns[], moved_gate_kept[];
extern const char moved_leave_pushed[], moved_called_kept[];

typedef struct span {
    const char *from, *to;
    unsigned how;
} span;
static const span spans[] = {
    {moved_gate_begin, moved_gate_noted, IN_X30 | PUSHED | LOWER},
    {moved_gate_noted, moved_gate_made, X17 | PUSHED | LOWER},
    {moved_gate_made, moved_gate_direct, 0},
    {moved_gate_direct, moved_gate_direct + INSN, DONE},
    {moved_gate_direct + INSN, moved_gate_concerns, PUSHED | LOWER | DONE},
    {moved_gate_concerns, moved_gate_kept, X17 | PUSHED | LOWER},
    {moved_gate_kept, moved_gate_kept + INSN, SLOTS | LOWER},
    {moved_gate_kept + INSN, moved_gate_blocked, SLOTS},
    {moved_leave_allowed, moved_leave_pushed, SLOTS | DONE},
    {moved_leave_pushed, (const char *)moved_gate_pass, SLOTS | LOWER | DONE},
    {moved_pass_allowed, moved_gate_passed, SLOTS},
    {moved_gate_passed, moved_gate_passed + INSN, DONE},
    {moved_gate_passed + INSN, (const char *)moved_gate_call, PUSHED | LOWER | DONE},
    {moved_call_allowed, moved_gate_called, SLOTS},
    {moved_gate_called, moved_gate_called + INSN, SLOTS | X0 | DONE | TELL},
    {moved_gate_called + INSN, moved_called_kept + INSN, SLOTS | X0 | LOWER | DONE | TELL},
    {moved_called_kept + INSN, moved_called_blocked, SLOTS | DONE | TELL},
};

static unsigned how_at(uint64_t pc, bool *found)
{
    const char *at = (const char *)(uintptr_t)pc;
    for (unsigned i = 0; i < sizeof spans / sizeof *spans; i++)
        if ((*found = at >= spans[i].from && at < spans[i].to)) return spans[i].how;
    return 0;
}

static void tell(void *arg)
{
    run_thread *t = arg;
    t->where = RUN_IN_RUNTIME;
    moved_tell_of_exit(t);
    t->where = RUN_IN_CODE;
}

static void finish(run_thread *t, void *uc)
{
    uint64_t before = run_kernel_mask_sent();
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    weave_context kept = t->ctx;
    run_uc_context(uc, t, run_tls_base(), &t->ctx);
    moved_on_tool_stack(t, tell, t);
    memcpy(mc->regs, t->ctx.gpr, sizeof mc->regs);
    t->ctx = kept;
    run_kernel_mask_set(before);
}

static void take_slots(const run_thread *t, weave_context *c, bool but_x0)
{
    static const uint8_t used[] = {RUN_X0, 1, 2, 3, RUN_X8, RUN_X16, RUN_X17, RUN_X30};
    for (unsigned i = but_x0; i < sizeof used; i++) c->gpr[used[i]] = t->frame.slot[used[i]];
}

moved_settled moved_settle_registers(const run_thread *t, weave_context *c)
{
    bool found;
    unsigned how = how_at(c->pc, &found);
    if (!found) return MOVED_SETTLED_NOT;
    bool made = c->pc >= (uint64_t)(uintptr_t)moved_call_allowed && c->pc < (uint64_t)(uintptr_t)moved_gate_called;
    uint64_t pushed[2] = {c->gpr[RUN_X16], c->gpr[RUN_X30]};
    uint64_t back = how & IN_X30 ? c->gpr[RUN_X30] : t->frame.slot[MOVED_BACK_SLOT];
    if (how & PUSHED && !run_read(pushed, run_sp(c), sizeof pushed)) return MOVED_SETTLED_NOT;
    if (how & X17) c->gpr[RUN_X17] = t->frame.slot[RUN_X17];
    c->gpr[RUN_X16] = pushed[0];
    c->gpr[RUN_X30] = pushed[1];
    if (how & SLOTS) take_slots(t, c, how & X0);
    if (how & LOWER) run_set_sp(c, run_sp(c) + sizeof pushed);
    if (made) moved_ask_again(t, c);
    c->pc = how & DONE ? back + INSN : back - MOVED_SITE_BYTES;
    return how & TELL ? MOVED_SETTLED_TELLS : MOVED_SETTLED;
}

void moved_settle(run_thread *t, void *uc)
{
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    weave_context c;
    run_uc_context(uc, t, 0, &c);
    moved_settled how = moved_settle_registers(t, &c);
    if (how == MOVED_SETTLED_NOT) return;
    memcpy(mc->regs, c.gpr, sizeof mc->regs);
    mc->sp = run_sp(&c);
    mc->pc = c.pc;
    if (how == MOVED_SETTLED_TELLS) finish(t, uc);
}

/* moved_settle has taken the thread out. */
bool moved_gate_asks(uint64_t pc, const weave_context *c, uint64_t *behind, isa_regs *junk)
{
    (void)pc, (void)c, (void)behind, (void)junk;
    return false;
}
