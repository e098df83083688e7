/* A mutator's file leaves a process, as a tool does (live/ask.c): what was inserted has been removed, and threads that
 * still are in new code are led back to old code. */
#include "tool/mutator.h"

#include <inlay/process.h>

#include <fcntl.h>
#include <unistd.h>

inl_status mutator_leave(void *pid, void *answer, inl_error *e)
{
    (void)answer;
    int out = open("/dev/null", O_WRONLY | O_CLOEXEC); /* it has nothing to say */
    inl_status s = live_ask(*(const pid_t *)pid, LIVE_LEAVE, out, &tool_now->mutating.self, e);
    close(out);
    return s == INL_ERR_NOT_FOUND ? INL_OK : s; /* somebody else has done it */
}

static inl_status take_out(mutatee *m, inl_error *e)
{
    inl_status s = m->dead ? mutator_drop_dead(m, e) : INL_OK;
    return s == INL_OK && m->has_tool ? live_apart(m->live.pid, mutator_leave, &m->live.pid, NULL, 0, e) : s;
}

bool inlay_process_take_out(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (m->is_stopped) return mutator_refuse(INL_ERR_USAGE, "process %d is stopped; let it go on first", m->live.pid);
    if (m->live.kept.count)
        return mutator_refuse(INL_ERR_USAGE, "thread %d of process %d is stopped; let it go on first",
                              m->live.kept.items[0], m->live.pid);
    bool is_past = mutator_has_ended(m) || m->has_execed || m->is_former;
    if (m->pieces && !is_past)
        return mutator_refuse(INL_ERR_USAGE, "what was inserted in process %d is still there; remove it, and commit",
                              m->live.pid);
    if (m->is_broken && !is_past)
        return mutator_refuse(INL_ERR_USAGE, "process %d: an earlier change failed in its midst; let it go",
                              m->live.pid);
    if (!is_past) mutator_quiet(m); /* a thread that waits at a breakpoint is in the file's code */
    inl_status s = is_past ? INL_OK : take_out(m, &e);
    if (s != INL_OK && !mutator_is_ending(m)) {
        mutator_tell_kinds(m);
        return mutator_fail(&e);
    }
    m->has_tool = false;
    if (mutator_children_out(m, &e) != INL_OK) return mutator_fail(&e);
    mutator_forget(m);
    return true;
}
