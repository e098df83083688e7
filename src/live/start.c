/* A program from its first instruction on: from its exec up to where something of it, or of a library, is about to be
 * executed.
 *
 * Until then only the dynamic linker runs, alone: it maps what the program needs, relocates it, and at last calls
 * something in it: a resolver of a symbol, an initialiser, the entry point. Which of these comes first is not asked
 * for. Nothing that is mapped from a file may be executed until it comes: the program's code and what is mapped for
 * execution loses that right, and the first fault for want of it is the moment. All is given back then. Nothing depends
 * on whose linker it is.
 *
 * Signals are held back meanwhile. The fault itself is one that the process cannot hold back nor ignore: the kernel
 * takes both away, and both are given back. */
#include "live/live.h"
#include "base/page.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct hidden { /* what cannot be executed yet; `prot` as it is to be */
    uint64_t low, high;
    int prot;
} hidden;

typedef struct start {
    live_process *process;
    const module *linker;
    remote r;
    INL_VEC(hidden) all;
    remote_stop call; /* the one that is being made */
    bool hides;       /* it would have mapped something for execution */
} start;

/* What the kernel has of an action: handler, flags, restorer, mask. */
typedef struct kernel_action {
    uint64_t words[4];
} kernel_action;

/* --- what is hidden --- */

static bool add(start *t, uint64_t low, uint64_t high, int prot)
{
    hidden one = {low, high, prot};
    return low >= high || inl_vec_push(&t->all, one);
}

/* Something else is there now. */
static bool forget(start *t, uint64_t low, uint64_t high)
{
    bool good = true;
    size_t n = t->all.count;
    for (size_t i = 0; i < n && good; i++) {
        hidden was = t->all.items[i];
        if (was.high <= low || was.low >= high) continue;
        t->all.items[i].high = was.low < low ? low : was.low; /* the part below, or nothing */
        if (was.high > high) good = add(t, was.low > high ? was.low : high, was.high, was.prot);
    }
    return good;
}

static hidden *hidden_at(const start *t, uint64_t at)
{
    for (size_t i = 0; i < t->all.count; i++)
        if (at >= t->all.items[i].low && at < t->all.items[i].high) return &t->all.items[i];
    return NULL;
}

static inl_status protect(start *t, const hidden *h, int prot, inl_error *e)
{
    long answer;
    long args[6] = {(long)h->low, (long)(h->high - h->low), prot};
    inl_status s = remote_call(&t->r, &answer, SYS_mprotect, args, e);
    if (s == INL_OK && answer != 0)
        return inl_fail_at(e, INL_ERR_SYSTEM, h->low,
                           "process %d: mprotect: %s (where memory may not become executable, start it under the JIT "
                           "engine)",
                           t->r.pid, strerror((int)-answer));
    return s;
}

/* The program's own code, as the kernel has mapped it. The linker and the vdso stay: they run now. */
static inl_status hide_program(start *t, inl_error *e)
{
    const module *linker = t->linker;
    const live_process *p = t->process;
    inl_status s = INL_OK;
    for (size_t i = 0; i < p->mappings.count && s == INL_OK; i++) {
        const live_mapping *m = &p->mappings.items[i];
        if (*m->name != '/' || !(m->prot & PROT_EXEC) || (m->low < linker->high && m->high > linker->low)) continue;
        hidden h = {m->low, m->high, m->prot};
        s = add(t, h.low, h.high, h.prot) ? protect(t, &h, h.prot & ~PROT_EXEC, e)
                                          : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    }
    return s;
}

/* What the linker runs before it loads what the program needs is none of the program's. */
static inl_status show_early(start *t, hidden *h, inl_error *e)
{
    move_told_range r = {h->low, h->high};
    inl_status s = protect(t, h, h->prot, e);
    h->high = h->low;
    if (s == INL_OK) s = remote_set_registers(&t->r, e);
    return s == INL_OK && !inl_vec_push(&t->process->early, r) ? inl_fail(e, INL_ERR_NO_MEMORY, "out of memory") : s;
}

static inl_status show_all(start *t, inl_error *e)
{
    inl_status s = INL_OK;
    for (size_t i = 0; i < t->all.count && s == INL_OK; i++)
        if (t->all.items[i].low < t->all.items[i].high) s = protect(t, &t->all.items[i], t->all.items[i].prot, e);
    return s;
}

/* --- what the linker does --- */

enum { PROT_ARGUMENT = 2 };

static bool is_of_file(const remote_stop *c) { return c->nr == SYS_mmap && !(c->args[3] & MAP_ANONYMOUS); }

static inl_status call_begins(start *t, const remote_stop *stop, inl_error *e)
{
    t->call = *stop;
    t->hides = (is_of_file(stop) || stop->nr == SYS_mprotect) && stop->args[PROT_ARGUMENT] & PROT_EXEC;
    if (!t->hides) return INL_OK;
    remote_registers_set_argument(&t->r.regs, PROT_ARGUMENT, stop->args[PROT_ARGUMENT] & ~(uint64_t)PROT_EXEC);
    return remote_set_registers(&t->r, e);
}

/* Registers are as the call would have left them. */
static inl_status call_ends(start *t, long answer, inl_error *e)
{
    const remote_stop *c = &t->call;
    bool maps = c->nr == SYS_mmap, changes = maps || c->nr == SYS_mprotect || c->nr == SYS_munmap;
    bool failed = answer < 0 && answer >= -4095, good = true;
    uint64_t low = maps ? (uint64_t)answer : c->args[0], high = low + inl_page_up(c->args[1]);
    if (changes && !failed) good = forget(t, low, high);
    if (good && t->hides && !failed) good = add(t, low, high, (int)c->args[PROT_ARGUMENT]);
    if (!good) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (!t->hides) return INL_OK;
    t->hides = false;
    remote_registers_set_argument(&t->r.regs, PROT_ARGUMENT, c->args[PROT_ARGUMENT]);
    return remote_set_registers(&t->r, e);
}

static inl_status run_linker(start *t, inl_error *e)
{
    remote_stop stop;
    int signo = 0;
    for (;;) {
        inl_status s = remote_next(&t->r, signo, &stop, e);
        signo = 0;
        if (s == INL_OK && stop.kind == REMOTE_CALL_BEGINS) s = call_begins(t, &stop, e);
        else if (s == INL_OK && stop.kind == REMOTE_CALL_ENDS) s = call_ends(t, stop.answer, e);
        else if (s == INL_OK && stop.signo == SIGSEGV && stop.fault == remote_registers_pc(&t->r.regs) &&
                 hidden_at(t, stop.fault)) {
            if (live_tells_program(t->process, t->linker)) return INL_OK;
            s = show_early(t, hidden_at(t, stop.fault), e);
        } else signo = stop.signo; /* a fault of the linker's own */
        if (s != INL_OK) return s;
    }
}

/* --- the whole --- */

/* In the process's memory below its stack, where nothing is yet. */
static inl_status action(start *t, kernel_action *a, bool put, inl_error *e)
{
    enum { BELOW = 512 };
    long answer, at = (long)((remote_registers_sp(&t->r.regs) - BELOW) & ~(uint64_t)15);
    long args[6] = {SIGSEGV, put ? at : 0, put ? 0 : at, 8};
    inl_status s = put ? remote_write(&t->r, (uint64_t)at, a, sizeof *a, e) : INL_OK;
    if (s == INL_OK) s = remote_call(&t->r, &answer, SYS_rt_sigaction, args, e);
    return s == INL_OK && !put ? remote_read(&t->r, (uint64_t)at, a, sizeof *a, e) : s;
}

static inl_status go_to_first(start *t, inl_error *e)
{
    live_process *p = t->process;
    kernel_action segv;
    uint64_t mask = t->r.sigmask, all = ~0ull;
    inl_status s = action(t, &segv, false, e);
    if (s == INL_OK) s = hide_program(t, e);
    if (s == INL_OK) s = remote_set_registers(&t->r, e);
    if (s == INL_OK) s = run_linker(t, e);
    if (s == INL_OK) s = live_read_maps(p, e);
    if (s == INL_OK && !live_find_syscall(p)) s = inl_fail(e, INL_ERR_UNSUPPORTED, "no system call instruction");
    t->r.code_at = p->syscall_at;
    if (s == INL_OK && ptrace(PTRACE_SETSIGMASK, t->r.pid, sizeof all, &all) != 0)
        s = inl_fail(e, INL_ERR_SYSTEM, "holding signals back: %s", strerror(errno));
    t->r.sigmask = mask;
    if (s == INL_OK) s = show_all(t, e);
    return s == INL_OK ? action(t, &segv, true, e) : s;
}

inl_status live_start(pid_t pid, live_process *p, inl_error *e)
{
    start t = {.process = p};
    *p = (live_process){.pid = pid, .is_ours = getppid() == pid};
    inl_status s = remote_check(e);
    if (s == INL_OK) s = remote_begin_at(&t.r, pid, e);
    if (s == INL_OK) s = live_read_maps(p, e);
    if (s == INL_OK && !live_find_syscall(p)) s = inl_fail(e, INL_ERR_UNSUPPORTED, "no system call instruction");
    t.r.code_at = p->syscall_at;
    module_set *now = module_set_new();
    if (s == INL_OK && !now) s = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (s == INL_OK) s = live_find_images(p, now, e);
    if (s == INL_OK && p->linker) t.linker = module_at(now, p->linker);
    if (s == INL_OK && t.linker) s = go_to_first(&t, e); /* else it stands there */
    if (s == INL_OK) s = live_read_maps(p, e);
    if (now) module_set_free(now);
    if (t.r.gone) s = inl_fail(e, INL_ERR_NOT_FOUND, "the program has ended before its first instruction");
    inl_vec_free(&t.all);
    bool good = inl_vec_push(&p->threads, t.r) && inl_vec_push(&p->seized, pid);
    if (!good && s == INL_OK) s = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return s == INL_OK ? live_park(p, e) : s;
}

void live_end(live_process *p, int status)
{
    inl_error ignored;
    if (!p->threads.count || p->threads.items[0].gone) return;
    remote *r = &p->threads.items[0];
    remote_registers_call(&r->regs, p->syscall_at, SYS_exit_group, (long[6]){status});
    if (remote_give_back(r, &ignored) != INL_OK) kill(p->pid, SIGKILL);
}

void live_let_begin(pid_t pid) { ptrace(PTRACE_DETACH, pid, 0, 0); }

void live_end_begun(pid_t pid, int status, int signo)
{
    remote r;
    inl_error ignored;
    if (remote_begin(&r, pid, &ignored) != INL_OK) r.code_put = false;
    uint64_t mask = r.sigmask & ~(1ull << (signo - 1));
    if (signo && ptrace(PTRACE_SETSIGMASK, pid, sizeof mask, &mask) == 0) kill(pid, signo);
    remote_end(&r, signo ? 128 + signo : status);
}

/* The signal waits for the thread; where it is ignored there is the status that a shell shows for it. */
void live_end_by(live_process *p, int signo)
{
    if (!p->threads.count || p->threads.items[0].gone) return;
    p->threads.items[0].sigmask &= ~(1ull << (signo - 1));
    kill(p->pid, signo);
    live_end(p, 128 + signo);
}

/* What has been killed answers to nothing any more a moment before its end is seen. */
bool live_has_ended(const live_process *p)
{
    enum { NAPS = 1000 };
    const struct timespec nap = {.tv_nsec = 1000000};
    const bool dies = p->threads.count && p->threads.items[0].gone;
    for (unsigned n = 0; n < NAPS && dies && !remote_has_ended(p->pid); n++) nanosleep(&nap, NULL);
    return remote_has_ended(p->pid);
}
