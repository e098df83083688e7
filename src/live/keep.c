/* Single threads that stand still while the others of their process run: tracees in a stop of ptrace, with registers
 * that are right should whoever keeps them die. */
#include "live/live.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

bool live_is_kept(const live_process *p, pid_t tid)
{
    for (size_t i = 0; i < p->kept.count; i++)
        if (p->kept.items[i] == tid) return true;
    return false;
}

static void forget(live_process *p, pid_t tid)
{
    for (size_t i = p->kept.count; i-- > 0;)
        if (p->kept.items[i] == tid) p->kept.items[i] = p->kept.items[--p->kept.count];
}

inl_status live_keep(live_process *p, pid_t tid, inl_error *e)
{
    remote r = {0};
    bool gone = false, all_stand = p->threads.count != 0;
    if (live_is_kept(p, tid)) return INL_OK;
    inl_status s = all_stand ? INL_OK : live_seize(p, tid, &gone, e);
    if (s == INL_OK && gone) s = inl_fail(e, INL_ERR_NOT_FOUND, "process %d has no thread %d", p->pid, tid);
    if (s == INL_OK && !all_stand) s = remote_take(&r, tid, e); /* its call is made once more */
    if (s == INL_OK && !inl_vec_push(&p->kept, tid)) s = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (s != INL_OK && !all_stand) ptrace(PTRACE_DETACH, tid, 0, 0);
    return s;
}

inl_status live_keep_no_more(live_process *p, pid_t tid, inl_error *e)
{
    if (!live_is_kept(p, tid)) return INL_OK;
    forget(p, tid);
    if (p->threads.count || ptrace(PTRACE_DETACH, tid, 0, 0) == 0 || errno == ESRCH) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "thread %d of process %d does not go on: %s", tid, p->pid, strerror(errno));
}

/* The first thread's status is told when all others have been waited for. */
static bool reap(live_process *p, pid_t tid, int how, int *status)
{
    int its;
    if (waitpid(tid, &its, __WALL | how) != tid || WIFSTOPPED(its)) return false;
    forget(p, tid);
    if (tid != p->pid) return false;
    *status = its;
    return true;
}

static bool reap_all(live_process *p, bool at_rest, int how, int *status)
{
    bool ended = false;
    for (size_t i = p->kept.count; i-- > 0;)
        if (p->kept.items[i] != p->pid) reap(p, p->kept.items[i], how, status);
    for (size_t i = at_rest ? p->seized.count : 0; i-- > 0;)
        if (p->seized.items[i] != p->pid) reap(p, p->seized.items[i], how, status);
    if (live_is_kept(p, p->pid) || (at_rest && p->seized.count)) ended = reap(p, p->pid, how, status);
    return ended;
}

bool live_reap(live_process *p, bool at_rest, int *status) { return reap_all(p, at_rest, WNOHANG, status); }
bool live_reap_killed(live_process *p, bool at_rest, int *status) { return reap_all(p, at_rest, 0, status); }

void live_keep_none(live_process *p)
{
    while (p->kept.count) live_keep_no_more(p, p->kept.items[0], NULL);
}
