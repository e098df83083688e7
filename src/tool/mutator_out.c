/* A mutator's file leaves a process: what was inserted has been removed, so what is left is new code that threads may
 * still be in, and the file itself, which leaves as a tool does (live/ask.c). */
#include "tool/mutator.h"

#include <inlay/process.h>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 20 /* seconds */ };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inl_status leave(void *arg, void *answer, inl_error *e)
{
    const mutatee *m = arg;
    (void)answer;
    int out = open("/dev/null", O_WRONLY | O_CLOEXEC); /* it has nothing to say */
    inl_status s = live_ask(m->live.pid, LIVE_LEAVE, out, e);
    close(out);
    return s;
}

static inl_status take_out(mutatee *m, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    inl_status s = INL_OK;
    for (double end = now() + PATIENCE; m->dead && s == INL_OK; nanosleep(&nap, NULL)) {
        s = mutator_drop_dead(m, e);
        if (s == INL_OK && m->dead && now() > end)
            s = inl_fail(e, INL_ERR_SYSTEM, "a thread of process %d does not come out of code that has been removed",
                         m->live.pid);
    }
    return s == INL_OK && m->has_tool ? live_apart(m->live.pid, leave, m, NULL, 0, e) : s;
}

bool inlay_process_take_out(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, "this process is not another one");
    if (m->is_stopped)
        return mutator_refuse(INL_ERR_USAGE, "process %d is stopped; let it go on first", m->live.pid);
    if (m->pieces)
        return mutator_refuse(INL_ERR_USAGE, "what was inserted in process %d is still there; remove it, and commit",
                              m->live.pid);
    inl_status s = m->has_ended || m->has_execed || m->is_broken ? INL_OK : take_out(m, &e);
    if (s != INL_OK && !mutator_has_ended(m)) return mutator_fail(&e);
    mutator_forget(m);
    return true;
}
