/* The tool in a process is asked for its report, or to leave. The process does it itself (moved/leave.c); here its
 * threads are stopped, brought out of the tool's code, and sent on their way.
 *
 *     stop all; the first thread answers where each stands
 *       those that are in the tool's code, or in what was inserted, run on for a moment, until none is
 *     the first thread does what is asked for
 *     (leaving) registers and alternate stacks are set, and what is mapped for the tool's sake goes
 *     all run on
 *
 * Threads that are out stay stopped meanwhile, and so hold no lock of the tool's. One in the tool's code that waits for
 * what a stopped one has would never come out: after a while all go on, and it begins anew. Where threads wait among
 * what looks like an unwinder's, whoever came out last goes on with them: a lock that an unwinder takes may be its. */
#include "live/live.h"
#include "base/page.h"
#include "base/sys.h"
#include "move/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 256 << 10, AT_ONCE = 1, PATIENCE = 20 /* seconds */ };

typedef struct ask {
    live_process process;
    live_told told;
    live_wish wish;
    int out;
    uint64_t asked_size;
    move_ask *asked; /* as it is there */
    bool lends;      /* files of /proc (lend.c) */
    int64_t files[MOVE_ASK_FILES];
    INL_VEC(pid_t) asleep; /* threads that have slept on while all ran, until that is told */
} ask;

static remote *leader(ask *a) { return &a->process.threads.items[0]; }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- asking --- */

static uint64_t size_of(size_t threads) { return sizeof(move_ask) + threads * sizeof(move_ask_thread); }
static uint64_t stack_high(const ask *a) { return MOVE_ASK_BASE + inl_page_up(a->asked_size) + STACK; }

/* Memory for the question, a stack, and a page for what system calls are given. */
static inl_status map_question(ask *a, inl_error *e)
{
    long answer, args[6] = {(long)MOVE_ASK_BASE,
                            (long)(stack_high(a) + INL_PAGE - MOVE_ASK_BASE),
                            PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                            -1,
                            0};
    inl_status s = remote_call(leader(a), &answer, SYS_mmap, args, e);
    if (s != INL_OK || answer == (long)MOVE_ASK_BASE) return s;
    return inl_fail(e, INL_ERR_NO_MEMORY, "process %d has no memory left: %s (its limits are in /proc/%d/limits)",
                    a->process.pid, strerror((int)-answer), a->process.pid);
}

static void unmap(ask *a, uint64_t low, uint64_t high)
{
    inl_error ignored;
    long answer;
    if (low < high) remote_call(leader(a), &answer, SYS_munmap, (long[6]){(long)low, (long)(high - low)}, &ignored);
}

/* How far a thread's stack can be read, of what is looked at. */
static uint64_t readable(remote *r)
{
    uint8_t bytes[INL_PAGE];
    inl_error ignored;
    uint64_t at = remote_registers_sp(&r->regs) & ~7ull;
    for (uint64_t end = at + MOVE_ASK_WINDOW, next; at < end; at = next) {
        next = inl_page_up(at + 1) < end ? inl_page_up(at + 1) : end;
        if (remote_read(r, at, bytes, next - at, &ignored) != INL_OK) break;
    }
    return at;
}

static bool has_slept(const ask *a, pid_t tid)
{
    for (size_t k = 0; k < a->asleep.count; k++)
        if (a->asleep.items[k] == tid) return true;
    return false;
}

static inl_status write_question(ask *a, uint64_t what, inl_error *e)
{
    size_t n = a->process.threads.count;
    a->asked_size = size_of(n);
    move_ask *q = realloc(a->asked, a->asked_size);
    if (!q) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    memset(q, 0, a->asked_size);
    a->asked = q;
    *q = (move_ask){.what = what, .captures = a->out >= 0, .fd = -1, .thread_count = n};
    q->waits = a->wish == LIVE_LEAVE;
    q->lends = a->lends;
    memcpy(q->files, a->files, sizeof q->files);
    for (size_t i = 0; i < n; i++) {
        q->threads[i].tid = (uint64_t)live_inner_tid(a->process.threads.items[i].pid);
        q->threads[i].slot = a->process.threads.items[i].slot;
        remote_context(&a->process.threads.items[i], &q->threads[i].ctx);
        q->threads[i].ran = a->process.threads.items[i].ran;
        q->threads[i].call = a->process.threads.items[i].restarts;
        q->threads[i].slept = has_slept(a, a->process.threads.items[i].pid);
        if (q->waits) q->threads[i].readable = readable(&a->process.threads.items[i]);
    }
    a->asleep.count = 0;
    inl_status s = map_question(a, e);
    return s == INL_OK ? remote_write(leader(a), MOVE_ASK_BASE, q, a->asked_size, e) : s;
}

static inl_status put_question(ask *a, uint64_t what, inl_error *e)
{
    void *vectors = NULL;
    size_t size = 0;
    remote *r = leader(a);
    inl_status s = write_question(a, what, e);
    if (s == INL_OK) s = remote_vectors(r, &vectors, &size, e);
    if (s != INL_OK) return s;
    s = live_goes(&a->process, MOVE_ASK_BASE, stack_high(a) + INL_PAGE, e);
    if (s == INL_OK) s = live_works(&a->process, true, e);
    if (s == INL_OK) s = remote_run(r, a->told.record->ask_entry, stack_high(a), a->told.record->ask_until, false, e);
    if (s == INL_OK) s = remote_set_vectors(r, vectors, size, e);
    else if (!r->gone) remote_set_vectors(r, vectors, size, &(inl_error){0});
    free(vectors);
    if (what != MOVE_ASK_LEAVE && s == INL_OK) s = live_works(&a->process, false, e);
    return s == INL_OK ? remote_read(r, MOVE_ASK_BASE, a->asked, a->asked_size, e) : s;
}

/* --- out of the tool's code --- */

static uint64_t busy_of(const ask *a, size_t i) { return a->asked->threads[i].busy; }
static remote *thread(ask *a, size_t i) { return &a->process.threads.items[i]; }

/* Nobody who is busy goes on by itself: each sleeps among what looks like an unwinder's, and may wait for a lock of a
 * thread that stands still. */
static bool all_wait(ask *a)
{
    for (size_t i = 0; i < a->process.threads.count; i++)
        if (busy_of(a, i) && (busy_of(a, i) != MOVE_BUSY_UNWINDS || !thread(a, i)->sleeps)) return false;
    return true;
}

/* Which came out last: before that the others did not wait. NULL: none is left. */
static remote *last_out(ask *a)
{
    remote *last = NULL;
    for (size_t i = 0; i < a->process.threads.count; i++)
        if (thread(a, i)->out && (!last || thread(a, i)->out > last->out)) last = thread(a, i);
    return last;
}

/* Who is only in what was inserted makes a step. If there are no such, the others run for a moment, and `also` with
 * them. */
static inl_status run_busy(ask *a, remote *also, long nanoseconds, inl_error *e)
{
    size_t n = a->process.threads.count;
    live_run *how = calloc(n + 1, sizeof *how);
    bool stepped = false;
    inl_status s = how ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n && s == INL_OK; i++) {
        if (busy_of(a, i) == MOVE_BUSY_TOOL) how[i] = LIVE_RUNS_TO_PLACE;
        if (busy_of(a, i) == MOVE_BUSY_UNWINDS || thread(a, i) == also) how[i] = LIVE_RUNS;
        if (busy_of(a, i) != MOVE_BUSY_INSERTED) continue;
        s = remote_step(thread(a, i), e);
        if (thread(a, i)->gone) s = INL_OK;
        stepped = true;
    }
    if (also) also->out = 0;
    if (s == INL_OK && !stepped) s = live_run_some(&a->process, how, nanoseconds, stack_high(a), e);
    free(how);
    return s;
}

/* One of them that is busy; 0: all are out. */
static pid_t note_busy(ask *a, uint32_t look)
{
    pid_t busy = 0;
    for (size_t i = 0; i < a->process.threads.count; i++) {
        remote *r = thread(a, i);
        if (busy_of(a, i)) busy = r->pid;
        r->out = busy_of(a, i) ? 0 : r->out ? r->out : look;
    }
    return busy;
}

/* All are out then, or (*busy: the thread) one is not after so many seconds, or cannot come out while others stand. */
static inl_status bring_out(ask *a, double seconds, pid_t *busy, inl_error *e)
{
    enum { FIRST = 50000, LAST = 5000000 };
    long pause = FIRST;
    double end = now() + seconds;
    for (uint32_t look = 1;; look++) {
        inl_status s = put_question(a, MOVE_ASK_LOOK, e);
        *busy = s == INL_OK ? note_busy(a, look) : 0;
        if (s != INL_OK || !*busy || now() > end) return s;
        bool wait = look > 1 && all_wait(a);
        remote *also = wait ? last_out(a) : NULL;
        if (wait && !also) return s;
        s = run_busy(a, also, pause, e);
        if (s != INL_OK) return s;
        if (pause < LAST) pause += pause / 4;
    }
}

/* All run for a while; who sleeps at the begin and at the end of it? */
static void run_all(ask *a, inl_error *e)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    a->asleep.count = 0;
    for (size_t i = 0; i < a->process.threads.count; i++)
        if (a->process.threads.items[i].sleeps && !inl_vec_push(&a->asleep, a->process.threads.items[i].pid)) break;
    live_release(&a->process, e);
    nanosleep(&nap, NULL);
    for (size_t k = a->asleep.count; k-- > 0;)
        if (remote_state(a->asleep.items[k]) != 'S') a->asleep.items[k] = a->asleep.items[--a->asleep.count];
}

/* Who sleeps all the time is told soon; others may take longer, the more of them there are. */
static inl_status stop_outside(ask *a, inl_error *e)
{
    enum { SHORT = 3 };
    double seconds = AT_ONCE;
    const double end = now() + PATIENCE;
    for (unsigned round = 0;; round++, seconds *= round > SHORT ? 2 : 1) {
        pid_t busy = 0;
        inl_status s = live_stop(&a->process, e);
        if (s == INL_OK) s = bring_out(a, round < SHORT ? seconds / 10 : seconds, &busy, e);
        if (s != INL_OK || !busy) return s;
        run_all(a, e);
        if (now() > end)
            return inl_fail(e, INL_ERR_SYSTEM,
                            "thread %d of process %d does not come out of the tool's code; nothing was changed", busy,
                            a->process.pid);
    }
}

/* --- what was asked for --- */

static inl_status refused(const ask *a, inl_error *e)
{
    static const char *const why[] = {
        [0] = "for no reason that is known",
        [MOVE_ASK_SHARED] = "another process shares its memory, a child of vfork perhaps",
        [MOVE_ASK_NO_PROC] = "its own /proc/self cannot be read, so its stacks cannot be searched",
        [MOVE_ASK_CONFINED] = "it has confined itself (seccomp) since, which the tool takes care of",
        [MOVE_ASK_WORKERS] = "a thread of the tool's own does not end; others of them have ended",
    };
    uint64_t n = a->asked->refused < sizeof why / sizeof *why ? a->asked->refused : 0;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d: %s; the tool stays", a->process.pid, why[n]);
}

int live_open_report(pid_t pid, int number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe: all is in it */
}

/* A pipe has taken all of the report when there was room for one more piece of what is written at once. */
static bool is_whole(int fd, size_t size)
{
    enum { PIECE = 64 << 10 };
    int room = fcntl(fd, F_GETPIPE_SZ);
    return room < 0 || size + PIECE <= (size_t)room;
}

inl_status live_copy_report(pid_t pid, int fd, int out, inl_error *e)
{
    char bytes[16 << 10];
    size_t size = 0;
    if (fd < 0) return inl_fail(e, INL_ERR_SYSTEM, "cannot read the report: %s", strerror(errno));
    bool good = true;
    for (ssize_t n; good && (n = read(fd, bytes, sizeof bytes)) > 0; size += (size_t)n)
        for (ssize_t done = 0, m; good && done < n; done += m)
            if ((m = write(out, bytes + done, (size_t)(n - done))) <= 0) m = 0, good = false;
    inl_status s = good ? INL_OK : inl_fail(e, INL_ERR_SYSTEM, "cannot write the report: %s", strerror(errno));
    if (good && !is_whole(fd, size))
        s = inl_fail(
            e, INL_ERR_SYSTEM,
            "the report is too large: process %d may write but small files, and a pipe has room for %zu bytes of "
            "it (prlimit --pid %d --fsize=unlimited helps)",
            pid, size, pid);
    close(fd);
    return s;
}

/* To where the user wants it. */
static inl_status take_report(ask *a, inl_error *e)
{
    long answer;
    if (a->asked->fd < 0) return INL_OK;
    inl_status s = live_copy_report(a->process.pid, live_open_report(a->process.pid, (int)a->asked->fd), a->out, e);
    remote_call(leader(a), &answer, SYS_close, (long[6]){(long)a->asked->fd}, &(inl_error){0});
    live_closed(&a->process, &(inl_error){0});
    return s;
}

/* One of Inlay's is the kernel's. */
static inl_status take_stack(ask *a, remote *r, const move_ask_thread *t, inl_error *e)
{
    uint64_t own[3] = {t->stack, t->stack_flags, t->stack_size};
    long answer, at = (long)stack_high(a);
    if (!t->knows_stack) return INL_OK;
    inl_status s = remote_write(r, (uint64_t)at, own, sizeof own, e);
    return s == INL_OK ? remote_call(r, &answer, SYS_sigaltstack, (long[6]){at}, e) : s;
}

static inl_status send_back(ask *a, inl_error *e)
{
    inl_status s = INL_OK;
    for (size_t i = 0; i < a->process.threads.count && s == INL_OK; i++) {
        remote *r = &a->process.threads.items[i];
        const move_ask_thread *t = &a->asked->threads[i];
        remote_set_context(r, &t->ctx);
        if (t->knows_stack) remote_registers_set_block(&r->regs, t->block);
        s = take_stack(a, r, t, e);
        if (s == INL_OK && t->vectors) s = remote_slot_vectors(r, e);
        if (r->gone) s = INL_OK;
    }
    return s;
}

static void unmap_near(ask *a)
{
    const move_ask *q = a->asked;
    move_told_range *areas = calloc(q->area_count + 1, sizeof *areas);
    if (areas && remote_read(leader(a), q->areas, areas, q->area_count * sizeof *areas, &(inl_error){0}) == INL_OK)
        for (uint64_t i = 0; i < q->area_count; i++) unmap(a, areas[i].low, areas[i].high);
    free(areas);
    for (uint64_t i = 0; i < a->told.record->range_count; i++) unmap(a, a->told.ranges[i].low, a->told.ranges[i].high);
}

static void unmap_all(ask *a)
{
    unmap_near(a);
    unmap(a, a->told.record->tool_low, inl_page_up(a->told.record->tool_high));
    unmap(a, MOVE_LIVE_BASE, MOVE_REGION_HIGH);
}

/* What it will need for that it gets, where it has no /proc. */
static inl_status lend(ask *a, inl_error *e)
{
    if (a->wish != LIVE_LEAVE || live_opens_proc(leader(a), stack_high(a))) return INL_OK;
    a->lends = true;
    return live_lend_files(leader(a), stack_high(a), a->files, e);
}

static inl_status ask_now(ask *a, inl_error *e)
{
    inl_status s = stop_outside(a, e);
    if (s != INL_OK) return s;
    s = lend(a, e);
    if (s == INL_OK) s = put_question(a, a->wish == LIVE_LEAVE ? MOVE_ASK_LEAVE : MOVE_ASK_REPORT, e);
    if (s == INL_OK && !a->asked->done) s = refused(a, e);
    inl_status copied = s == INL_OK ? take_report(a, e) : s;
    if (s == INL_OK && a->wish == LIVE_LEAVE) {
        s = send_back(a, e);
        if (s == INL_OK) unmap_all(a);
    } else if (!leader(a)->gone) {
        unmap(a, MOVE_ASK_BASE, stack_high(a) + INL_PAGE);
    }
    inl_status out = live_release(&a->process, s == INL_OK && copied == INL_OK ? e : &(inl_error){0});
    return s != INL_OK ? s : copied != INL_OK ? copied : out;
}

/* Somebody was killed who was about to put a tool in: what he has mapped leads nowhere. */
static inl_status clear_left(ask *a, inl_error *e)
{
    uint64_t started = 0, at = MOVE_TOLD_BASE + offsetof(move_told, started);
    inl_status s = live_stop(&a->process, e);
    if (s == INL_OK && remote_read(leader(a), at, &started, sizeof started, e) == INL_OK &&
        started == MOVE_TOLD_STARTED) {
        s = live_release(&a->process, e); /* meanwhile, by itself */
        live_told_free(&a->told);
        if (s == INL_OK) s = live_record_read(a->process.pid, &a->told, e);
        return s == INL_OK ? ask_now(a, e) : s;
    }
    if (s != INL_OK) return s;
    for (uint64_t i = 0; i < a->told.record->range_count; i++) unmap(a, a->told.ranges[i].low, a->told.ranges[i].high);
    unmap(a, MOVE_LIVE_BASE, MOVE_REGION_HIGH);
    return live_release(&a->process, e);
}

static bool has_started(const ask *a) { return a->told.record->started == MOVE_TOLD_STARTED; }

/* A mutator's code is its own as long as it is there. */
static inl_status may_ask(const ask *a, pid_t pid, const move_told_holder *self, inl_error *e)
{
    const move_told *r = a->told.record;
    char who[128];
    if (self && memcmp(self, &r->holder, sizeof *self) != 0)
        return inl_fail(e, INL_ERR_NOT_FOUND, "process %d: what was inserted has been taken out by inlay detach", pid);
    if (self || !r->is_mutators) return INL_OK;
    live_holder_say(&a->told, who, sizeof who);
    if (a->wish == LIVE_REPORT)
        return inl_fail(e, INL_ERR_USAGE, "what is in process %d is code of %s, which has no report", pid, who);
    if (!live_holder(&r->holder)) return INL_OK;
    return inl_fail(e, INL_ERR_USAGE, "%s is at work on process %d; end that one first", who, pid);
}

inl_status live_ask(pid_t pid, live_wish wish, int out, const move_told_holder *self, inl_error *e)
{
    ask a = {.wish = wish, .out = out};
    inl_status s = live_record_read(pid, &a.told, e);
    if (s == INL_OK) s = may_ask(&a, pid, self, e);
    if (s != INL_OK) {
        live_told_free(&a.told);
        return s;
    }
    if (!has_started(&a) && wish != LIVE_LEAVE)
        s = inl_fail(e, INL_ERR_NOT_FOUND, "the tool in process %d has not started", pid);
    if (s == INL_OK) s = live_open_inside(pid, &a.process, e);
    if (s == INL_OK) {
        s = has_started(&a) ? ask_now(&a, e) : clear_left(&a, e);
        live_close(&a.process);
    }
    live_told_free(&a.told);
    inl_vec_free(&a.asleep);
    free(a.asked);
    return s;
}
