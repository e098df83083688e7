/* The alternate stack of a thread of the program's, which the kernel does not know of: it has one of Inlay's. */
#include "run/kernel.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)
#include INL_ARCH_HEADER(run, sigframe)

#include <errno.h>
#include <sys/syscall.h>

/* Emulators of Linux need not (QEMU 7). A stack of no size is refused where the mode is known, and nothing changes. */
bool run_altstack_disarms(void)
{
    static int known; /* 1, or -1 */
    int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now) return now > 0;
    stack_t none = {.ss_flags = (int)SS_AUTODISARM};
    now = sys_call2(SYS_sigaltstack, (long)&none, 0) == -EINVAL ? -1 : 1;
    __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    return now > 0;
}

stack_t run_altstack_own(const run_thread *t)
{
    int flags = run_here.engine->is_native && run_altstack_disarms() ? (int)SS_AUTODISARM : 0;
    return (stack_t){.ss_sp = t->signal_stack, .ss_flags = flags, .ss_size = t->signal_stack_size};
}

void run_altstack_for_exec(const run_thread *t, bool back)
{
    stack_t s = run_altstack_own(t);
    if (!back) s.ss_flags = t->altstack.ss_flags & (int)SS_AUTODISARM;
    sys_call2(SYS_sigaltstack, (long)&s, 0);
}

bool run_altstack_holds(const run_thread *t, uint64_t sp)
{
    uint64_t low = (uint64_t)(uintptr_t)t->altstack.ss_sp;
    return sp > low && sp - low <= t->altstack.ss_size;
}

bool run_altstack_active(const run_thread *t, uint64_t sp)
{
    return !(t->altstack.ss_flags & (int)SS_AUTODISARM) && run_altstack_holds(t, sp);
}

uint64_t run_altstack_top(const run_thread *t, const run_action *a, uint64_t sp, bool *bounded)
{
    *bounded = run_altstack_active(t, sp);
    sp -= RUN_RED_ZONE;
    if (!(a->flags & SA_ONSTACK) || !t->altstack.ss_size || run_altstack_active(t, sp)) return sp;
    *bounded = true;
    return (uint64_t)(uintptr_t)t->altstack.ss_sp + t->altstack.ss_size;
}

void run_altstack_take(run_thread *t, const stack_t *s, uint64_t sp)
{
    int mode = s->ss_flags & ~(int)SS_AUTODISARM;
    if (run_altstack_active(t, sp)) return;
    if (mode == SS_DISABLE) t->altstack = (stack_t){.ss_flags = s->ss_flags};
    else if ((mode == 0 || mode == SS_ONSTACK) && s->ss_size >= RUN_LEAST_ALTSTACK) t->altstack = *s;
}
