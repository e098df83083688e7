/* Calls that wait for a span of time. A nudge, with which Inlay brings threads to the engine, ends them in the kernel;
 * made anew with what the program has said they would wait for all of it once more, for ever where reports come often.
 * So it is kept when such a call would end, and it is made again with what is left, as the kernel does natively for
 * most when a process is stopped and goes on.
 *
 * When a sleep began is asked for at each. The others are made too often for that: what the first nudge has interrupted
 * waits its whole span from then on, but no longer, however many follow; and from then on such calls are not made in
 * the gate. (select, pselect and ppoll are told by the kernel itself what is left.)
 *
 * Where the program has filters of system calls the clock is not asked: they may not allow that. */
#include "run/kernel.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

enum { NANO = 1000000000, MILLI = 1000000 };

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
    if (t.tv_sec < 0 || t.tv_sec >= INT64_MAX / 4 / NANO) return false;
    *span = t.tv_sec * NANO + t.tv_nsec;
    return true;
}

static bool is_same(const run_waiting *w, const weave_context *c)
{
    uint64_t args[6];
    run_args(c, args);
    return w->pc == c->pc && w->sp == run_sp(c) && !memcmp(w->args, args, sizeof args);
}

/* The call that `c` is at begins, or it is the one that a nudge has interrupted. */
static void begin(run_thread *t, const weave_context *c, int64_t until)
{
    run_waiting *w = &t->waiting;
    if (w->interrupted && is_same(w, c)) return;
    *w = (run_waiting){.pc = c->pc, .sp = run_sp(c), .until = until};
    run_args(c, w->args);
}

static int64_t left_of(const run_waiting *w, int64_t now) { return w->until > now ? w->until - now : 0; }

static struct timespec as_timespec(int64_t span)
{
    return (struct timespec){.tv_sec = span / NANO, .tv_nsec = span % NANO};
}

/* --- sleeps --- */

/* Argument `at` is how long; the one behind it where the kernel is to tell what was left when a signal came. */
static long sleeps(run_thread *t, const weave_context *c, unsigned at, clockid_t clock)
{
    int64_t span;
    long args[6];
    if (t->filters || !read_span(run_arg(c, at), &span)) return run_pass(t, c);
    const int64_t now = time_of(clock);
    begin(t, c, now + span);
    const struct timespec whole = as_timespec(left_of(&t->waiting, now));
    struct timespec rest = {0};
    for (unsigned i = 0; i < 6; i++) args[i] = (long)run_arg(c, i);
    args[at] = (long)&whole;
    if (args[at + 1]) args[at + 1] = (long)&rest;
    const long answer = run_pass_args(t, run_number(c), args);
    t->waiting.interrupted = run_is_nudged(t, answer);
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

/* --- others --- */

typedef struct span_place {
    uint16_t nr;
    uint8_t at; /* argument */
    bool is_number;
} span_place;
static const span_place places[] = {
    {SYS_poll, 2, true},          {SYS_epoll_wait, 3, true},       {SYS_epoll_pwait, 3, true},
    {SYS_epoll_pwait2, 3, false}, {SYS_rt_sigtimedwait, 2, false}, {SYS_semtimedop, 3, false},
    {SYS_futex, 3, false},
};

static bool read_place(long nr, const uint64_t args[6], const span_place **place, int64_t *span)
{
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        const span_place *p = &places[k];
        if (p->nr != nr) continue;
        *place = p;
        *span = (int64_t)(int)args[p->at] * MILLI;
        if (p->is_number) return *span > 0;
        return (nr != SYS_futex || (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) && args[p->at] &&
               read_span(args[p->at], span);
    }
    return false;
}

void run_wait_interrupted(run_thread *t, const weave_context *c)
{
    const span_place *place;
    int64_t span;
    uint64_t args[6];
    run_args(c, args);
    if (t->filters || !read_place(run_number(c), args, &place, &span)) return;
    begin(t, c, time_of(CLOCK_MONOTONIC) + span);
    t->waiting.interrupted = true;
    run_syscall_keep(run_number(c));
}

long run_wait_on(run_thread *t, const long args[6])
{
    const weave_context *c = &t->ctx;
    const long nr = run_number(c);
    const span_place *place;
    int64_t span;
    uint64_t asked[6];
    long with[6];
    run_args(c, asked);
    if (!is_same(&t->waiting, c) || !read_place(nr, asked, &place, &span))
        return run_blocking_syscall(&t->pending.present, nr, args);
    const int64_t left = left_of(&t->waiting, time_of(CLOCK_MONOTONIC));
    const struct timespec rest = as_timespec(left);
    memcpy(with, args, sizeof with);
    with[place->at] = place->is_number ? (left + MILLI - 1) / MILLI : (long)&rest;
    return run_blocking_syscall(&t->pending.present, nr, with);
}

const run_syscall_row run_waiting_syscalls[] = {
    {SYS_nanosleep, "nanosleep", do_nanosleep},
    {SYS_clock_nanosleep, "clock_nanosleep", do_clock_nanosleep},
    {0, NULL, NULL},
};
