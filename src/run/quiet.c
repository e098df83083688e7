/* System calls of Inlay's own that write, made so that the program does not learn of their failure: a pipe that nobody
 * reads any more and a file that may not grow are told to the thread by a signal besides, SIGPIPE or SIGXFSZ, whose
 * default is to end the process.
 *
 *     all signals are blocked; the call; what it has raised is taken back; the mask is as it was
 *
 * All are, since a handler's frame would show the program a mask that is not its own. So the call must not wait: to a
 * pipe or socket no more is written at a time than it has room for.
 *
 * The kernel sends such a signal to the thread alone, so no other thread and no descriptor of another (signalfd) gets
 * it meanwhile. Signals are not queued: where one of the program's waits for the thread, blocked, the call's is
 * dropped; one that waits for the whole process comes behind it. So where one waited before, what is taken is the
 * call's only if it looks like it and another one still waits. */
#include "run/confine.h"
#include "run/kernel.h"
#include "base/sys.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
    uint64_t set = RUN_BIT(signo);
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
    if (!may_take_back()) return sys_call4(nr, a, b, c, d);
    uint64_t mask = run_kernel_mask_all(), before = waiting();
    long r = sys_call4(nr, a, b, c, d);
    if (r == -EPIPE) take_back(SIGPIPE, before & RUN_BIT(SIGPIPE));
    if (r == -EFBIG) take_back(SIGXFSZ, before & RUN_BIT(SIGXFSZ));
    run_kernel_mask_set(mask);
    return r;
}

/* How much can be written without waiting; a pipe that is full is waited for. 0: it cannot be known. */
static size_t room(int fd, size_t size)
{
    struct stat st;
    struct pollfd of = {.fd = fd, .events = POLLOUT};
    long r = -EINTR;
    if (sys_call2(SYS_fstat, fd, (long)&st)) return size;
    if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode)) return size;
    if (run_here.threads && run_self()->filters && !run_confine_lets(run_self(), SYS_ppoll)) return 0;
    while (r == -EINTR) r = sys_call(SYS_ppoll, (long)&of, 1, 0, 0, 0, 0);
    return size < PIPE_BUF ? size : PIPE_BUF;
}

long run_write_quietly(int fd, const void *bytes, size_t size)
{
    size_t most = room(fd, size);
    if (!most && size) return sys_call3(SYS_write, fd, (long)bytes, (long)size);
    return run_call_quietly(SYS_write, fd, (long)bytes, (long)most, 0);
}
