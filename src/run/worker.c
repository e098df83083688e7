/* Workers: threads of the client's own, of which the program knows nothing.
 *
 * A worker runs none of the program's code, and is in no list of its threads: it has no number among them, nobody waits
 * for it where all of them come together, a child of fork does not have it. It has a block all the same (thread.c),
 * with stacks and the private libc's thread-local storage: so everything that is Inlay's may be called there, and a
 * fault of the client's is told as anywhere.
 *
 * All signals are blocked in it but faults, so the kernel gives it none of the program's. Where the kernel asks whether
 * a process has one thread alone (unshare, setns), and before an exec, workers leave it for the while: where a worker
 * sleeps it notes its registers and ends its thread, and another one goes on from there later, on the same stack.
 *
 *     run_worker_start      a block, a thread
 *     run_worker_sleep      the only place where a worker learns of anything
 *     run_workers_pause     all are where they sleep, and no thread of theirs is there; run_workers_resume
 *     run_workers_end       all are asked to end, and waited for: before the process does, before the client leaves it
 *
 * The list is under the process's lock, a worker's words are atomic: `tid` is the kernel's, who writes 0 when the
 * thread has touched memory for the last time. */
#include "run/worker.h"

#include <errno.h>
#include <limits.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/log.h"
#include "base/sys.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

enum { FUTEX_WAIT_ABSOLUTE = 9 | 128, FUTEX_WAKE = 1 | 128, FOREVER = -1 };
enum {
    NAP = 1000000,
    LONG = 5000 /* ms */,
    LONG_FOR_CALL = 2000,
    ROOM = 512 /* below what a worker has on its stack */
};

static int64_t nanoseconds(void)
{
    struct timespec now = {0};
    sys_call2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = NAP};
    sys_call2(SYS_nanosleep, (long)&t, 0);
}

static uint32_t get_pauses(void) { return __atomic_load_n(&run_here.workers_pause, __ATOMIC_ACQUIRE); }
static uint32_t get(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static void set(uint32_t *word, uint32_t to) { __atomic_store_n(word, to, __ATOMIC_RELEASE); }

static void ring(run_worker *w)
{
    __atomic_add_fetch(&w->rung, 1, __ATOMIC_SEQ_CST);
    sys_call3(SYS_futex, (long)&w->rung, FUTEX_WAKE, INT_MAX);
}

/* --- its thread --- */

/* With all signals blocked, which it inherits; not its folder, which setns asks about as it does about threads. */
static long clone_thread(run_worker *w)
{
    const long flags = CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |
                       CLONE_CHILD_CLEARTID;
    long args[5] = {flags, (long)w->block->runtime_stack, (long)&w->tid};
    args[RUN_CLONE_CHILD_TID] = (long)&w->tid;
    uint64_t mask = run_kernel_mask_all();
    long answer = run_raw_clone(SYS_clone, args[0], args[1], args[2], args[3], args[4], w->block);
    run_kernel_mask_set(mask);
    inl_log(INL_LOG_THREAD, "a worker's thread -> %ld", answer);
    return answer;
}

static bool is_programs(int tid)
{
    inl_lock_take(&run_here.lock);
    const run_thread *t = run_here.threads;
    while (t && t->tid != tid) t = t->next;
    inl_lock_release(&run_here.lock);
    return t != NULL;
}

/* Is none of its threads there any more, for the kernel either? Their numbers are used again. Lock not held. */
static bool is_gone(run_worker *w)
{
    if (get(&w->tid)) return false;
    int last = w->last_tid;
    if (last && !is_programs(last) && sys_call3(SYS_tgkill, sys_call0(SYS_getpid), last, 0) != -ESRCH) return false;
    w->last_tid = 0;
    return true;
}

__attribute__((noreturn)) static void leave_for_good(run_worker *w)
{
    run_thread *t = w->block;
    run_kernel_mask_all();
    t->signals = NULL;
    inl_lock_take(&run_here.lock);
    w->block = NULL;
    set(&w->state, RUN_WORKER_ENDED);
    run_thread_retire_locked(t);
    inl_lock_release(&run_here.lock);
    run_exit_raw(&t->busy, SYS_exit, 0);
}

static void take_signals(run_thread *t)
{
    t->signals = run_here.signals; /* whose it is not a user: it has handlers for its faults alone */
    run_signals_init_thread(t);
    t->worker->last_tid = t->tid;
    run_kernel_mask_set(~RUN_FAULTS);
}

/* The first of a thread; see run_thread_begin. */
void run_worker_begin(run_thread *t)
{
    run_worker *w = t->worker;
    take_signals(t);
    w->comes(w);
    set(&w->state, RUN_WORKER_RUNS);
    if (w->has_frame) longjmp(w->at, 1);
    w->run(w);
    leave_for_good(w);
}

static run_thread *block_for(run_worker *w)
{
    inl_error e = {0};
    run_thread *t = run_thread_new_apart(&e);
    if (!t) return NULL;
    t->worker = w;
    t->where = RUN_IN_RUNTIME;
    return t;
}

static void link_locked(run_worker *w)
{
    for (const run_worker *o = run_here.workers; o; o = o->next)
        if (o == w) return;
    w->next = run_here.workers;
    run_here.workers = w;
}

long run_worker_start(run_worker *w)
{
    w->block = block_for(w);
    if (!w->block) return -ENOMEM;
    w->wanted = RUN_WORKER_GOES_ON;
    w->state = RUN_WORKER_BEGINS;
    w->tid = 0;
    w->last_tid = 0;
    inl_lock_take(&run_here.lock);
    bool late = run_here.exiting || run_here.workers_pause;
    if (!late) link_locked(w);
    inl_lock_release(&run_here.lock);
    long answer = late ? -EAGAIN : clone_thread(w);
    if (!sys_failed(answer)) return 0;
    run_thread_free(w->block);
    w->block = NULL;
    set(&w->state, RUN_WORKER_ENDED);
    return answer;
}

run_worker *run_worker_here(void) { return run_here.threads ? run_self()->worker : NULL; }

/* --- where it sleeps --- */

/* Its registers stay, and what is on its stack. */
__attribute__((noinline)) static void pause_here(run_worker *w)
{
    uint32_t here;
    if (_setjmp(w->at)) return;
    w->block->runtime_stack = ((uint64_t)(uintptr_t)&here - ROOM) & ~63ull;
    w->has_frame = true;
    run_kernel_mask_all();
    set(&w->state, RUN_WORKER_PAUSED);
    run_exit_raw(&here, SYS_exit, 0);
}

/* One that has been paused. */
static void thread_again(run_worker *w)
{
    uint32_t paused = RUN_WORKER_PAUSED;
    if (!__atomic_compare_exchange_n(&w->state, &paused, RUN_WORKER_BEGINS, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return;
    while (!is_gone(w)) nap();
    long answer = clone_thread(w);
    if (!sys_failed(answer)) return;
    set(&w->state, RUN_WORKER_PAUSED);
    run_say("a thread of the tool's own cannot go on: %s", strerror((int)-answer));
}

/* Absolute, so that what wakes it early costs nothing of its time. */
static void wait_for_ring(run_worker *w, uint32_t seen, int64_t until)
{
    const struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    sys_call(SYS_futex, (long)&w->rung, FUTEX_WAIT_ABSOLUTE, (long)seen, until < 0 ? 0 : (long)&at, 0, -1);
}

bool run_worker_sleep(run_worker *w, int64_t time)
{
    int64_t until = time < 0 ? FOREVER : nanoseconds() + time;
    uint32_t woken = get(&w->woken);
    run_kernel_mask_set(~RUN_FAULTS); /* one that was passed on has been blocked */
    for (;;) {
        uint32_t rung = get(&w->rung), wanted = get(&w->wanted);
        if (wanted == RUN_WORKER_ENDS) return false;
        if (wanted == RUN_WORKER_PAUSES) {
            pause_here(w);
            w->has_frame = false;
            continue;
        }
        if (get(&w->woken) != woken || (until >= 0 && nanoseconds() >= until)) return true;
        wait_for_ring(w, rung, until);
    }
}

void run_worker_wake(run_worker *w)
{
    __atomic_add_fetch(&w->woken, 1, __ATOMIC_SEQ_CST);
    ring(w);
}

/* --- all of them --- */

/* Nothing of it touches memory any more. */
static bool has_ended(run_worker *w) { return get(&w->state) == RUN_WORKER_ENDED && !get(&w->tid); }

static bool is_out(run_worker *w)
{
    uint32_t state = get(&w->state);
    return (state == RUN_WORKER_PAUSED || state == RUN_WORKER_ENDED) && is_gone(w);
}

void run_worker_ask(run_worker *w)
{
    set(&w->wanted, RUN_WORKER_ENDS);
    ring(w);
    if (!get_pauses()) thread_again(w); /* it could not be had when it was to go on: perhaps it can now */
}

bool run_worker_await(run_worker *w, int64_t time)
{
    int64_t until = time < 0 ? INT64_MAX : nanoseconds() + time;
    while (!has_ended(w)) {
        if (w == run_worker_here() || nanoseconds() > until) return false;
        nap();
    }
    return true;
}

/* Lock not held. The list only grows but where the process has become another. */
static run_worker *first(void)
{
    inl_lock_take(&run_here.lock);
    run_worker *w = run_here.workers;
    inl_lock_release(&run_here.lock);
    return w;
}

static bool wait_for_all(bool (*done)(run_worker *), int64_t milliseconds)
{
    int64_t until = nanoseconds() + milliseconds * 1000000;
    for (run_worker *w = first(); w; w = w->next)
        while (w != run_worker_here() && !done(w)) {
            if (nanoseconds() > until) return false;
            nap();
        }
    return true;
}

bool run_workers_end(void)
{
    for (run_worker *w = first(); w; w = w->next)
        if (!has_ended(w)) run_worker_ask(w);
    return wait_for_all(has_ended, LONG);
}

bool run_workers_pause(int64_t milliseconds)
{
    inl_lock_take(&run_here.lock);
    run_here.workers_pause++;
    run_worker *all = run_here.workers;
    inl_lock_release(&run_here.lock);
    for (run_worker *w = all; w; w = w->next) {
        uint32_t goes_on = RUN_WORKER_GOES_ON;
        __atomic_compare_exchange_n(&w->wanted, &goes_on, RUN_WORKER_PAUSES, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        ring(w);
    }
    return wait_for_all(is_out, milliseconds);
}

static void go_on(run_worker *w)
{
    uint32_t pauses = RUN_WORKER_PAUSES;
    __atomic_compare_exchange_n(&w->wanted, &pauses, RUN_WORKER_GOES_ON, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    thread_again(w);
    ring(w);
}

void run_workers_resume(void)
{
    inl_lock_take(&run_here.lock);
    bool last = --run_here.workers_pause == 0;
    run_worker *all = run_here.workers;
    inl_lock_release(&run_here.lock);
    for (run_worker *w = all; last && w; w = w->next) go_on(w);
}

bool run_workers_there(void)
{
    for (run_worker *w = first(); w; w = w->next)
        if (!has_ended(w)) return true;
    return false;
}

bool run_is_workers(int tid)
{
    for (const run_worker *w = run_here.workers; w; w = w->next)
        if (tid && get(&w->tid) == (uint32_t)tid) return true;
    return false;
}

unsigned run_workers_count(void)
{
    unsigned n = 0;
    for (const run_worker *w = run_here.workers; w; w = w->next) n += get(&w->tid) != 0;
    return n;
}

/* In the child (lock held): none of their threads is there. */
void run_workers_after_fork(void)
{
    for (run_worker *next, *w = run_here.workers; w; w = next) {
        run_thread *t = w->block;
        next = w->next;
        w->tid = 0;
        w->last_tid = 0;
        w->block = NULL;
        w->state = RUN_WORKER_ENDED;
        if (!t) continue;
        t->signals = NULL;
        t->busy = 0;
        t->frame.heap_cache = NULL; /* it may have been at it */
        run_thread_retire_locked(t);
    }
    run_here.workers = NULL;
    run_here.workers_pause = 0;
}

/* Nobody's but the program's: the kernel chooses another thread of it. It lets only the first thread say that somebody
 * else has sent it by kill. */
void run_worker_pass_on(const siginfo_t *info, void *uc)
{
    long pid = sys_call0(SYS_getpid);
    *run_uc_mask(uc) |= RUN_BIT(info->si_signo);
    run_kernel_mask_all();
    if (sys_failed(sys_call3(SYS_rt_sigqueueinfo, pid, info->si_signo, (long)info)))
        sys_call2(SYS_kill, pid, info->si_signo);
}

/* --- calls for which the kernel wants a process of one thread --- */

static bool wants_one_thread(const weave_context *c)
{
    enum { NEW_TIME = 0x80, NEW_USER = 0x10000000 };
    uint64_t flags = run_arg(c, run_number(c) == SYS_unshare ? 0 : 1);
    if (run_number(c) == SYS_setns) return !flags || flags & (NEW_TIME | NEW_USER);
    return flags & (CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | NEW_USER);
}

long run_sys_alone(run_thread *t, weave_context *c)
{
    if (!wants_one_thread(c) || !first()) return run_pass(t, c);
    bool alone = run_workers_pause(LONG_FOR_CALL);
    long answer = run_pass(t, c);
    run_workers_resume();
    if (!alone && answer == -EINVAL)
        run_say("the program's call of %s has failed, perhaps for a thread of the tool's own that did not come to rest",
                run_number(c) == SYS_unshare ? "unshare" : "setns");
    return answer;
}
