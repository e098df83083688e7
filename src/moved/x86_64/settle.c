/* A signal that finds a thread in the gate, where the kernel has the program's mask: the context becomes that of the
 * program's own code, so that its handler is jumped to with a frame as it is natively, which is right without the gate.
 *
 *   the call has not been made yet, or is to be made again     at the gate's begin, once more
 *   it has been made                                           behind the program's call; a tool that watches is told
 * first
 *
 * Mostly that is where the mask becomes the program's again: what was sent meanwhile comes there. All that the gate
 * uses is in slots from some instruction on; the table says what. */
#include <signal.h>
#include <ucontext.h>

#include "moved/private.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigframe.h"
#include "run/x86_64/unwind.h"

_Static_assert(RUN_UNWIND_THREADS == MOVE_TOLD_BASE + offsetof(move_told, threads), "debuggers look there");

enum {          /* which of the program's are in slots */
       RAX = 1, /* all of rax, rcx, rdx, rdi, rsi and r10 are ALL */
       RCX = 2,
       RDX = 4,
       OTHERS = 8,
       FLAGS = 16,
       ALL = RAX | RCX | RDX | OTHERS,
       DONE = 32, /* the call has been made */
       TELL = 64, /* and a tool wants to know */
       CALL_SIZE = RUN_SYSCALL_BYTES,
       LAHF_SIZE = 1,
};

extern const char moved_gate_noted[], moved_gate_flags[], moved_gate_saved[], moved_gate_asking[], moved_gate_blocks[];
extern const char moved_gate_left[], moved_called_blocks[];

typedef struct span {
    const char *from, *to;
    unsigned how;
} span;
static const span spans[] = {
    {moved_gate_noted, moved_gate_flags + LAHF_SIZE, RCX},
    {moved_gate_flags + LAHF_SIZE, moved_gate_saved, RAX | RCX},
    {moved_gate_saved, moved_gate_direct - CALL_SIZE, RAX | RCX | RDX | FLAGS},
    {moved_gate_direct - CALL_SIZE, moved_gate_direct, RCX},
    {moved_gate_direct, moved_gate_asking, DONE},
    {moved_gate_asking, moved_gate_blocks, RAX | RCX | RDX | FLAGS},
    {moved_gate_blocks, moved_gate_blocked, ALL | FLAGS},
    {moved_leave_allowed, moved_gate_left, ALL | DONE},
    {moved_pass_allowed, moved_gate_passed - CALL_SIZE, ALL},
    {moved_gate_passed - CALL_SIZE, moved_gate_passed, RCX},
    {moved_gate_passed, (const char *)moved_gate_call, DONE},
    {moved_call_allowed, moved_gate_called - CALL_SIZE, ALL},
    {moved_gate_called - CALL_SIZE, moved_gate_called, RCX},
    {moved_gate_called, moved_called_blocks, DONE | TELL},
    {moved_called_blocks, moved_called_blocked, ALL | DONE | TELL},
    {moved_wait_allowed, moved_gate_waited, ALL},
};

static void tell(void *arg)
{
    run_thread *t = arg;
    t->where = RUN_IN_RUNTIME;
    moved_tell_of_exit(t);
    t->where = RUN_IN_CODE;
}

static void put_registers(const weave_context *c, void *uc)
{
    greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    for (unsigned r = 0; r < sizeof c->gpr / sizeof *c->gpr; r++) g[run_frame_place(r)] = (greg_t)c->gpr[r];
}

static void finish(run_thread *t, void *uc)
{
    uint64_t before = run_kernel_mask_sent();
    weave_context kept = t->ctx;
    run_uc_context(uc, t, run_tls_base(), &t->ctx);
    t->ctx.pc = t->frame.slot[RUN_RCX];
    moved_on_tool_stack(t, tell, t);
    put_registers(&t->ctx, uc);
    t->ctx = kept;
    run_kernel_mask_set(before);
}

moved_settled moved_settle_registers(const run_thread *t, weave_context *c)
{
    static const uint8_t others[] = {RUN_RDI, RUN_RSI, RUN_R10};
    const char *at = (const char *)(uintptr_t)c->pc;
    const uint64_t *slot = t->frame.slot;
    size_t i = 0, count = sizeof spans / sizeof *spans;
    while (i < count && !(at >= spans[i].from && at < spans[i].to)) i++;
    if (i == count) return MOVED_SETTLED_NOT;
    unsigned how = spans[i].how;
    if (how & RAX) c->gpr[RUN_RAX] = slot[RUN_RAX];
    if (how & RCX) c->gpr[RUN_RCX] = slot[RUN_RCX];
    if (how & RDX) c->gpr[RUN_RDX] = slot[RUN_RDX];
    for (size_t k = 0; how & OTHERS && k < sizeof others; k++) c->gpr[others[k]] = slot[others[k]];
    if (how & FLAGS) c->flags = run_flags_unpacked(c->flags, t->frame.flags);
    if (at >= moved_call_allowed && at < moved_gate_called) moved_ask_again(t, c);
    c->pc = how & DONE ? slot[RUN_RCX] : (uint64_t)(uintptr_t)moved_gate_begin;
    return how & TELL ? MOVED_SETTLED_TELLS : MOVED_SETTLED;
}

void moved_settle(run_thread *t, void *uc)
{
    weave_context c;
    run_uc_context(uc, t, 0, &c);
    moved_settled how = moved_settle_registers(t, &c);
    if (how == MOVED_SETTLED_NOT) return;
    greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    put_registers(&c, uc);
    g[REG_EFL] = (greg_t)c.flags;
    g[REG_RIP] = (greg_t)c.pc;
    if (how == MOVED_SETTLED_TELLS) finish(t, uc);
}

bool moved_gate_asks(uint64_t pc, const weave_context *c, uint64_t *behind, isa_regs *junk)
{
    *behind = c ? c->gpr[RUN_RCX] : 0;
    *junk = 1u << RUN_RCX;
    return pc == (uint64_t)(uintptr_t)moved_gate_begin;
}
