/* A signal waits while the tool's code runs, and that does not return: a routine hangs. The process must be
 * killable all the same, and not only by SIGKILL.
 *
 *     the signal would kill            a timer of this thread's own; when it fires, the process dies of the signal
 *     SIGTERM, SIGINT, SIGQUIT or      the process dies of it, whether the program would handle it or not;
 *     SIGHUP comes once more,          coming sooner, it is kept for later
 *     some time later
 *
 * The tool's end is left out, since what hangs may hold any lock. In that end itself, when all callbacks but its own
 * are over, the same holds: a signal that comes then has come too late for the program, and is forgotten. */
#include "run/kernel.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"

enum { FATAL_AFTER = 5, AGAIN_AFTER = 2000 }; /* seconds; milliseconds */

static const int killers[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
_Static_assert(sizeof killers / sizeof *killers == RUN_KILLERS, "room for each");
static const char mark; /* its address in a siginfo: the timer is ours */

static int killer_index(int signo)
{
    for (int i = 0; i < RUN_KILLERS; i++)
        if (killers[i] == signo) return i;
    return -1;
}

/* Whole seconds would not do: two of them may be hardly more than one. */
static int64_t milliseconds(void)
{
    struct timespec now = {0};
    sys_call2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool run_hung_is_timer(const siginfo_t *info) { return info->si_code == SI_TIMER && info->si_value.sival_ptr == &mark; }

static bool would_kill(const run_thread *t, int signo)
{
    return t->signals && t->signals->action[signo].handler == (uint64_t)(uintptr_t)SIG_DFL &&
           run_kills_by_default(signo);
}

static void set_timer(run_thread *t, int signo)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signo;
    event.sigev_value.sival_ptr = (void *)&mark;
    event._sigev_un._tid = t->tid;
    struct itimerspec when = {.it_value.tv_sec = FATAL_AFTER};
    t->hung.has_timer = !sys_call3(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&t->hung.timer);
    if (t->hung.has_timer) sys_call4(SYS_timer_settime, t->hung.timer, 0, (long)&when, 0);
}

/* But for what the program blocks here: that may be another thread's to take, and would have been sent back to this
 * one. */
static void let_in(uint64_t *mask, uint64_t blocked)
{
    for (int i = 0; i < RUN_KILLERS; i++) *mask &= ~RUN_BIT(killers[i]) | blocked;
}

void run_hung_watch(run_thread *t, uint64_t *mask)
{
    int signo = t->pending.info.si_signo;
    t->hung = (run_hung){.watched = true, .since = milliseconds()};
    let_in(mask, t->pending.mask);
    if (!would_kill(t, signo)) return;
    *mask &= ~RUN_BIT(signo);
    set_timer(t, signo);
}

static void die(run_thread *t, int signo, const void *uc, int64_t waited)
{
    run_crash c = {.where = t->where == RUN_IN_RUNTIME ? RUN_CRASH_RUNTIME : RUN_CRASH_ROUTINE,
                   .signo = signo,
                   .uc = uc,
                   .waited = waited};
    run_signal_tell_crash(t, &c);
    run_signal_default(signo);
    run_signal_self(signo);
    run_kernel_mask_set(~RUN_BIT(signo));
}

bool run_hung_again(run_thread *t, const siginfo_t *info, const void *uc, bool in_tool)
{
    bool is_timer = run_hung_is_timer(info);
    int i = killer_index(info->si_signo);
    if (!t->hung.watched || (!is_timer && i < 0)) return is_timer;
    int64_t waited = milliseconds() - t->hung.since;
    if (in_tool && (is_timer || waited >= AGAIN_AFTER)) die(t, info->si_signo, uc, waited / 1000);
    if (is_timer || t->hung.again_set & 1u << i) return true;
    t->hung.again[i] = *info;
    t->hung.again_set |= 1u << i;
    return true;
}

void run_hung_end(run_thread *t)
{
    if (!t->hung.watched) return;
    run_kernel_mask_set(~RUN_FAULTS);
    if (t->hung.has_timer) sys_call1(SYS_timer_delete, t->hung.timer);
    for (int i = 0; i < RUN_KILLERS; i++)
        if (t->hung.again_set >> i & 1) run_signal_send_back(&t->hung.again[i]);
    t->hung.watched = false;
}

/* --- callbacks with all else blocked --- */

void run_hung_let_in(uint64_t blocked)
{
    uint64_t mask = ~RUN_FAULTS;
    let_in(&mask, blocked);
    run_kernel_mask_set(mask);
}

bool run_hung_arrived(run_thread *t, const siginfo_t *info, void *uc)
{
    if (killer_index(info->si_signo) < 0 && !run_hung_is_timer(info)) return false;
    if (t->pending.present) return run_hung_again(t, info, uc, true);
    t->pending.info = *info;
    t->pending.mask = *run_uc_mask(uc);
    t->pending.present = true;
    run_hung_watch(t, run_uc_mask(uc));
    return true;
}

void run_hung_let_out(run_thread *t)
{
    run_kernel_mask_all();
    run_hung_end(t);
    if (t->pending.present) run_signal_send_back(&t->pending.info);
    t->pending.present = false;
    run_kernel_mask_set(~RUN_FAULTS);
}
