/* Calls that sleep for a span of time. A nudge, with which Inlay brings threads to the engine, ends them in the kernel;
 * made anew with what the program has said they would sleep for all of it once more, for ever where reports come often.
 * So it is kept when such a call began, and it is made with what is left, as the kernel does natively when a process is
 * stopped and goes on. (It does that for poll and futex too, which are made too often to ask for the time at each.)
 *
 * Where the program has filters of system calls the clock is not asked: they may not allow that. */
#include "run/kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

enum { NANO = 1000000000 };

static int64_t time_of(clockid_t clock)
{
    struct timespec now = {0};
    sys_call2(SYS_clock_gettime, clock, (long)&now);
    return now.tv_sec * NANO + now.tv_nsec;
}

/* False: the kernel refuses it, or it has no end that anybody sees. */
static bool read_span(uint64_t at, int64_t *span)
{
    struct timespec t;
    if (!run_read(&t, at, sizeof t) || t.tv_nsec < 0 || t.tv_nsec >= NANO) return false;
    *span = t.tv_sec * NANO + t.tv_nsec;
    return t.tv_sec >= 0 && t.tv_sec < INT64_MAX / 4 / NANO;
}

/* What is left of a span: all of it, where it is not the call that a nudge has interrupted. */
static int64_t left_of(run_thread *t, const weave_context *c, clockid_t clock, int64_t span)
{
    const int64_t now = time_of(clock);
    run_waiting here = {.pc = c->pc, .sp = run_sp(c), .until = now + span};
    run_args(c, here.args);
    const run_waiting *w = &t->waiting;
    if (w->interrupted && w->pc == here.pc && w->sp == here.sp && !memcmp(w->args, here.args, sizeof here.args))
        here.until = w->until;
    t->waiting = here;
    return here.until > now ? here.until - now : 0;
}

/* Argument `at` is how long; the one behind it where the kernel is to tell what was left when a signal came. */
static long sleeps(run_thread *t, const weave_context *c, unsigned at, clockid_t clock)
{
    int64_t span;
    long args[6];
    if (t->filters || !read_span(run_arg(c, at), &span)) return run_pass(t, c);
    const int64_t left = left_of(t, c, clock, span);
    const struct timespec whole = {.tv_sec = left / NANO, .tv_nsec = left % NANO};
    struct timespec rest = {0};
    for (unsigned i = 0; i < 6; i++) args[i] = (long)run_arg(c, i);
    args[at] = (long)&whole;
    if (args[at + 1]) args[at + 1] = (long)&rest;
    const long answer = run_pass_args(t, run_number(c), args);
    t->waiting.interrupted = answer == RUN_RESTART && t->pending.present && run_signal_is_nudge(&t->pending.info);
    const bool told = answer != -EINTR || !args[at + 1] || run_write(run_arg(c, at + 1), &rest, sizeof rest);
    return told ? answer : -EFAULT;
}

static long do_nanosleep(run_thread *t, weave_context *c) { return sleeps(t, c, 0, CLOCK_MONOTONIC); }

/* Of a span it is all one to the kernel whether somebody sets the clock meanwhile. */
static long do_clock_nanosleep(run_thread *t, weave_context *c)
{
    const clockid_t clock = (clockid_t)run_arg(c, 0);
    if (run_arg(c, 1) & TIMER_ABSTIME) return run_pass(t, c);
    return sleeps(t, c, 2, clock == CLOCK_REALTIME || clock == CLOCK_TAI ? CLOCK_MONOTONIC : clock);
}

const run_syscall_row run_waiting_syscalls[] = {
    {SYS_nanosleep, "nanosleep", do_nanosleep},
    {SYS_clock_nanosleep, "clock_nanosleep", do_clock_nanosleep},
    {0, NULL, NULL},
};
