/* Threads of another process, and places where one of them may call a procedure.
 *
 * A thread may be anywhere: in the midst of malloc, with a lock of the dynamic linker's in its hands. It is not when it
 * runs the program's own code, or that of libraries other than these two; and not when it waits in the kernel in a call
 * by which neither of them waits while it holds something. */
#include "tool/mutator.h"
#include "base/sys.h"

#include <inlay/evaluate.h>

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum { PATIENCE = 5, NAP = 2000000 };

/* --- threads --- */

bool mutator_read_there(const mutatee *m, const void *from, void *to, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)from, size};
    return process_vm_readv(m->live.pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* The mutator's file in the process lists them. */
uint64_t mutator_thread_block(const mutatee *m, int tid, run_thread *copy)
{
    enum { MOST = 1 << 20 };
    run_thread *at;
    int inner = live_inner_tid(tid);
    if (!m->has_tool || !mutator_read_there(m, &run_here.threads, &at, sizeof at)) return 0;
    for (int n = 0; at && n < MOST && mutator_read_there(m, at, copy, sizeof *copy); n++, at = copy->next)
        if (copy->tid == inner) return (uint64_t)(uintptr_t)at;
    return 0;
}

int mutator_thread_number(const mutatee *m, int tid)
{
    run_thread block;
    return mutator_thread_block(m, tid, &block) ? (int)block.frame.thread_number : -1;
}

unsigned inlay_process_threads(inlay_process *p, inlay_process_thread *out, unsigned most)
{
    const mutatee *m = mutatee_of(p);
    char path[64];
    unsigned n = 0;
    if (!p) return mutator_refuse(INL_ERR_USAGE, "there is no process");
    snprintf(path, sizeof path, "/proc/%d/task", inlay_process_pid(p));
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        int tid = isdigit((unsigned char)*e->d_name) ? atoi(e->d_name) : 0;
        if (tid && out && n < most) out[n] = (inlay_process_thread){tid, m ? mutator_thread_number(m, tid) : -1};
        n += tid != 0;
    }
    if (d) closedir(d);
    return n;
}

remote *mutator_thread(mutatee *m, int tid, inl_error *e)
{
    for (size_t i = 0; i < m->live.threads.count; i++)
        if (!tid || m->live.threads.items[i].pid == tid) return &m->live.threads.items[i];
    inl_fail(e, INL_ERR_NOT_FOUND, "process %d has no thread %d", m->live.pid, tid);
    return NULL;
}

/* --- where it is --- */

bool mutator_in_program(const mutatee *m, const remote *r)
{
    return module_at(m->modules, remote_registers_pc(&r->regs));
}

static bool is_delicate(const mutatee *m, const module *x)
{
    static const char *const names[] = {"libc.so", "libc-", "ld-", "ld.so", "libpthread", "libdl", "libc.musl"};
    const char *name = image_name(x->image);
    size_t others = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true;
    for (const module *y = module_first(m->modules); y; y = y->next) others += y != x && !y->is_vdso;
    return others == 0; /* a static program: the C library is in it */
}

static bool waits(const mutatee *m, const remote *r)
{
    static const long calls[] = {SYS_read,
                                 SYS_readv,
                                 SYS_ppoll,
                                 SYS_pselect6,
                                 SYS_epoll_pwait,
                                 SYS_nanosleep,
                                 SYS_clock_nanosleep,
                                 SYS_wait4,
                                 SYS_waitid,
                                 SYS_recvfrom,
                                 SYS_recvmsg,
                                 SYS_accept,
                                 SYS_accept4,
                                 SYS_rt_sigtimedwait,
                                 SYS_rt_sigsuspend,
                                 SYS_restart_syscall,
#ifdef SYS_poll
                                 SYS_poll,
                                 SYS_select,
                                 SYS_epoll_wait,
                                 SYS_pause
#endif
    };
    uint8_t bytes[sizeof remote_syscall_insn];
    long nr = remote_registers_wanted(&r->regs);
    /* Interrupted again, and nobody knows which one would have to begin anew if the kernel forgot it. */
    if (nr == SYS_restart_syscall && r->restarts == SYS_restart_syscall) return false;
    if (!mutator_read_there(m, (const void *)remote_registers_pc(&r->regs), bytes, remote_syscall_size) ||
        memcmp(bytes, remote_syscall_insn, remote_syscall_size))
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (nr == calls[i]) return true;
    return false;
}

/* A call of the program's that the gate makes, as of the C library's code that has one for all of them: the thread goes
 * to where the gate is entered. What it keeps of a call is for one alone. (A call that the tool has been told of would
 * be told of once more.) */
static bool waits_in_gate(const mutatee *m, remote *r)
{
    run_thread block;
    weave_context c;
    if (rewriter_watches_syscalls() || !waits(m, r) || !mutator_thread_block(m, r->pid, &block)) return false;
    remote_context(r, &c);
    if (moved_settle_registers(&block, &c) != MOVED_SETTLED) return false;
    remote_set_context(r, &c);
    return true;
}

static bool is_calm(const mutatee *m, remote *r)
{
    const module *x = module_at(m->modules, remote_registers_pc(&r->regs));
    if (!x) return waits_in_gate(m, r);
    return !x->is_vdso && (!is_delicate(m, x) || waits(m, r));
}

/* Does a thread stand still with a lock of Inlay's that instrumented code takes? Who is called would wait for it. */
static bool holds_lock(const mutatee *m)
{
    const inl_lock *const locks[] = {&run_here.lock, &run_here.owned_lock, &tool_now->locks.records,
                                     &tool_now->locks.output, &tool_now->locks.small};
    inl_lock there;
    for (size_t i = 0; m->has_tool && i < sizeof locks / sizeof *locks; i++)
        if (mutator_read_there(m, locks[i], &there, sizeof there) && there.word) return true;
    return false;
}

static inl_status refuse(const mutatee *m, const remote *r, bool locked, inl_error *e)
{
    uint64_t pc = remote_registers_pc(&r->regs);
    const module *x = module_at(m->modules, pc);
    if (locked)
        return inl_fail(
            e, INL_ERR_UNSUPPORTED,
            "a thread of process %d stands still in Inlay's own code, with a lock that a procedure may wait "
            "for; try later",
            m->live.pid);
    return inl_fail_at(e, INL_ERR_UNSUPPORTED, pc,
                       "thread %d of process %d is at no place where a procedure can be called safely (%s); try later, "
                       "or another thread",
                       r->pid, m->live.pid, x ? image_name(x->image) : "inserted code, or code of no file");
}

static inl_status run_a_little(mutatee *m, inl_error *e)
{
    live_run *all = malloc(m->live.threads.count * sizeof *all + 1);
    if (!all) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < m->live.threads.count; i++)
        all[i] = live_is_kept(&m->live, m->live.threads.items[i].pid) ? LIVE_STANDS : LIVE_RUNS;
    inl_status s = live_run_some(&m->live, all, NAP, 0, e);
    free(all);
    return s;
}

inl_status mutator_calm(mutatee *m, int tid, remote **out, inl_error *e)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    for (time_t end = t.tv_sec + PATIENCE;;) {
        remote *r = *out = mutator_thread(m, tid, e);
        if (!r) return INL_ERR_NOT_FOUND;
        const bool calm = is_calm(m, r), locked = holds_lock(m);
        if (calm && !locked) return INL_OK;
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (m->is_stopped || live_is_kept(&m->live, r->pid) || t.tv_sec > end) return refuse(m, r, calm, e);
        inl_status s = run_a_little(m, e);
        if (s != INL_OK) return s;
    }
}
