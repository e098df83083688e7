/* Calls that the program wants to hear of itself (prctl's PR_SET_SYSCALL_USER_DISPATCH), as emulators of other systems
 * do: outside of a range of its code (or, on newer kernels, inside of one), and while a byte of its memory says so, a
 * call is not made but becomes SIGSYS.
 *
 * The kernel would go by where a call is really made from, which is Inlay. So it is not told; while a thread
 * diverts its calls none is made in the gate, and each is looked at here first. A new thread or process diverts
 * nothing. */
#include <errno.h>
#include <limits.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/sys.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif
#ifndef PR_SYS_DISPATCH_INCLUSIVE_ON
#define PR_SYS_DISPATCH_INCLUSIVE_ON 2
#endif
enum { ALLOWS, BLOCKS }; /* what the byte says */
enum { DIVERTED = 2 };   /* SYS_USER_DISPATCH, the code of the signal */

/* A byte that is the kernel's is refused last, and nothing is changed. */
static bool kernel_knows(uint64_t mode)
{
    return sys_call(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, (long)mode, 1, 1, LONG_MIN, 0) == -EFAULT;
}

static bool is_valid(uint64_t mode, const run_diversion *d)
{
    const bool is_range = d->low + d->size > d->low;
    switch (mode) {
    case PR_SYS_DISPATCH_OFF: return !d->low && !d->size && !d->selector;
    case PR_SYS_DISPATCH_ON: return !d->low || is_range;
    case PR_SYS_DISPATCH_INCLUSIVE_ON: return is_range && kernel_knows(mode);
    default: return false;
    }
}

long run_divert_set(run_thread *t, const weave_context *c)
{
    const uint64_t mode = run_arg(c, 1);
    run_diversion d = {
        .on = mode != PR_SYS_DISPATCH_OFF, .low = run_arg(c, 2), .size = run_arg(c, 3), .selector = run_arg(c, 4)};
    if (!is_valid(mode, &d)) return -EINVAL;
    if (d.on && (int64_t)d.selector < 0) return -EFAULT;
    if (mode == PR_SYS_DISPATCH_INCLUSIVE_ON) { /* calls are made from all the rest, which goes around the end */
        d.low += d.size;
        d.size = -d.size;
    }
    inl_log(INL_LOG_SYSCALL, "calls are diverted: %d", d.on);
    if (d.on) run_syscalls_keep_all();
    t->divert = d;
    return 0;
}

bool run_divert(run_thread *t)
{
    const run_diversion *d = &t->divert;
    uint8_t says = BLOCKS;
    if (!d->on || t->ctx.pc - d->low < d->size) return false;
    if (d->selector && !run_read(&says, d->selector, 1)) run_process_die(t, SIGSEGV);
    if (says == ALLOWS) return false;
    if (says != BLOCKS) run_process_die(t, SIGSYS);
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSYS;
    info.si_code = DIVERTED;
    info.si_call_addr = (void *)(uintptr_t)t->ctx.pc;
    info.si_syscall = (int)run_number(&t->ctx);
    info.si_arch = RUN_AUDIT_ARCH;
    run_set_clobbers(&t->ctx);
    run_signal_force(t, &info);
    return true;
}
