#include "tool/mutator.h"

#include <inlay/evaluate.h>

#include <stdio.h>
#include <unistd.h>

static inl_status stop(mutatee *m, inl_error *e)
{
    mutator_tell_stops(m, true);
    inl_status s = live_stop(&m->live, e);
    mutator_tell_stops(m, false);
    return s;
}

bool inlay_process_stop(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (m->is_stopped) return true;
    if (stop(m, &e) != INL_OK) return mutator_fail(&e);
    return m->is_stopped = true;
}

bool inlay_process_continue(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!m->is_stopped) return true;
    m->is_stopped = false;
    return live_release(&m->live, &e) == INL_OK || mutator_fail(&e);
}

bool inlay_process_is_stopped(const inlay_process *p)
{
    const mutatee *m = mutatee_of(p);
    return m && m->is_stopped;
}

/* --- single threads --- */

static bool is_thread_of(const mutatee *m, int tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", m->live.pid, tid);
    return access(path, F_OK) == 0;
}

static mutatee *with_thread(inlay_process *p, int tid)
{
    mutatee *m = mutatee_of(p);
    if (!m) mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    else if (mutator_has_ended(m)) mutator_refuse(INL_ERR_SYSTEM, "process %d has ended", m->live.pid);
    else if (!is_thread_of(m, tid)) mutator_refuse(INL_ERR_NOT_FOUND, "process %d has no thread %d", m->live.pid, tid);
    else return m;
    return NULL;
}

bool inlay_process_thread_stop(inlay_process *p, int tid)
{
    inl_error e = {0};
    mutatee *m = with_thread(p, tid);
    return m && (live_keep(&m->live, tid, &e) == INL_OK || mutator_fail(&e));
}

bool inlay_process_thread_continue(inlay_process *p, int tid)
{
    inl_error e = {0};
    mutatee *m = with_thread(p, tid);
    return m && (live_keep_no_more(&m->live, tid, &e) == INL_OK || mutator_fail(&e));
}

bool inlay_process_thread_is_stopped(const inlay_process *p, int tid)
{
    const mutatee *m = mutatee_of(p);
    return m && (m->is_stopped || live_is_kept(&m->live, tid));
}

int inlay_process_thread_number(inlay_process *p, int tid)
{
    inl_error e = {0};
    mutatee *m = with_thread(p, tid);
    if (!m) return -1;
    tool_process_mean(p);
    if (!m->has_tool && mutator_put(m, &e) != INL_OK) return mutator_fail(&e) - 1;
    int number = mutator_thread_number(m, tid);
    if (number < 0)
        mutator_refuse(INL_ERR_NOT_FOUND, "thread %d of process %d has only begun, or ends", tid, m->live.pid);
    return number;
}

/* What is in it may be known to this mutator alone. */
static inl_status is_ours(const mutatee *m, inl_error *e)
{
    if (!m->has_tool || live_is_held_by(m->live.pid, &tool_now->mutating.self)) return INL_OK;
    return inl_fail(e, INL_ERR_USAGE,
                    "what was inserted in process %d is not there any more (inlay detach, or another program was "
                    "executed); let it go, and attach anew",
                    m->live.pid);
}

typedef struct work {
    mutatee *m;
    const mutator_steps *steps;
    void *arg;
} work;

/* First a short stop, then as much as can be done while it runs. */
static inl_status prepare(work *w, bool runs, inl_error *e)
{
    mutatee *m = w->m;
    inl_status s = runs ? stop(m, e) : INL_OK;
    if (s != INL_OK) return s;
    s = runs ? is_ours(m, e) : INL_OK;
    if (s == INL_OK) s = w->steps->first(m, w->arg, runs, e);
    inl_status out = runs ? live_release(&m->live, s == INL_OK ? e : NULL) : INL_OK;
    if (s == INL_OK) s = out;
    if (s != INL_OK) return s;
    s = w->steps->meanwhile(m, w->arg, e);
    if (s == INL_OK) return s;
    if (runs && stop(m, NULL) != INL_OK) return s;
    w->steps->give_up(m, w->arg);
    if (runs) live_release(&m->live, NULL);
    return s;
}

static inl_status apart(void *arg, void *answer, inl_error *e)
{
    work *w = arg;
    inl_status s = w->steps->first ? prepare(w, true, e) : INL_OK;
    if (s == INL_OK) s = stop(w->m, e);
    if (s != INL_OK) return s;
    s = is_ours(w->m, e);
    if (s == INL_OK) s = w->steps->then(w->m, w->arg, answer, e);
    inl_status out = live_release(&w->m->live, s == INL_OK ? e : NULL);
    return s == INL_OK ? out : s;
}

inl_status mutator_work_in_steps(mutatee *m, const mutator_steps *steps, void *arg, void *answer, size_t size,
                                 inl_error *e)
{
    work w = {m, steps, arg};
    if (m->has_ended) return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended", m->live.pid);
    if (!m->is_stopped && m->live.kept.count) return apart(&w, answer, e); /* threads are traced from here */
    if (!m->is_stopped) return live_apart(m->live.pid, apart, &w, answer, size, e);
    inl_status s = steps->first ? prepare(&w, false, e) : INL_OK;
    return s == INL_OK ? steps->then(m, arg, answer, e) : s;
}

inl_status mutator_work(mutatee *m, inl_status (*f)(mutatee *, void *arg, void *answer, inl_error *), void *arg,
                        void *answer, size_t size, inl_error *e)
{
    const mutator_steps steps = {.then = f};
    return mutator_work_in_steps(m, &steps, arg, answer, size, e);
}
