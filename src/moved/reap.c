/* The one who put the tool into a program that it has started is a child of the program's, without a signal at its end.
 * An ordinary wait does not find it, one for all kinds of children does: so it is reaped at the first call that comes
 * by the gate once it has ended, and calls that wait for children come by the gate for its sake. It ends as soon as the
 * program runs. */
#include "moved/private.h"
#include "base/sys.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void moved_reaps(int helper)
{
    moved_now.reaps.helper = helper;
    moved_now.reaps.parent = (int)sys_call0(SYS_getpid);
}

/* A program that confines itself may forbid reaping from then on. */
static bool confines(long nr) { return nr == SYS_prctl || nr == SYS_seccomp; }

bool moved_waits(long nr) { return moved_now.reaps.helper && (nr == SYS_wait4 || nr == SYS_waitid); }

void moved_reap_now(long nr)
{
    int helper = moved_now.reaps.helper;
    long got;
    if (!helper || moved_now.reaps.parent != (int)sys_call0(SYS_getpid)) return;
    do got = sys_call4(SYS_wait4, helper, 0, __WALL | (moved_waits(nr) || confines(nr) ? 0 : WNOHANG), 0);
    while (got == -EINTR);
    if (got) moved_now.reaps.helper = 0;
}
