/* All threads go back to the program's own code, and Inlay is out of the process.
 *
 * Handlers are the process's, the program's or Inlay's for all threads at once. So the threads come together first:
 * each that is asked (by a signal of Inlay's own, a nudge) comes to a boundary of the program's instructions as for any
 * signal, a sleeping call is begun anew, and there it waits, its registers, mask and alternate stack in a frame such as
 * the kernel makes. When all are there, one of them ends the tool, gives back handlers and descriptors, and lets the
 * others go: each leaves by rt_sigreturn. Then nobody is in Inlay's memory but that one, which unmaps it on its way.
 *
 * Who waits has done nothing that cannot be undone: when somebody does not come, all go on under the tool.
 *
 *     jit_leave_ask           from anywhere; or a nudge from another process
 *       jit_leave_come        each thread, at a boundary
 *         gather              is everybody there?
 *           end_here          one of them, once
 *         go                  and off
 *
 * Behind a thread's last instruction of Inlay's there is one of the program's (a system call and a return): a thread
 * that has made a call there is out, and nothing else would tell (jit_leave_by). The call has the kernel count it in
 * Inlay's memory: a descriptor to write to need not be the same file in each thread. */
#include "jit/core.h"
#include "run/kernel.h"
#include "run/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/log.h"
#include "base/page.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

/* The C library has no names for what is private to a process; ADD_ONE: to the second word, and nobody is woken there.
 */
enum {
    FUTEX_WAIT = 128,
    FUTEX_WAKE = 129,
    FUTEX_WAKE_OP = 133,
    ADD_ONE = 1 << 28 | 1 << 12,
    LONG = 5000,
    NAP = 1000000,
    ASKING = 1000,
    AGAIN = 5
};
enum { GATHERING, ENDING, GOING }; /* jit_leaving.stage */

static int64_t milliseconds(void)
{
    struct timespec now = {0};
    sys_call2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- the request --- */

bool jit_leave_wanted(const run_thread *t)
{
    return __atomic_load_n(&jit.leaving.wanted, __ATOMIC_ACQUIRE) && !t->is_vfork_child && !t->calls &&
           !jit_of(t)->stepping.again;
}

static void nudge(int tid)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSYS;
    info.si_code = RUN_NUDGE;
    sys_call4(SYS_rt_tgsigqueueinfo, sys_call0(SYS_getpid), tid, SIGSYS, (long)&info);
}

const char *jit_leave_barred(void)
{
    if (jit.stops.on) return "it is run under a debugger (--gdb)";
    return run_here.start.brk_emulated ? "it was loaded without ptrace, beside the tool" : NULL;
}

void jit_leave_ask(void) { nudge((int)sys_call0(SYS_gettid)); }

void jit_leave_nudged(void)
{
    if (!jit_leave_barred()) __atomic_store_n(&jit.leaving.wanted, true, __ATOMIC_SEQ_CST);
}

/* Lock held. New threads find by themselves that it is wanted. */
static void nudge_all(const run_thread *but)
{
    for (const run_thread *t = run_here.threads; t; t = t->next)
        if (t != but && t->tid && !jit_of(t)->leaves && !t->is_vfork_child && !t->has_ended) nudge(t->tid);
    jit.leaving.next_nudge = milliseconds() + AGAIN;
}

/* --- is everybody there? --- */

static bool has_thread(int tid)
{
    for (const run_thread *t = run_here.threads; t; t = t->next)
        if (t->tid == tid) return true;
    return false;
}

/* The last of a thread that has ended is an instruction of Inlay's. */
static bool is_gone(const run_thread *t)
{
    if (!t->tid || has_thread(t->tid)) return true;
    return sys_call3(SYS_tgkill, sys_call0(SYS_getpid), t->tid, 0) == -ESRCH;
}

/* Lock held. NULL: all are. */
static const run_thread *missing(void)
{
    for (const run_thread *t = run_here.threads; t; t = t->next)
        if (!jit_of(t)->leaves) return t;
    for (const run_thread *t = run_here.free_threads; t; t = t->next)
        if (!is_gone(t)) return t;
    return NULL;
}

static void give_up(const run_thread *late)
{
    jit.leaving.wanted = false;
    if (!late) run_say("process %ld: the tool stays: a thread of its own does not end", sys_call0(SYS_getpid));
    else
        run_say("process %ld: the tool stays: %s %d does not come out of %s", sys_call0(SYS_getpid),
                late->is_vfork_child ? "process" : "thread", late->tid,
                late->calls ? "a procedure that a function of the tool's stands in for"
                            : "a system call or the tool's code");
}

/* --- the way out --- */

static bool search(const uint8_t *in, size_t size, const jit_way_bytes *wanted, uint64_t *at)
{
    for (; !*at && wanted->size; wanted++) {
        const uint8_t *found = memmem(in, size, wanted->bytes, wanted->size);
        if (found) *at = (uint64_t)(uintptr_t)found;
    }
    return *at;
}

/* In code of the program's files, which nobody can write to. */
static void search_in(const module *m, jit_way *way)
{
    const image_segment *s;
    size_t n = image_segments(m->image, &s);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = s[i].addr + m->bias;
        size_t size = s[i].file_size;
        if (!jit_memory_is_fixed(at, at + size)) continue;
        search((const uint8_t *)at, size, jit_ways_to_call, &way->call);
        search((const uint8_t *)at, size, jit_ways_back, &way->back);
    }
}

/* Lock held. */
static jit_way find_way(void)
{
    jit_way way = {0};
    for (const module *m = module_first(run_here.modules); m && !(way.call && way.back); m = m->next)
        search_in(m, &way);
    return way.call && way.back ? way : (jit_way){0};
}

/* --- the end --- */

/* The number in a line of /proc/self/status, which is about the first thread. */
static uint64_t status_of(const char *text, const char *name, int base)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

/* Whoever asks from outside holds the first thread while he sends it a nudge (live/ask_jit.c): that must arrive here. A
 * tracer that stays is none of those. */
static void wait_for_askers(void)
{
    char text[4096];
    const struct timespec nap = {.tv_nsec = NAP};
    for (int64_t end = milliseconds() + ASKING; milliseconds() < end;) {
        int fd = (int)run_proc_open("self/status");
        long n = sys_failed(fd) ? fd : sys_call3(SYS_read, fd, (long)text, sizeof text - 1);
        if (!sys_failed(fd)) sys_call1(SYS_close, fd);
        if (n <= 0) return;
        text[n] = 0;
        uint64_t waits = status_of(text, "SigPnd:", 16) | status_of(text, "ShdPnd:", 16);
        if (!status_of(text, "TracerPid:", 10) && !(waits & RUN_BIT(SIGSYS))) return;
        sys_call2(SYS_nanosleep, (long)&nap, 0);
    }
}

/* What is Inlay's elsewhere than around the tool itself: none of this code, and no stack. */
static void unmap_apart(uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < run_here.owned.count; i++) {
        const inl_range *r = &run_here.owned.items[i];
        if (r->low < low || r->high > high) sys_call2(SYS_munmap, (long)r->low, (long)(r->high - r->low));
    }
}

/* The last that is done with the tool's callbacks and descriptors; the thread has all its signals blocked then. */
static void end_here(run_thread *t)
{
    jit_leaving *l = &jit.leaving;
    run_process_end(t, 0, 0);
    wait_for_askers();
    jit_guard_no_more();
    run_signals_give_back(t->signals);
    l->last = t->tid;
    l->others = 0;
    for (const run_thread *o = run_here.threads; o; o = o->next) l->others += o != t;
    run_fd_close_all(-1);
    if (!l->way.call) unmap_apart(run_here.start.tool_low, run_here.start.tool_high);
}

/* Until each other thread has counted itself, from the program's code. */
static void wait_for_others(jit_leaving *l)
{
    for (uint32_t n; (n = __atomic_load_n(&l->out, __ATOMIC_ACQUIRE)) < l->others;)
        sys_call4(SYS_futex, (long)&l->out, FUTEX_WAIT, (long)n, 0);
}

/* A thread may have descriptors of its own (clone without CLONE_FILES, unshare): what was open when it got them is open
 * there still. */
static void close_own(const run_thread *t, const jit_leaving *l)
{
    if (run_fd_are_own(t->tid, l->last)) run_fd_close_own();
}

static void go(run_thread *t, bool is_last)
{
    jit_leaving *l = &jit.leaving;
    weave_context before = t->ctx;
    jit_last_call call = {SYS_futex, {(long)&l->out, FUTEX_WAKE_OP, 1, 0, (long)&l->out, ADD_ONE}};
    run_signals_queue(t);
    if (!l->way.call) run_sigreturn_for_good(jit_of(t)->leave_sp + RUN_HANDLER_POPS, &before);
    if (is_last) {
        uint64_t low = run_here.start.tool_low, high = run_here.start.tool_high;
        wait_for_others(l);
        unmap_apart(low, high);
        call = (jit_last_call){SYS_munmap, {(long)low, (long)(high - low)}};
    } else {
        close_own(t, l);
    }
    jit_leave_by(jit_of(t)->leave_sp, &before, &call, l->way.call);
}

/* --- each thread --- */

static void wake_all(void) { sys_call3(SYS_futex, (long)&jit.leaving.stage, FUTEX_WAKE, INT32_MAX); }

/* Lock held, and released meanwhile. GATHERING: it will not be. */
static uint32_t gather(run_thread *t)
{
    const struct timespec nap = {.tv_nsec = NAP};
    jit_leaving *l = &jit.leaving;
    while (l->wanted && l->stage != GOING) {
        const run_thread *late = l->stage == GATHERING ? missing() : NULL;
        if (l->stage == GATHERING && !late) {
            l->stage = ENDING;
            inl_lock_release(&run_here.lock);
            if (run_workers_end()) {
                end_here(t);
                __atomic_store_n(&l->stage, GOING, __ATOMIC_SEQ_CST);
                wake_all();
                return ENDING;
            }
            inl_lock_take(&run_here.lock);
            l->stage = GATHERING;
            give_up(NULL);
            continue;
        }
        if (late && milliseconds() - l->since > LONG) give_up(late);
        else if (late && milliseconds() > l->next_nudge) nudge_all(t);
        inl_lock_release(&run_here.lock);
        sys_call4(SYS_futex, (long)&l->stage, FUTEX_WAIT, (long)l->stage, (long)&nap);
        inl_lock_take(&run_here.lock);
    }
    bool goes = l->wanted;
    if (!goes) jit_of(t)->leaves = false;
    inl_lock_release(&run_here.lock);
    return goes ? GOING : GATHERING;
}

static bool overlap(const stack_t *a, const stack_t *b)
{
    uint64_t low = (uint64_t)(uintptr_t)a->ss_sp, other = (uint64_t)(uintptr_t)b->ss_sp;
    return low < other + b->ss_size && other < low + a->ss_size;
}

/* Threads may have one alternate stack between them, for the one that crashes: there is no room for all their frames.
 * Lock held. */
static bool has_own_altstack(const run_thread *t)
{
    for (const run_thread *o = run_here.threads; o; o = o->next)
        if (o != t && overlap(&o->altstack, &t->altstack)) return false;
    return true;
}

/* The frame of the last return. On an alternate stack, where there is one: the other may be short. */
static bool push_frame(run_thread *t, bool alternate)
{
    run_action a = {.flags = SA_RESTORER | (alternate ? SA_ONSTACK : 0), .restorer = jit.leaving.way.back};
    siginfo_t info;
    memset(&info, 0, sizeof info);
    weave_context before = t->ctx;
    bool good = run_sigframe_push(t, SIGSYS, &info, &a, t->sigmask);
    jit_of(t)->leave_sp = run_sp(&t->ctx);
    t->ctx = before;
    return good;
}

void jit_leave_come(run_thread *t)
{
    uint64_t mask;
    if (!jit_sections_leave(t)) return; /* something is to be delivered first */
    jit_join_restart(t);
    inl_lock_take(&run_here.lock);
    if (!jit.leaving.way_known) jit.leaving.way = t->filters ? (jit_way){0} : find_way();
    jit.leaving.way_known = true;
    bool alternate = has_own_altstack(t);
    inl_lock_release(&run_here.lock);
    if (!push_frame(t, alternate)) {
        jit.leaving.wanted = false;
        run_say("process %ld: the tool stays: thread %d has no room on its stack", sys_call0(SYS_getpid), t->tid);
        return;
    }
    run_kernel_mask_all();
    inl_lock_take(&run_here.lock);
    jit_of(t)->leaves = true;
    if (!jit.leaving.nudged) {
        jit.leaving.nudged = true;
        jit.leaving.since = milliseconds();
        nudge_all(t);
    }
    uint32_t stage = gather(t);
    if (stage != GATHERING) go(t, stage == ENDING);
    jit.leaving.nudged = false;
    run_set_sp(&t->ctx, jit_of(t)->leave_sp + RUN_HANDLER_POPS);
    run_sigframe_pop(t, &mask);
    run_mask_apply(t);
}
