/* A tool that runs a program under the JIT engine is asked to leave it, or for its report. The engine does all of it
 * (jit/leave.c, stops.c); what comes from outside is a signal of Inlay's own, which would end a process that Inlay is
 * not in. So the first thread stands still, held by ptrace, while it is looked whether it is, and the signal sent: the
 * engine, before it goes for good, waits while somebody holds that thread. Of a signal of that number the kernel keeps
 * one and drops what is sent meanwhile, silently, while the thread has not come to the first: a request that was
 * dropped is sent again.
 *
 * A report is a file in memory, of which a descriptor and for whom it was made is told (move_told). Of two who ask at
 * the same time one may get the other's, or has to ask again. Who has his says so: what he has asked for once more is
 * not made any more (jit_stops_taken). */
#include "jit/jit.h"
#include "live/live.h"
#include "live/remote.h"
#include "move/live.h"
#include "run/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 12 }; /* seconds; the engine's own is shorter */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* `started` is 0: no tool is there. */
static move_told told_of(pid_t pid)
{
    char path[32];
    move_told r = {0};
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    if (mem < 0) return r;
    bool good = live_jit_told(mem, &r);
    close(mem);
    return good ? r : (move_told){0};
}

static uint64_t state_of(pid_t pid) { return told_of(pid).started; }

/* Somebody else who asks holds it for a moment only. */
static bool seize(pid_t pid)
{
    const struct timespec nap = {.tv_nsec = 500000};
    double end = now() + 1;
    while (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) {
        if (errno != EPERM || now() > end) return false;
        nanosleep(&nap, NULL);
    }
    return true;
}

/* What it stops with; false: not in time, as where the kernel lets nobody wake it. */
static bool await_stop(pid_t pid, int *status)
{
    enum { STUCK = 5 };
    const struct timespec nap = {.tv_nsec = 50000};
    for (double end = now() + STUCK; now() < end; nanosleep(&nap, NULL)) {
        pid_t got = waitpid(pid, status, __WALL | WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR)) return true;
        if (remote_state(pid) == 'R') end = now() + STUCK;
    }
    return false;
}

static inl_status stop(pid_t pid, inl_error *e)
{
    int status = 0;
    if (!seize(pid))
        return inl_fail(e, INL_ERR_ACCESS,
                        "cannot hold process %d for a moment: %s; end a tracer that it has, or be root", pid,
                        strerror(errno));
    ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    if (!await_stop(pid, &status)) return live_does_not_stop(pid, pid, e);
    for (; WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_STOP;) { /* a signal, which it gets */
        ptrace(PTRACE_CONT, pid, 0, (long)WSTOPSIG(status));
        if (!await_stop(pid, &status)) return live_does_not_stop(pid, pid, e);
    }
    if (WIFSTOPPED(status)) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended", pid);
}

/* While the thread is held. False: another one waits there, and what was sent has been dropped. */
static bool has_arrived(pid_t pid, const siginfo_t *sent)
{
    enum { AT_ONCE = 64 };
    siginfo_t waiting[AT_ONCE];
    struct __ptrace_peeksiginfo_args all = {.nr = AT_ONCE};
    long n = ptrace(PTRACE_PEEKSIGINFO, pid, &all, waiting);
    if (n < 0) return true; /* it cannot be seen */
    for (long k = 0; k < n; k++)
        if (waiting[k].si_signo == SIGSYS && waiting[k].si_code == RUN_NUDGE &&
            waiting[k].si_value.sival_ptr == sent->si_value.sival_ptr)
            return true;
    return n == AT_ONCE; /* among more */
}

static inl_status send_nudge(pid_t pid, int what, uint32_t who, bool *arrived, inl_error *e)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSYS;
    info.si_code = RUN_NUDGE;
    info.si_value.sival_ptr = (void *)((uint64_t)who << 32 | (uint32_t)what);
    if (syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGSYS, &info) != 0)
        return inl_fail(e, INL_ERR_SYSTEM, "cannot ask process %d: %s", pid, strerror(errno));
    *arrived = has_arrived(pid, &info);
    return INL_OK;
}

/* Is anything mapped there? The last goes with the last of the engine's code. */
static bool is_mapped(pid_t pid, uint64_t low, uint64_t high)
{
    live_process p = {.pid = pid};
    bool found = false;
    if (live_read_maps(&p, &(inl_error){0}) == INL_OK)
        for (size_t i = 0; i < p.mappings.count; i++)
            found |= p.mappings.items[i].low < high && p.mappings.items[i].high > low;
    live_close(&p);
    return found;
}

/* A thread that is about to leave has all its signals blocked, but for the one that Inlay may raise. */
static bool is_leaving(pid_t pid)
{
    const uint64_t blocked = ~(RUN_BIT(SIGSYS) | RUN_UNBLOCKABLE);
    char path[300], line[128];
    unsigned long long mask;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", pid, entry->d_name);
        FILE *f = *entry->d_name == '.' ? NULL : fopen(path, "re");
        while (f && fgets(line, sizeof line, f)) found |= sscanf(line, "SigBlk: %llx", &mask) == 1 && mask == blocked;
        if (f) fclose(f);
    }
    if (d) closedir(d);
    return found;
}

/* Nothing is sent where no tool is any more. */
static inl_status ask_once(pid_t pid, int what, uint32_t who, bool *done, inl_error *e)
{
    inl_status s = stop(pid, e);
    if (s != INL_OK) return s;
    *done = true;
    s = state_of(pid) == MOVE_TOLD_RUNS_JIT ? send_nudge(pid, what, who, done, e) : INL_OK;
    ptrace(PTRACE_DETACH, pid, 0, 0);
    return s;
}

static inl_status ask(pid_t pid, int what, uint32_t who, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 500000};
    bool done = false;
    double end = now() + PATIENCE;
    inl_status s = ask_once(pid, what, who, &done, e);
    for (; s == INL_OK && !done && now() < end; s = ask_once(pid, what, who, &done, e)) nanosleep(&nap, NULL);
    if (s == INL_OK && !done)
        s = inl_fail(e, INL_ERR_SYSTEM,
                     "process %d has not come to what it was asked before: its first thread is stopped, or waits for a "
                     "child that shares its memory (vfork)",
                     pid);
    return s;
}

inl_status live_ask_jit(pid_t pid, const live_told *told, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 500000};
    const move_told *r = told->record;
    inl_status s = ask(pid, JIT_NUDGE_LEAVE, 0, e);
    for (double end = now() + PATIENCE; s == INL_OK && state_of(pid); nanosleep(&nap, NULL))
        if (now() > end)
            s = inl_fail(e, INL_ERR_SYSTEM, "the tool stays in process %d: it has said why where its messages go", pid);
    double end = now() + 1; /* where its memory stays, nothing leads there */
    while (s == INL_OK && now() < end && is_mapped(pid, r->tool_low, r->tool_high)) nanosleep(&nap, NULL);
    for (end = now() + 1; s == INL_OK && now() < end && is_leaving(pid);)
        nanosleep(&nap, NULL); /* it is but one call */
    return s;
}

/* --- a report --- */

/* false: there is none for this one yet. */
static bool await_report(pid_t pid, uint32_t who, move_told *r, double seconds)
{
    const struct timespec nap = {.tv_nsec = 500000};
    for (double end = now() + seconds; now() < end; nanosleep(&nap, NULL)) {
        *r = told_of(pid);
        if (!r->started || (r->report && r->report_to == who)) return true;
    }
    return false;
}

/* What was opened is it: no other has taken its place since. */
static bool is_for(pid_t pid, uint32_t who, const move_told *r)
{
    move_told now = told_of(pid);
    return now.report == r->report && now.report_to == who && now.report_fd == r->report_fd;
}

/* false: there is another one instead. */
static bool take_report(pid_t pid, uint32_t who, const move_told *r, int out, inl_status *s, inl_error *e)
{
    int report = live_open_report(pid, (int)r->report_fd);
    if (is_for(pid, who, r)) {
        *s = live_copy_report(pid, report, out, e);
        ask(pid, JIT_NUDGE_TAKEN, who, &(inl_error){0});
        return true;
    }
    if (report >= 0) close(report);
    return false;
}

static inl_status no_report(pid_t pid, const move_told *r, inl_error *e)
{
    switch (r->started ? r->report : 0) {
    case MOVE_REPORT_LATE:
        return inl_fail(e, INL_ERR_SYSTEM, "thread %d of process %d does not come out of the tool's code",
                        (int)r->report_late, pid);
    case MOVE_REPORT_ELSEWHERE:
        return inl_fail(e, INL_ERR_SYSTEM,
                        "process %d has no descriptors or memory left for it, so it went where inlay run was told (-o)",
                        pid);
    default: return inl_fail(e, INL_ERR_SYSTEM, "the tool has left process %d", pid);
    }
}

inl_status live_ask_jit_report(pid_t pid, int out, inl_error *e)
{
    enum { FIRST = 1 };
    uint32_t who = (uint32_t)getpid();
    move_told r;
    for (double end = now() + PATIENCE; now() < end;) {
        inl_status s = ask(pid, JIT_NUDGE_REPORT, who, e);
        if (s != INL_OK) return s;
        if (!await_report(pid, who, &r, FIRST)) continue;
        if (!r.started || r.report != MOVE_REPORT_MADE) return no_report(pid, &r, e);
        if (take_report(pid, who, &r, out, &s, e)) return s;
    }
    return inl_fail(
        e, INL_ERR_SYSTEM,
        "process %d makes no report: its first thread does not come out of the tool's code, waits for a child "
        "that shares its memory (vfork), or is stopped, perhaps by a debugger (--gdb)",
        pid);
}
