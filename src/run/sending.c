/* Signals that the program sends to itself with a siginfo of its own making (rt_sigqueueinfo,
 * rt_tgsigqueueinfo, pidfd_send_signal): a crash handler hands a fault on this way, as the kernel described it.
 *
 * A handler takes a positive si_code of SIGSEGV and its like for a fault of the instruction at hand. Such a
 * signal therefore travels through the kernel with another code, by which Inlay knows that it was sent, and
 * gets its own back before the program sees it. The kernel lets a thread send such codes to itself alone. */
#include "run/kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* Codes below 1 << 24 become negative numbers that nothing else uses. */
enum { SENT = (int)0xa5000000, LARGEST = (1 << 24) - 1, KERNEL_BYTES = 48 };

bool run_signal_mark(siginfo_t *info)
{
    if (!(RUN_BIT(info->si_signo) & RUN_FAULTS) || info->si_code <= 0 || info->si_code > LARGEST) return false;
    info->si_code ^= SENT;
    /* With a code that the kernel does not know it wants zeros where its own structure ends. */
    memset((char *)info + KERNEL_BYTES, 0, sizeof *info - KERNEL_BYTES);
    return true;
}

bool run_signal_unmark(siginfo_t *info)
{
    int code = info->si_code ^ SENT;
    if (code <= 0 || code > LARGEST) return false;
    info->si_code = code;
    return true;
}

void run_signal_send_back(const siginfo_t *info)
{
    siginfo_t copy = *info;
    run_signal_mark(&copy);
    sys_call4(SYS_rt_tgsigqueueinfo, sys_call0(SYS_getpid), sys_call0(SYS_gettid), info->si_signo, (long)&copy);
}

bool run_signal_send_last(const run_thread *t, const siginfo_t *info)
{
    long pid = sys_call0(SYS_getpid), tid = sys_call0(SYS_gettid);
    int signo = info->si_signo;
    if (pid == 1) return false; /* the first of a namespace gets none that would end it */
    if (!t->filters && !sys_call4(SYS_rt_tgsigqueueinfo, pid, tid, signo, (long)info)) return true;
    return !sys_call3(SYS_tgkill, pid, tid, signo); /* that filters let programs abort by */
}

/* Would the kernel let this thread send a code like that by this descriptor? Signal 0 asks. */
static bool is_own_pidfd(const weave_context *c)
{
    siginfo_t nothing;
    memset(&nothing, 0, sizeof nothing);
    nothing.si_code = SI_KERNEL;
    return !sys_call4(SYS_pidfd_send_signal, (long)run_arg(c, 0), 0, (long)&nothing, (long)run_arg(c, 3));
}

static bool goes_to_itself(const weave_context *c)
{
    switch (run_number(c)) {
    case SYS_rt_sigqueueinfo: return (int)run_arg(c, 0) == (int)sys_call0(SYS_gettid);
    case SYS_rt_tgsigqueueinfo: return (int)run_arg(c, 1) == (int)sys_call0(SYS_gettid);
    default: return is_own_pidfd(c);
    }
}

long run_sys_queue(run_thread *t, weave_context *c)
{
    siginfo_t info;
    int place = run_number(c) == SYS_rt_tgsigqueueinfo ? 3 : 2, signo = (int)run_arg(c, place - 1);
    if (!run_arg(c, place) || !run_read(&info, run_arg(c, place), sizeof info)) return run_pass(t, c);
    bool is_wrong = run_number(c) == SYS_pidfd_send_signal && info.si_signo != signo;
    info.si_signo = signo; /* as the other two calls take it */
    if (is_wrong || signo < 1 || signo > 64 || !goes_to_itself(c) || !run_signal_mark(&info)) return run_pass(t, c);
    long args[6];
    for (int i = 0; i < 6; i++) args[i] = i == place ? (long)&info : (long)run_arg(c, i);
    return run_pass_args(t, run_number(c), args);
}

const run_syscall_row run_sending_syscalls[] = {
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo", run_sys_queue},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", run_sys_queue},
    {SYS_pidfd_send_signal, "pidfd_send_signal", run_sys_queue},
    {0, NULL, NULL},
};
