/* A process that asks to be traced (PTRACE_TRACEME) is let go: from behind that call on the program's own code
 * runs, where its tracer expects it, with the dispositions, mask and stacks that were virtual until then. What
 * was counted until then is reported as if the process had ended.
 *
 * It leaves by rt_sigreturn, with a frame on the program's own stack: the one call that puts the mask, all
 * registers and the alternate stack in place at once, so that no signal finds anything in between. */
#include "run/kernel.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

/* Only what is this thread's alone can be given back to the kernel. */
static bool is_alone(const run_thread *t)
{
    return !run_here.engine->is_native && t->signals->users == 1 && (t->is_vfork_child || run_here.thread_count == 1);
}

static void queue(const siginfo_t *info)
{
    if (run_signal_is_nudge(info)) return;
    sys_call4(SYS_rt_tgsigqueueinfo, sys_call0(SYS_getpid), sys_call0(SYS_gettid), info->si_signo, (long)info);
}

void run_signals_queue(run_thread *t)
{
    if (t->pending.present) queue(&t->pending.info);
    t->pending.present = false;
    for (; t->held_set; t->held_set &= t->held_set - 1)
        queue(&t->held[__builtin_popcountll(RUN_FAULTS & ((t->held_set & -t->held_set) - 1))]);
}

void run_let_go(run_thread *t)
{
    run_action frame = {.flags = SA_RESTORER};
    siginfo_t info;
    if (!is_alone(t)) return;
    memset(&info, 0, sizeof info);
    run_kernel_mask_all();
    weave_context before = t->ctx;
    if (!run_sigframe_push(t, SIGTRAP, &info, &frame, t->sigmask)) {
        t->ctx = before;
        run_mask_apply(t);
        return;
    }
    run_say("process %ld is being traced (PTRACE_TRACEME); it goes on without the tool", sys_call0(SYS_getpid));
    uint64_t sp = run_sp(&t->ctx);
    if (!t->is_vfork_child) run_process_end(t, 0, 0);
    if (run_here.engine->watch) run_here.engine->watch->no_more();
    run_signals_queue(t);
    run_signals_give_back(t->signals);
    run_sigreturn_for_good(sp + RUN_HANDLER_POPS, &before);
}
