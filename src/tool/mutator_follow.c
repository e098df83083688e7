/* Programs that a process of the mutator's, or a child of it, executes, from their first instruction on.
 *
 *     process, about to execute        mutator
 *       tells the path, waits
 *                                        seizes the thread, wakes it
 *       execve                           sees it succeed, or fail: then the thread is let go
 *       (stands at its exec)             a handle of its own, as of one that the mutator starts (mutator_create.c)
 *
 * A program that no handle can be had of runs on without. */
#include "tool/mutator.h"
#include "live/live.h"
#include "tool/tool.h"

#include <inlay/process.h>

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SYSCALL_STOP = SIGTRAP | 0x80, PATIENCE = 20000 };

typedef struct follow { /* of one exec */
    mutatee *m;
    pid_t pid, tid;
    uint32_t *waits; /* where the thread waits */
    bool is_seized, in_exec;
} follow;

/* False: it has given way (mutator_events.c). */
static bool claim(uint32_t *word, uint32_t tid)
{
    uint32_t claimed = tid | RING_CLAIMED;
    return __atomic_compare_exchange_n(word, &tid, claimed, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void wake(uint32_t *word)
{
    __atomic_store_n(word, RING_WOKEN, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* --- before --- */

/* Its program as this process can open it. */
static void path_from_here(const follow *f, const char *path, char *out, size_t size)
{
    snprintf(out, size, *path == '/' ? "/proc/%d/root%s" : "/proc/%d/cwd/%s", f->pid, path);
}

static inl_status check(const follow *f, const char *path, inl_error *e)
{
    char here[4200];
    struct stat st;
    path_from_here(f, path, here, sizeof here);
    if (stat(here, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s gets rights from its file", path);
    if (*path == '/' && f->pid && access(path, X_OK) == 0 && program_check(path, e) != PROGRAM_OK)
        return INL_ERR_UNSUPPORTED;
    return INL_OK;
}

/* It waits in a call, and stands at the end of it then. */
static inl_status seize(follow *f, inl_error *e)
{
    int status;
    long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    if (ptrace(PTRACE_SEIZE, f->tid, 0, options) != 0)
        return inl_fail(e, INL_ERR_ACCESS, "process %d cannot be traced: %s", f->pid, strerror(errno));
    f->is_seized = true;
    if (ptrace(PTRACE_INTERRUPT, f->tid, 0, 0) == 0 && waitpid(f->tid, &status, __WALL) == f->tid && WIFSTOPPED(status))
        return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended", f->pid);
}

/* --- until it has happened --- */

/* The next stop of the thread; it has the process's number once the program is executed. False: it has ended. */
static bool next_stop(follow *f, int *status)
{
    const struct timespec step = {.tv_nsec = 200000};
    for (int tries = 0; tries < PATIENCE; tries++) {
        pid_t got = waitpid(f->pid, status, __WALL | WNOHANG);
        if (got == 0 || (got < 0 && errno == ECHILD && f->tid != f->pid))
            got = waitpid(f->tid, status, __WALL | WNOHANG);
        if (got > 0) return WIFSTOPPED(*status);
        if (got < 0 && errno != EINTR) return false;
        nanosleep(&step, NULL);
    }
    return false;
}

static bool is_exec(long nr) { return nr == SYS_execve || nr == SYS_execveat; }

/* At a stop of a system call. True: execve has come to an end, and the old program is still there. */
static bool has_failed(follow *f)
{
    struct __ptrace_syscall_info call;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, f->tid, sizeof call, &call) <= 0) return true;
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY) f->in_exec = is_exec((long)call.entry.nr);
    return call.op == PTRACE_SYSCALL_INFO_EXIT && f->in_exec;
}

/* True: another program stands at its exec. */
static bool see_exec(follow *f)
{
    int status, signo = 0;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, f->tid, 0, (long)signo) != 0 || !next_stop(f, &status)) return false;
        int event = status >> 16, sig = WSTOPSIG(status);
        signo = 0;
        if (event == PTRACE_EVENT_EXEC) return true;
        if (event == 0 && sig == SYSCALL_STOP && has_failed(f)) return false;
        if (event == 0 && sig != SYSCALL_STOP) signo = sig;
    }
}

/* --- the new one --- */

static inl_status begin(const follow *f, mutatee *n, inl_error *e)
{
    uint64_t mask = 0;
    long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    ptrace(PTRACE_GETSIGMASK, f->pid, sizeof mask, &mask);
    ptrace(PTRACE_SETOPTIONS, f->pid, 0, options);
    inl_status s = live_start(f->pid, &n->live, e);
    if (s == INL_OK) {
        n->is_stopped = true;
        return mutator_open(n, f->pid, e);
    }
    ptrace(PTRACE_SETSIGMASK, f->pid, sizeof mask, &mask);
    ptrace(PTRACE_DETACH, f->pid, 0, 0);
    return s;
}

static mutatee *adopt(const follow *f)
{
    inl_error e = {0};
    mutatee *n = mutator_new();
    if (!n) return NULL;
    bool is_own = f->pid == f->m->live.pid; /* it has become another, and so has its handle */
    n->is_child = is_own && f->m->is_child;
    if (begin(f, n, &e) == INL_OK) {
        if (is_own) f->m->is_child = false, f->m->is_former = true;
        return n;
    }
    if (n->is_stopped) live_release(&n->live, NULL);
    mutator_forget(n);
    mutator_fail(&e);
    return NULL;
}

/* Between its seizing and its exec nothing else is asked of it. */
static mutatee *through_exec(follow *f, bool *executed)
{
    inl_error e = {0};
    inl_status s = seize(f, &e);
    wake(f->waits);
    *executed = s == INL_OK && see_exec(f);
    if (*executed) return adopt(f);
    if (f->is_seized) ptrace(PTRACE_DETACH, f->tid, 0, 0);
    if (s != INL_OK) mutator_fail(&e);
    return NULL;
}

/* Its thread: of another namespace of processes only the first one is known. */
static pid_t thread_here(const follow *f, const ring_record *r) { return r->tid == r->pid ? f->pid : r->tid; }

bool mutator_follow(mutatee *m, const ring_record *r, const char *path, inlay_process **new)
{
    inl_error e = {0};
    bool executed = false;
    follow f = {.m = m, .pid = mutator_pid_here(m, r->pid), .waits = &m->ring->waits[r->place % RING_WAITERS]};
    *new = NULL;
    f.tid = thread_here(&f, r);
    bool waits = claim(f.waits, (uint32_t)r->tid);
    if (!m->follows) {
        if (waits) wake(f.waits);
        return false;
    }
    if (!waits) {
        inl_fail(&e, INL_ERR_UNSUPPORTED, "it was executed while threads were being stopped");
        return !mutator_fail(&e);
    }
    inl_status s = f.pid ? check(&f, path, &e) : inl_fail(&e, INL_ERR_NOT_FOUND, "it has ended");
    if (s != INL_OK) {
        wake(f.waits);
        return !mutator_fail(&e);
    }
    mutatee *n = through_exec(&f, &executed);
    if (n) *new = &n->process;
    return executed || !f.is_seized;
}

bool inlay_process_follow(inlay_process *p, bool yes)
{
    mutatee *m = mutatee_of(p);
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!inlay_process_watch(p, m->kinds | INLAY_EVENTS(EXEC))) return false;
    mutator_share_begins(m);
    m->follows = yes;
    mutator_tell_kinds(m);
    return true;
}
