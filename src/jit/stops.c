/* A debugger's stops: breakpoints, steps and signals at the program's own instructions; and reports in the midst.
 *
 * A stop is at a boundary, where a thread has all its registers in its context. So a breakpoint is nothing but a rule
 * for translation: no run goes on over its address and none that begins there is kept, so that whoever comes there
 * comes through the dispatcher. The program's memory is not touched. A step is a run of one instruction (step.c).
 *
 *     jit_stops_due        at a boundary: is there anything to stop for?
 *       jit_stops_come     the thread stops; or it waits for another's stop to be over
 *         gather           all the others come to a boundary too, by nudges
 *         debugger.stopped is told, in the thread that has stopped; says how each thread is to go on; returns
 *
 * One thread at a time has the debugger's ear (`stage` is not RUNNING then); another that has something to tell waits,
 * and looks again afterwards whether it still has. A thread that does not come within some time (it sleeps in the
 * kernel until its child has done an exec) goes on sleeping, and waits when it comes.
 *
 * A report that is asked for from outside is made in such a stop too, with a debugger or without one, by whichever
 * thread comes first; it is told to the tool instead. A thread within a procedure that a function of the tool's stands
 * in for may have what the report needs, and is waited for.
 *
 * All of it is under the process's lock, what nudges set apart. */
#include "jit/core.h"
#include "run/kernel.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

enum { FUTEX_WAIT = 128, FUTEX_WAKE = 129, NAP = 2000000, AGAIN = 5, LONG = 3000, LONG_IN_VFORK = 100 };
enum { RUNNING, STOPPING, STOPPED }; /* jit_stops.stage */

static int64_t milliseconds(void)
{
    struct timespec now = {0};
    sys_call2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool counts(const run_thread *t) { return t->tid && !t->is_vfork_child && !t->has_ended; }

/* --- what there is to stop for --- */

bool jit_stops_at(uint64_t app) { return jit.stops.points.count && inl_map_get(&jit.stops.points, app, NULL); }

static bool memory_is(const jit_watch *w)
{
    uint8_t now[sizeof w->before];
    return !run_read(now, w->low, w->size) || !memcmp(now, w->before, w->size);
}

static const jit_watch *changed(void)
{
    for (unsigned i = 0; i < jit.stops.watch_count; i++)
        if (!memory_is(&jit.stops.watches[i])) return &jit.stops.watches[i];
    return NULL;
}

static void see_memory(void)
{
    for (unsigned i = 0; i < jit.stops.watch_count; i++) {
        jit_watch *w = &jit.stops.watches[i];
        if (!run_read(w->before, w->low, w->size)) memset(w->before, 0, sizeof w->before);
    }
}

static enum jit_stop_why reason(const run_thread *t)
{
    const jit_own *o = jit_of(t);
    if (__atomic_load_n(&jit.stops.asked, __ATOMIC_ACQUIRE) != jit.stops.answered)
        return jit.stops.answered ? JIT_STOP_ASKED : JIT_STOP_BEGIN;
    if (o->stepped && changed()) return JIT_STOP_WATCH;
    if (jit_stops_at(t->ctx.pc)) return JIT_STOP_POINT;
    if (o->go == JIT_GO_STEP && o->stepped && t->ctx.pc - o->step_low >= o->step_size) return JIT_STOP_STEP;
    return JIT_STOP_NONE;
}

static uint32_t reports_to(void) { return __atomic_load_n(&jit.stops.reports_to, __ATOMIC_ACQUIRE); }
static bool is_taken(void) { return __atomic_load_n(&jit.stops.taken, __ATOMIC_ACQUIRE) != 0; }

/* Is there a stop that the thread is to wait for? */
static bool must_wait(const run_thread *t) { return jit.stops.stage != RUNNING && !(jit.stops.reports && t->calls); }

bool jit_stops_due(const run_thread *t)
{
    if (t->is_vfork_child) return false;
    if (must_wait(t) || (!t->calls && (reports_to() || is_taken()))) return true;
    return jit.stops.on && (jit_of(t)->go == JIT_GO_HOLD || reason(t) != JIT_STOP_NONE);
}

bool jit_stops_step(const run_thread *t)
{
    if (!jit.stops.on) return false;
    if (t->is_vfork_child) return jit_stops_at(t->ctx.pc); /* which it does not stop at, nor may anything lead there */
    return jit_of(t)->go == JIT_GO_STEP || jit.stops.watch_count;
}

void jit_stops_entered(run_thread *t) { jit_of(t)->stepped = true; }

void jit_stops_left(run_thread *t)
{
    bool again = t->leave == RUN_LEAVE_STALE || t->leave == RUN_LEAVE_STEP ||
                 (t->leave == RUN_LEAVE_SECTION && t->leave_arg >= JIT_SECTION_ENTERED);
    if (again) jit_of(t)->stepped = false;
}

void jit_stops_delivered(run_thread *t, uint64_t before)
{
    if (jit.stops.on && t->ctx.pc != before && jit_of(t)->go == JIT_GO_STEP) {
        jit_of(t)->step_size = 0;
        jit_of(t)->stepped = true;
    }
}

/* --- threads wait --- */

static void nudge(int tid)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSYS;
    info.si_code = RUN_NUDGE;
    info.si_value.sival_int = JIT_NUDGE_COME;
    sys_call4(SYS_rt_tgsigqueueinfo, sys_call0(SYS_getpid), tid, SIGSYS, (long)&info);
}

/* Lock held, and released meanwhile. */
static void sleep_a_little(long nanoseconds)
{
    const struct timespec nap = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    uint32_t seen = jit.stops.turns;
    inl_lock_release(&run_here.lock);
    sys_call4(SYS_futex, (long)&jit.stops.turns, FUTEX_WAIT, (long)seen, (long)&nap);
    inl_lock_take(&run_here.lock);
}

static void wake_all(void)
{
    __atomic_add_fetch(&jit.stops.turns, 1, __ATOMIC_SEQ_CST);
    sys_call3(SYS_futex, (long)&jit.stops.turns, FUTEX_WAKE, INT32_MAX);
}

static bool is_asked(void) { return __atomic_load_n(&jit.stops.asked, __ATOMIC_ACQUIRE) != jit.stops.answered; }

static void wait_turn(run_thread *t)
{
    jit_own *o = jit_of(t);
    if (!must_wait(t) && o->go != JIT_GO_HOLD) return;
    o->parked = true;
    wake_all();
    while (must_wait(t) || (jit.stops.on && o->go == JIT_GO_HOLD && !is_asked() && !reports_to()))
        sleep_a_little(1000000000);
    o->parked = false;
}

/* It is at a boundary and waits there, for the same or for all to leave. */
static bool has_come(const run_thread *t) { return jit_of(t)->parked || jit_of(t)->leaves; }

/* All the others have come; or it has taken too long. */
static void gather(const run_thread *me)
{
    int64_t begin = milliseconds(), next = 0;
    for (;;) {
        bool missing = false, in_vfork = false;
        int64_t now = milliseconds();
        for (const run_thread *t = run_here.threads; t; t = t->next) {
            in_vfork |= t->is_vfork_child;
            if (t == me || !counts(t) || has_come(t)) continue;
            missing = true;
            if (now >= next && !(jit.stops.reports && t->calls)) nudge(t->tid);
        }
        if (now >= next) next = now + AGAIN;
        if (!missing || now - begin > (in_vfork ? LONG_IN_VFORK : LONG)) return;
        sleep_a_little(NAP);
    }
}

/* One that has not come and may have what a report needs; others sleep in the kernel. */
static const run_thread *in_tool(const run_thread *me)
{
    const run_thread *t = run_here.threads;
    while (t && (t == me || !counts(t) || has_come(t) || !(t->frame.in_tool || t->calls))) t = t->next;
    return t;
}

/* Lock held, and released meanwhile. */
static void report(run_thread *t)
{
    jit_stops *s = &jit.stops;
    const jit_reporter *r = &jit.options.reporter;
    uint32_t has_his = __atomic_exchange_n(&s->taken, 0, __ATOMIC_ACQ_REL);
    if (has_his) {
        inl_lock_release(&run_here.lock);
        r->taken(has_his);
        inl_lock_take(&run_here.lock);
    }
    uint32_t who = t->calls ? 0 : reports_to();
    if (!who) return;
    s->stage = STOPPING;
    s->reports = true;
    gather(t);
    s->stage = STOPPED;
    const run_thread *late = in_tool(t);
    inl_lock_release(&run_here.lock);
    r->make(t, who, late);
    inl_lock_take(&run_here.lock);
    __atomic_compare_exchange_n(&s->reports_to, &who, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    s->reports = false;
    s->stage = RUNNING;
    wake_all();
}

static void go_on(void)
{
    see_memory();
    for (run_thread *t = run_here.threads; t; t = t->next) jit_of(t)->stepped = false;
    jit.stops.stage = RUNNING;
    wake_all();
}

static void tell(run_thread *t, enum jit_stop_why why, const siginfo_t *info)
{
    jit_stop stop = {.why = why, .info = info};
    const jit_watch *w = why == JIT_STOP_WATCH ? changed() : NULL;
    if (w) stop.addr = w->low;
    jit.stops.stage = STOPPING;
    gather(t);
    jit.stops.stage = STOPPED;
    jit.stops.answered = __atomic_load_n(&jit.stops.asked, __ATOMIC_ACQUIRE);
    inl_lock_release(&run_here.lock);
    jit.stops.debugger.stopped(jit.stops.debugger.arg, t, &stop);
    inl_lock_take(&run_here.lock);
    go_on();
}

/* Lock not held. The number of the signal that the thread is to get; with `info` it has stopped for that one. */
static int stop(run_thread *t, const siginfo_t *info)
{
    jit_own *o = jit_of(t);
    int signo = 0;
    run_hung_end(t);
    run_kernel_mask_set(~RUN_FAULTS); /* what comes now waits in the kernel */
    inl_lock_take(&run_here.lock);
    wait_turn(t);
    report(t);
    enum jit_stop_why why = info ? JIT_STOP_SIGNAL : jit.stops.on ? reason(t) : JIT_STOP_NONE;
    if (jit.stops.on && why != JIT_STOP_NONE) {
        o->signo = 0;
        tell(t, why, info);
    } else if (info) {
        o->signo = (uint8_t)info->si_signo;
    }
    wait_turn(t);
    signo = o->signo;
    o->signo = 0;
    inl_lock_release(&run_here.lock);
    if (!t->mask_is_ours) run_mask_apply(t);
    return signo;
}

void jit_stops_come(run_thread *t)
{
    int signo = stop(t, NULL);
    jit_sections_interrupted(t); /* others may have run since, in the same sequence */
    if (signo) run_signal_give(t, signo);
}

bool jit_stops_signal(run_thread *t, siginfo_t *info)
{
    if (!jit.stops.on || t->is_vfork_child || jit.stops.passed & RUN_BIT(info->si_signo)) return true;
    int signo = stop(t, info);
    if (!signo) return false;
    if (signo == info->si_signo) return true;
    memset(info, 0, sizeof *info);
    info->si_signo = signo;
    info->si_code = SI_USER;
    info->si_pid = run_here.pid;
    return true;
}

/* A number that grows with each request; a nudge may be sent more often than once. */
void jit_stops_nudged(int number)
{
    if (jit.stops.on && number > __atomic_load_n(&jit.stops.asked, __ATOMIC_ACQUIRE))
        __atomic_store_n(&jit.stops.asked, number, __ATOMIC_RELEASE);
}

void jit_stops_report(uint32_t who)
{
    if (jit.options.reporter.make) __atomic_store_n(&jit.stops.reports_to, who, __ATOMIC_RELEASE);
}

/* Whoever waited long has asked again, and may have got what was made for his first request meanwhile: nobody would
 * take another one. If that is being made just now, it is forgotten behind it. */
void jit_stops_taken(uint32_t who)
{
    if (!jit.options.reporter.make) return;
    uint32_t asks = who;
    __atomic_compare_exchange_n(&jit.stops.reports_to, &asks, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_store_n(&jit.stops.taken, who, __ATOMIC_RELEASE);
}

/* --- what the debugger asks for; all threads have stopped, and the lock is not held --- */

bool jit_stops_point(uint64_t app, bool on)
{
    inl_lock_take(&run_here.lock);
    bool good = true;
    if (on) good = inl_map_put(&jit.stops.points, app, 1);
    else inl_map_remove(&jit.stops.points, app);
    if (on && good) jit_drop_range(app, app + 1);
    inl_lock_release(&run_here.lock);
    return good;
}

bool jit_stops_watch(uint64_t low, uint32_t size, bool on)
{
    jit_stops *s = &jit.stops;
    bool found = false;
    inl_lock_take(&run_here.lock);
    for (unsigned i = 0; i < s->watch_count && !on; i++) {
        if (s->watches[i].low != low || s->watches[i].size != size) continue;
        s->watches[i] = s->watches[--s->watch_count];
        found = true;
        break;
    }
    if (on && s->watch_count < JIT_WATCHES && size && size <= sizeof s->watches[0].before) {
        s->watches[s->watch_count++] = (jit_watch){.low = low, .size = size};
        found = true;
    }
    inl_lock_release(&run_here.lock);
    return found;
}

void jit_stops_go(run_thread *t, enum jit_go go, int signo, uint64_t low, uint64_t high)
{
    jit_own *o = jit_of(t);
    o->go = (uint8_t)go;
    o->signo = (uint8_t)signo;
    o->step_low = low;
    o->step_size = high - low;
}

void jit_stops_pass(uint64_t signals) { jit.stops.passed = signals; }

void jit_stops_written(uint64_t low, uint64_t high)
{
    inl_lock_take(&run_here.lock);
    jit_drop_range(low, high);
    inl_lock_release(&run_here.lock);
}

run_thread *jit_stops_thread(int tid)
{
    run_thread *t;
    inl_lock_take(&run_here.lock);
    for (t = run_here.threads; t && !(counts(t) && t->tid == tid); t = t->next) {}
    inl_lock_release(&run_here.lock);
    return t;
}

unsigned jit_stops_threads(int *tids, unsigned room)
{
    unsigned n = 0;
    inl_lock_take(&run_here.lock);
    for (const run_thread *t = run_here.threads; t && n < room; t = t->next)
        if (counts(t)) tids[n++] = t->tid;
    inl_lock_release(&run_here.lock);
    return n;
}

static void forget(void)
{
    jit.stops.on = false;
    jit.stops.watch_count = 0;
    inl_map_clear(&jit.stops.points);
}

void jit_stops_end(void)
{
    inl_lock_take(&run_here.lock);
    forget();
    for (run_thread *t = run_here.threads; t; t = t->next) jit_of(t)->go = JIT_GO_RUN;
    inl_lock_release(&run_here.lock);
    wake_all();
}

void jit_stops_quiet(run_thread *t)
{
    inl_lock_take(&run_here.lock);
    while (jit.stops.on && jit.stops.stage != RUNNING) {
        jit_of(t)->parked = true;
        wake_all();
        sleep_a_little(NAP);
    }
    jit_of(t)->parked = false;
    inl_lock_release(&run_here.lock);
}

/* Another thread, which the child does not have, may have been about to stop. */
void jit_stops_forked(void)
{
    forget();
    jit.stops.stage = RUNNING;
    jit.stops.reports = false;
    jit.stops.reports_to = jit.stops.taken = 0;
}

void jit_stops_free(void) { inl_map_free(&jit.stops.points); }

void jit_stops_begin(const jit_debugger *d)
{
    if (!d->stopped) return;
    jit.stops.debugger = *d;
    jit.stops.asked = JIT_NUDGE_FIRST - 1; /* and nothing is answered yet: the first instruction */
    jit.stops.on = true;
}
