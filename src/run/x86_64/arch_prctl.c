/* arch_prctl: the bases of FS and GS are the program's own affair only as long as it does not look.
 * FS is the program's while its code runs; GS is Inlay's, and the program's is a number in ctx. */
#include <asm/prctl.h>
#include <errno.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigvectors.h"

#ifndef ARCH_REQ_XCOMP_PERM
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif
#define SHADOW_STACK_ENABLE 0x5001
#define SHADOW_STACK_STATUS 0x5005
#define USER_END            0x7ffffffff000ull

/* Components of the vector state that must be asked for: threads save them from now on. */
static long request_state(int option, uint64_t value)
{
    long answer = sys_call2(SYS_arch_prctl, option, (long)value);
    if (!answer) run_vectors_permitted();
    return answer;
}

/* Calls push return addresses that differ from where they return to. So where the kernel has shadow stacks the answer
 * is that of a processor without them; the other requests are harmless then, and the kernel's. */
static long refuse_shadow_stack(void)
{
    uint64_t features;
    long answer = sys_call2(SYS_arch_prctl, SHADOW_STACK_STATUS, (long)&features);
    return answer < 0 ? answer : -EOPNOTSUPP;
}

long run_arch_prctl(run_thread *t, int option, uint64_t value)
{
    weave_context *c = &t->ctx;
    switch (option) {
    case ARCH_SET_FS:
    case ARCH_SET_GS:
        if (value >= USER_END) return -EPERM;
        if (option == ARCH_SET_FS) c->tls_base = t->frame.app_tls_base = value;
        else c->gs_base = t->frame.app_gs_base = value;
        return 0;
    case ARCH_GET_FS: return run_write(value, &c->tls_base, 8) ? 0 : -EFAULT;
    case ARCH_GET_GS: return run_write(value, &c->gs_base, 8) ? 0 : -EFAULT;
    case ARCH_REQ_XCOMP_PERM: return request_state(option, value);
    default: break;
    }
    if (option == SHADOW_STACK_ENABLE) return refuse_shadow_stack();
    return sys_call2(SYS_arch_prctl, option, (long)value);
}

static long do_arch_prctl(run_thread *t, weave_context *c)
{
    return run_arch_prctl(t, (int)run_arg(c, 0), run_arg(c, 1));
}

const run_syscall_row run_isa_syscalls[] = {
    {SYS_arch_prctl, "arch_prctl", do_arch_prctl},
    {0, NULL, NULL},
};
