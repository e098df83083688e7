/* All threads of a process, stopped and released. One that is made meanwhile is found when the list of threads is read
 * again: once all that were listed stand still, nobody makes another. */
#include "live/live.h"
#include "run/kernel.h"
#include "run/worker.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds; with a thread that comes on by and by: it could run and gets no processor, or waits for one thing after the
 * other within a system call (a slow disk). */
enum { PATIENCE = 5, MORE = 60 };

static bool is_seized(const live_process *p, pid_t tid)
{
    for (size_t i = 0; i < p->seized.count; i++)
        if (p->seized.items[i] == tid) return true;
    return false;
}

static inl_status refuse(live_process *p, pid_t tid, inl_error *e)
{
    if (errno != EPERM && !(errno == EINVAL && p->is_confined))
        return inl_fail(e, INL_ERR_SYSTEM, "cannot trace process %d: %s", p->pid, strerror(errno));
    char path[64], line[128], state = 0;
    int tracer = 0;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "TracerPid: %d", &tracer);
        sscanf(line, "State: %c", &state);
    }
    if (f) fclose(f);
    if (!f || state == 'Z' || state == 'X') return INL_OK; /* it has ended */
    p->is_busy = live_ends_work(tracer);
    if (tracer)
        return inl_fail(e, INL_ERR_ACCESS, "process %d is traced by process %d already; end that first", p->pid,
                        tracer);
    if (p->is_confined)
        return inl_fail(
            e, INL_ERR_ACCESS,
            "process %d is confined: its filters of system calls (seccomp) are to be suspended while a tool "
            "comes, which takes root's right to do so (CAP_SYS_ADMIN, and no filter of one's own); start it "
            "under the tool instead (inlay run, inlay rewrite)",
            p->pid);
    return live_no_right(p->pid, e);
}

static inl_status seize(live_process *p, pid_t tid, inl_error *e)
{
    bool is_kept = live_is_kept(p, tid);
    if (!is_kept && ptrace(PTRACE_SEIZE, tid, 0, live_seize_options(p)) != 0)
        return errno == ESRCH ? INL_OK : refuse(p, tid, e); /* it ended */
    if (!inl_vec_push(&p->seized, tid)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (!is_kept) ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    return INL_OK;
}

/* Does it never run the program's code? io_uring has such threads, as which the kernel works for the process: they
 * would not stop. */
static bool is_kernels(const live_process *p, pid_t tid)
{
    enum { PF_IO_WORKER = 0x10, PF_USER_WORKER = 0x4000 };
    char path[64], line[512];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", p->pid, tid);
    FILE *f = fopen(path, "re");
    const char *behind = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (behind) sscanf(behind, ") %*c %*d %*d %*d %*d %*d %u", &flags);
    if (f) fclose(f);
    return flags & (PF_IO_WORKER | PF_USER_WORKER);
}

/* Is it a thread of the tool's own that is in the process? They never run the program's code either, and what they hold
 * the others may wait for. */
static bool is_workers(const live_process *p, pid_t tid)
{
    enum { MOST = 10000 };
    move_told told;
    uint64_t at;
    run_worker w;
    if (!live_read(p, MOVE_TOLD_BASE, &told, sizeof told) || told.magic != MOVE_TOLD_MAGIC) return false;
    if (told.layout != sizeof told || !told.workers || !live_read(p, told.workers, &at, sizeof at) || !at) return false;
    const pid_t inner = live_inner_tid(tid);
    for (unsigned n = 0; at && n < MOST && live_read(p, at, &w, sizeof w); n++, at = (uint64_t)(uintptr_t)w.next)
        if (w.tid == (uint32_t)inner) return true; /* the kernel writes 0 there when it ends */
    return false;
}

/* *fresh: there were such as had not been seized. */
static inl_status seize_new(live_process *p, bool *fresh, inl_error *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", p->pid);
    DIR *d = opendir(path);
    if (!d) return inl_fail(e, INL_ERR_SYSTEM, "there is no process %d", p->pid);
    inl_status s = INL_OK;
    size_t before = p->seized.count;
    for (struct dirent *entry; s == INL_OK && (entry = readdir(d));) {
        pid_t tid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;
        if (tid && !is_seized(p, tid) && !is_kernels(p, tid) && !is_workers(p, tid)) s = seize(p, tid, e);
    }
    closedir(d);
    *fresh = p->seized.count != before;
    return s;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How often it has given up a processor, or had to. */
static uint64_t switches_of(pid_t tid)
{
    char path[64], line[128];
    unsigned long long sum = 0, n;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %llu", &n) == 1)
            sum += n;
    if (f) fclose(f);
    return sum;
}

/* How long it has had a processor, in nanoseconds; 0: the kernel does not say. */
static uint64_t time_of(pid_t tid)
{
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", tid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &ns) != 1) ns = 0;
    if (f) fclose(f);
    return ns;
}

typedef struct waiting {
    double began, asked, came_on;
    uint64_t switches, time; /* when it was asked last; at the beginning */
} waiting;

/* False: nothing comes of it. */
static bool ask_again(pid_t tid, waiting *w)
{
    const char state = remote_state(tid);
    const uint64_t switches = switches_of(tid);
    w->asked = now();
    if (state != 't') ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    if (state == 'R' || state == 't' || switches != w->switches) w->came_on = w->asked;
    w->switches = switches;
    return w->asked - w->came_on < PATIENCE && w->asked - w->began < MORE;
}

inl_status live_does_not_stop(pid_t pid, pid_t tid, inl_error *e)
{
    return inl_fail(e, INL_ERR_SYSTEM,
                    "thread %d of process %d does not stop: it waits for a device or a child of vfork, or its cgroup "
                    "is frozen (state %c)",
                    tid, pid, remote_state(tid));
}

static inl_status does_not_stop(const live_process *p, pid_t tid, const waiting *w, inl_error *e)
{
    enum { NEXT_TO_NOTHING = 100000000 };
    if (remote_state(tid) == 'R' && w->time && time_of(tid) - w->time < NEXT_TO_NOTHING)
        return inl_fail(e, INL_ERR_SYSTEM, "thread %d of process %d does not stop: it gets no processor (for %d s)",
                        tid, p->pid, MORE);
    return live_does_not_stop(p->pid, tid, e);
}

/* Has it a signal waiting that belongs to the instruction it stands at? The kernel stops a thread in front of a fault's
 * signal, and delivers that wherever the thread stands when it goes on. (One that is blocked and was sent stays.) */
static bool has_fault(pid_t tid)
{
    enum { AT_ONCE = 32 };
    siginfo_t waiting[AT_ONCE];
    struct __ptrace_peeksiginfo_args own = {.nr = AT_ONCE};
    uint64_t mask = ~0ull;
    long n = ptrace(PTRACE_PEEKSIGINFO, tid, &own, waiting);
    if (n <= 0 || ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0) return false;
    for (long k = 0; k < n; k++)
        if (waiting[k].si_code > 0 && RUN_BIT(waiting[k].si_signo) & RUN_FAULTS & ~mask) return true;
    return false;
}

/* A signal that is being delivered goes to the thread, which only enters its handler before it stops; that of a fault
 * that comes again waits in the instruction. *gone: it ended. */
static inl_status wait_for(const live_process *p, pid_t tid, bool *gone, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 50000};
    int status;
    if (live_is_kept(p, tid)) {
        *gone = waitpid(tid, &status, __WALL | WNOHANG) == tid && !WIFSTOPPED(status);
        return INL_OK;
    }
    waiting w = {.began = now(), .time = time_of(tid)};
    w.asked = w.came_on = w.began;
    for (;;) {
        pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == 0 || (got < 0 && errno == EINTR)) {
            *gone = now() > w.asked + 1 && remote_has_ended(tid); /* a first thread, without the others */
            if (*gone) return INL_OK;
            if (now() > w.asked + 1 && !ask_again(tid, &w)) return does_not_stop(p, tid, &w, e);
            nanosleep(&nap, NULL);
            continue;
        }
        *gone = got < 0 || !WIFSTOPPED(status);
        const bool stands = *gone || status >> 16 == PTRACE_EVENT_STOP;
        if (stands && (*gone || WSTOPSIG(status) != SIGTRAP || !has_fault(tid))) return INL_OK;
        if (!stands) ptrace(PTRACE_INTERRUPT, tid, 0, 0); /* a stop for anything else takes the request back */
        const int signo = status >> 16 ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, tid, 0, signo && remote_comes_again(tid, signo) ? 0L : (long)signo);
    }
}

pid_t live_inner_tid(pid_t tid)
{
    char path[64], line[512];
    pid_t inner = tid;
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "NSpid:", 6)) continue;
        line[strcspn(line, "\n")] = 0;
        inner = atoi(strrchr(line, '\t') + 1); /* the innermost is the last */
    }
    if (f) fclose(f);
    return inner;
}

inl_status live_seize(live_process *p, pid_t tid, bool *gone, inl_error *e)
{
    inl_status s = seize(p, tid, e);
    *gone = s == INL_OK && !is_seized(p, tid);
    if (s == INL_OK && !*gone) s = wait_for(p, tid, gone, e);
    if (s != INL_OK) ptrace(PTRACE_DETACH, tid, 0, 0);
    p->seized.count = 0;
    return s;
}

static inl_status give_back(live_process *p, remote *r, inl_error *e)
{
    return live_is_kept(p, r->pid) ? remote_keep(r, live_seize_options(p), e) : remote_give_back(r, e);
}

/* In front of all that were there: a thread is released by remote_give_back or, before it was taken, by this. */
static void let_all_go(live_process *p)
{
    inl_error ignored;
    live_unpark(p);
    for (size_t i = 0; i < p->threads.count; i++) give_back(p, &p->threads.items[i], &ignored);
    for (size_t i = p->threads.count; i < p->seized.count; i++) {
        pid_t tid = p->seized.items[i];
        int status;
        if (live_is_kept(p, tid)) continue;
        ptrace(PTRACE_INTERRUPT, tid, 0, 0);
        waitpid(tid, &status, __WALL | WNOHANG);
        ptrace(PTRACE_DETACH, tid, 0, 0);
    }
    p->threads.count = p->seized.count = 0;
}

/* Until no new ones are found. The leader comes first: it is listed first. */
static inl_status take_all(live_process *p, inl_error *e)
{
    bool fresh = true, gone = false;
    inl_status s = seize_new(p, &fresh, e);
    while (s == INL_OK && fresh) {
        for (size_t i = p->threads.count; s == INL_OK && i < p->seized.count; i++) {
            remote r = {0};
            s = wait_for(p, p->seized.items[i], &gone, e);
            if (s == INL_OK && gone) {
                memmove(&p->seized.items[i], &p->seized.items[i + 1],
                        (p->seized.count - i - 1) * sizeof *p->seized.items);
                p->seized.count--;
                i--;
                continue;
            }
            if (s == INL_OK) s = remote_take(&r, p->seized.items[i], e);
            if (s == INL_OK && !inl_vec_push(&p->threads, r)) s = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
        }
        if (s == INL_OK) s = seize_new(p, &fresh, e);
    }
    if (s == INL_OK && (!p->threads.count || p->threads.items[0].pid != p->pid))
        s = inl_fail(e, INL_ERR_SYSTEM, "process %d has ended, or its first thread has", p->pid);
    if (s == INL_OK && p->is_empty) s = live_check_program(p, e);
    if (s == INL_OK && p->is_confined && p->is_empty) s = live_check_filters(p, e);
    if (s == INL_OK) s = live_park(p, e);
    if (s != INL_OK) let_all_go(p);
    return s;
}

/* What somebody who was killed has begun here ends soon. */
inl_status live_stop(live_process *p, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    for (double end = now() + PATIENCE;; nanosleep(&nap, NULL)) {
        p->is_busy = false;
        inl_status s = take_all(p, e);
        if (s == INL_OK || !p->is_busy || now() > end) return s;
    }
}

static void forget(live_process *p, size_t i)
{
    size_t behind = p->threads.count - i - 1;
    memmove(&p->threads.items[i], &p->threads.items[i + 1], behind * sizeof *p->threads.items);
    memmove(&p->seized.items[i], &p->seized.items[i + 1], behind * sizeof *p->seized.items);
    p->threads.count--;
    p->seized.count--;
}

/* A signal that was sent: the kernel has it from a fault or a step otherwise. Of those that queue, the order stays. */
static bool is_sent(pid_t tid, int signo, siginfo_t *info)
{
    bool queues = signo >= __SIGRTMIN, is_other = RUN_BIT(signo) & (RUN_FAULTS | RUN_BIT(SIGSTOP));
    return !is_other && !queues && ptrace(PTRACE_GETSIGINFO, tid, 0, info) == 0;
}

/* Signals go to those that run: each for the first time. What comes again has waited for a place where the program's
 * own state can be had (moved/deliver.c), so there the thread is held, if that is what it runs for. (Or it is another
 * one: a thread that gets them all the time would be held where it was before.) */
static void go_on_with(remote *r, int status, bool may_hold)
{
    siginfo_t info;
    int signo = status >> 16 ? 0 : WSTOPSIG(status);
    if (signo && may_hold && is_sent(r->pid, signo, &info)) {
        r->is_held = r->let_in == signo;
        r->let_in = r->is_held ? 0 : signo;
    }
    if (r->is_held) r->held = info;
    else ptrace(PTRACE_CONT, r->pid, 0, (long)signo);
}

static void let_run(live_process *p, const live_run *how, long nanoseconds)
{
    const struct timespec nap = {.tv_nsec = 20000};
    for (double end = now() + 1e-9 * (double)nanoseconds; now() < end; nanosleep(&nap, NULL))
        for (size_t i = 0; i < p->threads.count; i++) {
            int status;
            remote *r = &p->threads.items[i];
            if (how[i] && !r->is_held && waitpid(r->pid, &status, __WALL | WNOHANG) == r->pid && WIFSTOPPED(status))
                go_on_with(r, status, how[i] == LIVE_RUNS_TO_PLACE);
        }
}

/* On a busy machine nobody may have had a processor meanwhile, but for being let go and stopped. */
static void note_runs(live_process *p, const live_run *how, uint64_t *before, bool begins)
{
    enum { OVERHEAD = 100000, NOT_KNOWN = 400000 };
    for (size_t i = 0; i < p->threads.count; i++) {
        remote *r = &p->threads.items[i];
        if (!how[i]) continue;
        uint64_t has = time_of(r->pid), had = before[i] ? has - before[i] : NOT_KNOWN + OVERHEAD;
        if (!begins) r->ran = had > OVERHEAD ? had - OVERHEAD : 0;
        if (!begins) r->sleeps = remote_state(r->pid) == 'S';
        before[i] = has;
    }
}

/* Some microseconds, other ones each time. */
static void let_pass(void)
{
    enum { MOST = 30 };
    static unsigned state = 1;
    state = state * 1103515245 + 12345;
    for (double end = now() + 1e-6 * MOST / 65536 * (state >> 16); now() < end;) {}
}

/* Who gets signals all the time stands in front of one at most moments, since it waits there for this process, and who
 * is asked to stop there stops at the entry of the handler. So it is asked while it runs, if it does. */
static void ask_to_stop(remote *r, bool may_hold)
{
    enum { TURNS = 40 };
    int status;
    for (unsigned n = 0; n < TURNS; n++) {
        if (waitpid(r->pid, &status, __WALL | WNOHANG) != r->pid || !WIFSTOPPED(status)) break;
        if (!(status >> 16) && remote_comes_again(r->pid, WSTOPSIG(status))) {
            ptrace(PTRACE_INTERRUPT, r->pid, 0, 0);
            ptrace(PTRACE_CONT, r->pid, 0, 0L);
            return;
        }
        go_on_with(r, status, may_hold);
        if (r->is_held) return;
        let_pass();
    }
    ptrace(PTRACE_INTERRUPT, r->pid, 0, 0);
}

static inl_status stop_again(live_process *p, size_t i, bool may_hold, bool *gone, inl_error *e)
{
    remote *r = &p->threads.items[i];
    if (!r->is_held) ask_to_stop(r, may_hold);
    const remote was = *r;
    inl_status s = was.is_held ? INL_OK : wait_for(p, was.pid, gone, e);
    if (s != INL_OK || *gone) return s;
    s = remote_take(r, was.pid, e);
    r->stop_signal = was.stop_signal;
    r->let_in = was.let_in;
    r->ran = was.ran;
    r->sleeps = was.sleeps;
    r->out = was.out;
    r->is_held = was.is_held;
    r->held = was.held;
    return s;
}

/* The signals that threads are held with are the kernel's again, until they are let go. */
static inl_status send_back(live_process *p, uint64_t scratch, inl_error *e)
{
    inl_status s = INL_OK;
    for (size_t i = 0; i < p->threads.count && s == INL_OK; i++) {
        remote *r = &p->threads.items[i];
        long answer, tid = live_inner_tid(r->pid), pid = live_inner_tid(p->pid);
        if (!r->is_held) continue;
        r->is_held = false;
        s = remote_write(r, scratch, &r->held, sizeof r->held, e);
        long args[6] = {pid, tid, r->held.si_signo, (long)scratch};
        if (s == INL_OK) s = remote_call(r, &answer, SYS_rt_tgsigqueueinfo, args, e);
    }
    return s;
}

inl_status live_run_some(live_process *p, const live_run *how, long nanoseconds, uint64_t scratch, inl_error *e)
{
    uint64_t *before = calloc(p->threads.count + 1, sizeof *before);
    inl_status s = INL_OK;
    if (!before) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    note_runs(p, how, before, true);
    for (size_t i = 0; i < p->threads.count; i++)
        if (how[i]) remote_continue(&p->threads.items[i]);
    let_run(p, how, nanoseconds);
    note_runs(p, how, before, false);
    free(before);
    for (size_t i = p->threads.count; i-- > 0 && s == INL_OK;) {
        bool gone = false;
        if (!how[i]) continue;
        s = stop_again(p, i, how[i] == LIVE_RUNS_TO_PLACE, &gone, e);
        if (s == INL_OK && gone) forget(p, i);
    }
    if (s != INL_OK) let_all_go(p);
    if (s == INL_OK) s = take_all(p, e);
    if (s == INL_OK && (s = send_back(p, scratch, e)) != INL_OK) let_all_go(p);
    return s;
}

inl_status live_release(live_process *p, inl_error *e)
{
    inl_status s = INL_OK;
    if (p->is_ours && p->has_park) return live_leave_parent(p, e);
    live_unpark(p);
    for (size_t i = 0; i < p->threads.count; i++) {
        inl_status one = give_back(p, &p->threads.items[i], e);
        if (one != INL_OK && !p->threads.items[i].gone) s = one;
    }
    p->threads.count = p->seized.count = 0;
    return s;
}
