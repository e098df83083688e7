/* System calls in new code: copied, or by way of the gate where the tool has to know of it.
 *
 *     stp x16,x30,[sp,#-16]!       no register is free: the call itself changes x0 only. What is below the stack
 *     mrs x16,tpidr_el0            pointer belongs to nobody
 *     ldr x16,[x16,#8]             the thread's frame (weave/aarch64/frame.h)
 *     ldr x16,[x16,#gate]
 *     blr x16                      x30: behind; the gate may use x16 and x30
 *     ldp x16,x30,[sp],#16
 *
 * A thread that begins in the call, on a stack of its own, finds the two words there: the gate has put them there. */
#include "isa/aarch64/emit.h"
#include "move/aarch64/machine.h"
#include "weave/aarch64/frame.h"

enum { NUMBER = A64_X8, ROOM = 16 };

/* The call's number where the run's own instructions before it say so, else -1. */
static long call_number(const weave_run *run, uint32_t i)
{
    while (i-- > 0) {
        const isa_insn *in = &run->insns[i].in;
        isa_effects fx;
        uint64_t value, mask;
        run->isa->effects(in, &fx);
        if (in->flow != ISA_FLOW_NEXT) return -1;
        if (!(fx.writes >> NUMBER & 1)) continue;
        bool whole = a64_wide_constant(in, &value, &mask) && mask >= 0xffffffff;
        return whole && value <= INT32_MAX ? (long)value : -1;
    }
    return -1;
}

bool move_a64_lower_syscall(move_work *w, isa_code *c, const weave_run *run, uint32_t i)
{
    bool early = w->runs_early && w->runs_early[w->proc];
    if (!w->instruments || early || !w->client->gate.matters || !w->client->gate.matters(call_number(run, i)))
        return move_copied(c, run->isa, &run->insns[i].in);
    a64_store_pair(c, 8, a64_pre(A64_SP, -ROOM), A64_IP0, A64_LR);
    a64_read_tls(c, A64_IP0);
    a64_load(c, 8, A64_IP0, a64_at(A64_IP0, WEAVE_FRAME_WORD));
    a64_load(c, 8, A64_IP0, a64_at(A64_IP0, w->client->gate.at));
    a64_blr(c, A64_IP0);
    a64_load_pair(c, 8, A64_IP0, A64_LR, a64_post(A64_SP, ROOM));
    w->plan.has_syscalls = w->plan.uses_frame = true;
    return !c->unreachable;
}
