/* A tool that runs a program under the JIT engine is asked to leave it. The engine does all of it (jit/leave.c); what
 * comes from outside is a signal of Inlay's own, which would end a process that Inlay is not in. So the first thread
 * stands still, held by ptrace, while it is looked whether it is, and the signal sent: the engine, before it goes for
 * good, waits while somebody holds that thread. */
#include "live/live.h"
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

/* 0: no tool is there. */
static uint64_t state_of(pid_t pid)
{
    char path[32];
    move_told r = {0};
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    if (mem < 0) return 0;
    bool good = pread(mem, &r, sizeof r, (off_t)MOVE_TOLD_JIT) == (ssize_t)sizeof r;
    close(mem);
    return good && r.magic == MOVE_TOLD_MAGIC ? r.started : 0;
}

static inl_status stop(pid_t pid, inl_error *e)
{
    int status;
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0)
        return inl_fail(e, INL_ERR_ACCESS,
                        "cannot hold process %d for a moment: %s; end a tracer that it has, or be root", pid,
                        strerror(errno));
    ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {}
    for (; WIFSTOPPED(status) && status >> 16 != PTRACE_EVENT_STOP;) { /* a signal, which it gets */
        ptrace(PTRACE_CONT, pid, 0, (long)WSTOPSIG(status));
        while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {}
    }
    if (WIFSTOPPED(status)) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended", pid);
}

static inl_status send_nudge(pid_t pid, inl_error *e)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSYS;
    info.si_code = RUN_NUDGE;
    if (syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGSYS, &info) == 0) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "cannot ask process %d: %s", pid, strerror(errno));
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

inl_status live_ask_jit(pid_t pid, const live_told *told, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 500000};
    const move_told *r = told->record;
    inl_status s = stop(pid, e);
    if (s != INL_OK) return s;
    s = state_of(pid) == MOVE_TOLD_RUNS_JIT ? send_nudge(pid, e) : INL_OK;
    ptrace(PTRACE_DETACH, pid, 0, 0);
    for (double end = now() + PATIENCE; s == INL_OK && state_of(pid); nanosleep(&nap, NULL))
        if (now() > end)
            s = inl_fail(e, INL_ERR_SYSTEM, "the tool stays in process %d: it has said why where its messages go", pid);
    double end = now() + 1; /* where its memory stays, nothing leads there */
    while (s == INL_OK && now() < end && is_mapped(pid, r->tool_low, r->tool_high)) nanosleep(&nap, NULL);
    for (end = now() + 1; s == INL_OK && now() < end && is_leaving(pid);)
        nanosleep(&nap, NULL); /* it is but one call */
    return s;
}
