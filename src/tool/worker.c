/* Threads of the tool's own (include/inlay/worker.h): the runtime's workers (run/worker.h), with what the tool part and
 * its C library need of a thread.
 *
 * What main begins is remembered until the program does. A handle's memory is the process's: where the tool is carried,
 * main runs again, and begins them again. */
#include "tool/glibc.h"
#include "tool/state.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "run/worker.h"

#include <inlay/tool.h>
#include <inlay/worker.h>

#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct inlay_worker {
    run_worker here; /* the first member: run_worker's is cast */
    inlay_worker *next;
    const char *name;
    void (*run)(void *arg);
    void *arg;
};
_Static_assert(offsetof(inlay_worker, here) == 0, "a runtime's worker is one of the tool's");

/* It has several threads, one after the other. */
static void comes(run_worker *here)
{
    run_thread *t = run_self();
    if (t->tls) tls_enter(t->tls, t->tid);
    sys_call2(SYS_prctl, PR_SET_NAME, (long)((inlay_worker *)here)->name);
}

static void work(run_worker *here)
{
    inlay_worker *w = (inlay_worker *)here;
    run_thread *t = run_self();
    TOOL_DOING(ON_WORKER) w->run(w->arg);
    tool_thread_end(t);
    tls_leave();
}

static bool begin(inlay_worker *w)
{
    long error = run_worker_start(&w->here);
    if (error)
        tool_say("the worker %s cannot begin: %s (ulimit -u says how many threads there may be)", w->name,
                 strerror((int)-error));
    return !error;
}

void tool_workers_begin(void)
{
    tool_workers *all = &tool_now->workers;
    all->begun = true;
    for (inlay_worker *w = all->first; w; w = w->next) begin(w);
    all->first = NULL;
}

/* NULL: nothing is. */
static const char *barred(void)
{
    if (tool_now->options.mutating) return "a mutator has none";
    if (tool_here.holds_lock) return "not from a callback that is shown code";
    return run_here.exiting ? "the program is about to end" : NULL;
}

inlay_worker *inlay_worker_start(const char *name, void (*run)(void *arg), void *arg)
{
    tool_workers *all = &tool_now->workers;
    const char *why = run ? barred() : "its function is NULL";
    if (!name) name = "worker";
    inlay_worker *w = why ? NULL : tool_alloc(sizeof *w);
    if (!w) {
        inlay_warn("inlay_worker_start: %s: %s", name, why ? why : "out of memory");
        return NULL;
    }
    *w = (inlay_worker){
        .here = {.comes = comes, .run = work, .state = RUN_WORKER_ENDED}, .name = name, .run = run, .arg = arg};
    if (all->begun) return begin(w) ? w : NULL;
    inlay_worker **last = &all->first;
    while (*last) last = &(*last)->next;
    return *last = w;
}

bool inlay_worker_is_here(void) { return run_worker_here() != NULL; }

bool inlay_worker_sleep(uint64_t nanoseconds)
{
    run_worker *here = run_worker_here();
    if (here) return run_worker_sleep(here, nanoseconds < INT64_MAX ? (int64_t)nanoseconds : -1);
    tool_say_limited("inlay_worker_sleep is for workers");
    return false;
}

void inlay_worker_wake(inlay_worker *w)
{
    if (w) run_worker_wake(&w->here);
}

bool inlay_worker_end(inlay_worker *w, uint64_t nanoseconds)
{
    if (!w || !tool_now->workers.begun) return true;
    run_worker_ask(&w->here);
    return run_worker_await(&w->here, nanoseconds < INT64_MAX ? (int64_t)nanoseconds : -1);
}
