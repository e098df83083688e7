/* System calls of Inlay's own that write, made so that the program does not learn of their failure: a pipe that nobody
 * reads any more and a file that may not grow are told to the thread by a signal besides, SIGPIPE or SIGXFSZ, whose
 * default is to end the process.
 *
 *     both signals are blocked; the call; what it has raised is taken back; the mask is as it was
 *
 * The kernel sends such a signal to the thread alone, so no other thread and no descriptor of another (signalfd) gets
 * it meanwhile. Signals are not queued: where one of the program's waits for the thread, blocked, the call's is
 * dropped; one that waits for the whole process comes behind it. So where one waited before, what is taken is the
 * call's only if it looks like it and another one still waits. */
#include "run/confine.h"
#include "run/kernel.h"
#include "base/sys.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#define BIT(signo) (1ull << ((signo)-1))

static uint64_t waiting(void)
{
    uint64_t set = 0;
    sys_call2(SYS_rt_sigpending, (long)&set, sizeof set);
    return set;
}

/* `before`: one of the program's waited. */
static void take_back(int signo, bool before)
{
    static const struct timespec now = {0, 0};
    uint64_t set = BIT(signo);
    siginfo_t info;
    if (sys_call4(SYS_rt_sigtimedwait, (long)&set, (long)&info, (long)&now, sizeof set) != signo) return;
    long pid = sys_call0(SYS_getpid);
    bool as_the_calls = info.si_code == SI_USER && info.si_pid == pid;
    if (before && !(as_the_calls && waiting() & set))
        sys_call4(SYS_rt_tgsigqueueinfo, pid, sys_call0(SYS_gettid), signo, (long)&info);
}

/* Filters of the program's may not know these calls, and end it for them. */
static bool may_take_back(void)
{
    const run_thread *self = run_here.threads ? run_self() : NULL;
    return !self || !self->filters ||
           (run_confine_lets(self, SYS_rt_sigpending) && run_confine_lets(self, SYS_rt_sigtimedwait) &&
            run_confine_lets(self, SYS_rt_tgsigqueueinfo));
}

long run_call_quietly(long nr, long a, long b, long c, long d)
{
    uint64_t set = BIT(SIGPIPE) | BIT(SIGXFSZ), mask = 0;
    if (!may_take_back()) return sys_call4(nr, a, b, c, d);
    sys_call4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, (long)&mask, sizeof set);
    uint64_t before = waiting();
    long r = sys_call4(nr, a, b, c, d);
    if (r == -EPIPE) take_back(SIGPIPE, before & BIT(SIGPIPE));
    if (r == -EFBIG) take_back(SIGXFSZ, before & BIT(SIGXFSZ));
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask);
    return r;
}
