/* The program's signals: what it asked for, and how a signal that Inlay's handler has taken reaches it.
 *
 *     kernel --> run_signal_entry --> run_signal --> the engine: notes it in t->pending (or t->fault)
 *                                              |
 *              dispatcher, at a boundary --> run_signal_deliver_pending: frame, new context
 *                                              |
 *              program's handler runs from the cache, returns with rt_sigreturn --> run_sys_sigreturn
 *
 * The program's dispositions are virtual. The kernel has Inlay's handler for every signal that the
 * program handles, that a fault can raise, or that would kill (so that the tool's report is written
 * first); the other dispositions are the kernel's own affair. A namespace's first process is spared
 * from most signals by the kernel as long as it has no handler for them, so there none is put in for
 * default actions.
 *
 * t->sigmask is always the program's mask. The kernel's is t->sigmask without the faults, or, from
 * a signal's arrival to its delivery (mask_is_ours), everything but the faults. So at most one signal is
 * in t->pending, and the kernel keeps the rest in its own order.
 */
#include "run/kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/region.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

#ifndef SA_EXPOSE_TAGBITS
#define SA_EXPOSE_TAGBITS 0x00000800
#endif
#define KNOWN_FLAGS                                                                                                    \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND |                  \
     SA_EXPOSE_TAGBITS | SA_RESTORER)

enum { SIGNALS = 64 };
#define IGNORED_BY_DEFAULT (RUN_BIT(SIGCHLD) | RUN_BIT(SIGURG) | RUN_BIT(SIGWINCH) | RUN_BIT(SIGCONT))
#define STOPS_BY_DEFAULT   (RUN_BIT(SIGSTOP) | RUN_BIT(SIGTSTP) | RUN_BIT(SIGTTIN) | RUN_BIT(SIGTTOU))

/* --- masks --- */

void run_kernel_mask_set(uint64_t mask) { sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask); }

uint64_t run_kernel_mask_all(void)
{
    uint64_t all = ~RUN_BIT(SIGSYS), before = 0; /* which a call of ours may raise */
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all);
    return before;
}

uint64_t run_kernel_mask_sent(void)
{
    uint64_t sent = ~RUN_FAULTS, before = 0;
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&sent, (long)&before, sizeof sent);
    return before;
}

uint64_t run_kernel_mask_faults(void)
{
    uint64_t faults = RUN_FAULTS, before = 0;
    sys_call4(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&faults, (long)&before, sizeof faults);
    return before;
}

void run_mask_apply(run_thread *t)
{
    t->mask_is_ours = false;
    run_kernel_mask_set((run_here.engine->is_native ? ~0ull : t->sigmask) & ~RUN_FAULTS);
}

/* --- dispositions --- */

bool run_kills_by_default(int signo) { return !((IGNORED_BY_DEFAULT | STOPS_BY_DEFAULT) & RUN_BIT(signo)); }

bool run_signal_matters(int signo, const run_action *a)
{
    if (a->handler == RUN_IGNORE) return false;
    if (a->handler != RUN_DEFAULT) return true;
    return run_kills_by_default(signo) && run_here.pid != 1;
}

void run_signal_default(int signo)
{
    run_action by_default = {0};
    sys_call4(SYS_rt_sigaction, signo, (long)&by_default, 0, sizeof by_default.mask);
}

void run_signal_self(int signo) { sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo); }

/* Tells the kernel what the program's action comes down to. */
static void install(int signo, const run_action *a)
{
    run_action k = *a;
    if (run_here.engine->install) {
        run_here.engine->install(signo, a);
        return;
    }
    if (RUN_BIT(signo) & RUN_FAULTS || run_signal_matters(signo, a)) {
        k.handler = (uint64_t)(uintptr_t)run_signal_entry;
        k.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER |
                  (a->flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT | SA_EXPOSE_TAGBITS));
        if (!run_signal_matters(signo, a)) k.flags |= SA_RESTART;
        k.restorer = (uint64_t)(uintptr_t)run_signal_restorer;
        k.mask = ~RUN_FAULTS;
    }
    sys_call4(SYS_rt_sigaction, signo, (long)&k, 0, sizeof k.mask);
}

/* The kernel's action is this already. To set it once more would discard what is pending, if it ignores the signal. */
static bool is_set(int signo, const run_action *a)
{
    run_action now = {0};
    sys_call4(SYS_rt_sigaction, signo, 0, (long)&now, sizeof now.mask);
    return now.handler == a->handler && now.flags == a->flags && now.mask == a->mask && now.restorer == a->restorer;
}

static bool can_be_set(int signo) { return signo >= 1 && signo <= SIGNALS && signo != SIGKILL && signo != SIGSTOP; }

void run_signals_adopt_kernel(run_signals *s)
{
    for (int signo = 1; signo <= SIGNALS; signo++) {
        run_action *a = &s->action[signo];
        memset(a, 0, sizeof *a);
        sys_call4(SYS_rt_sigaction, signo, 0, (long)a, sizeof a->mask);
        if (a->handler != RUN_IGNORE && !run_here.start.ran_before) memset(a, 0, sizeof *a);
    }
}

void run_signals_give_back(const run_signals *s)
{
    for (int signo = 1; signo <= SIGNALS; signo++) {
        const run_action *a = &s->action[signo];
        if (can_be_set(signo) && !is_set(signo, a)) sys_call4(SYS_rt_sigaction, signo, (long)a, 0, sizeof a->mask);
    }
}

/* Of the faults that the program ignores the kernel has a handler, and would give the next program the default. */
void run_signals_for_exec(run_signals *s, bool has_failed)
{
    static const run_action ignored = {.handler = RUN_IGNORE};
    inl_lock_take(&s->lock);
    for (int signo = 1; signo <= SIGNALS; signo++) {
        const run_action *a = &s->action[signo];
        if (!(RUN_BIT(signo) & RUN_FAULTS) || a->handler != RUN_IGNORE) continue;
        if (has_failed) install(signo, a);
        else sys_call4(SYS_rt_sigaction, signo, (long)&ignored, 0, sizeof ignored.mask);
    }
    inl_lock_release(&s->lock);
}

void run_signals_init(void)
{
    run_signals *s = run_signals_clone(NULL);
    if (!s) return;
    run_kernel_mask_all(); /* until the first thread has its block */
    run_here.pid = (int)sys_call0(SYS_getpid);
    run_signals_adopt_kernel(s);
    run_here.signals = s;
    run_sigframe_init();
    run_syscalls_init();
    for (int signo = 1; signo <= SIGNALS; signo++) {
        const run_action *a = &s->action[signo];
        bool stays = !(RUN_BIT(signo) & RUN_FAULTS) && !run_signal_matters(signo, a) && is_set(signo, a);
        if (can_be_set(signo) && !stays) install(signo, a);
    }
}

run_signals *run_signals_clone(run_signals *from)
{
    long p = sys_call(SYS_mmap, (long)inl_region_take(sizeof(run_signals)), sizeof(run_signals), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(p)) return NULL;
    run_signals *s = (run_signals *)p;
    s->users = 1;
    run_own((uint64_t)p, sizeof *s, true);
    if (from) {
        inl_lock_take(&from->lock);
        memcpy(s->action, from->action, sizeof s->action);
        inl_lock_release(&from->lock);
    }
    return s;
}

void run_signals_clear(run_signals *s)
{
    inl_lock_take(&s->lock);
    for (int signo = 1; signo <= SIGNALS; signo++) {
        run_action *a = &s->action[signo];
        if (!can_be_set(signo) || a->handler == RUN_IGNORE) continue;
        memset(a, 0, sizeof *a);
        install(signo, a);
    }
    inl_lock_release(&s->lock);
}

void run_signals_release(run_signals *s)
{
    if (!s || __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) || s == run_here.signals) return;
    run_own((uint64_t)(uintptr_t)s, sizeof *s, false);
    sys_call2(SYS_munmap, (long)s, sizeof *s);
}

/* In the thread itself, before any signal is unblocked. */
void run_signals_init_thread(run_thread *t)
{
    t->tid = (int)sys_call0(SYS_gettid);
    stack_t ss = run_altstack_own(t), before = {.ss_flags = SS_DISABLE};
    sys_call2(SYS_sigaltstack, (long)&ss, (long)&before);
    if (t->signals) return;
    t->altstack.ss_flags |= before.ss_flags & (int)SS_AUTODISARM; /* of who has executed this program */
    t->signals = run_here.signals;                                /* the first thread */
    t->sigmask = run_here.start.sigmask & ~RUN_UNBLOCKABLE;
    run_mask_apply(t);
}

long run_sys_sigaction(run_thread *t, int signo, uint64_t act, uint64_t old, uint64_t size)
{
    if (size != sizeof(uint64_t)) return -EINVAL;
    run_action a;
    if (act && !run_read(&a, act, sizeof a)) return -EFAULT;
    if (signo < 1 || signo > SIGNALS || (act && !can_be_set(signo))) return -EINVAL;
    run_signals *s = t->signals;
    inl_lock_take(&s->lock);
    run_action before = s->action[signo];
    if (act) {
        a.flags &= KNOWN_FLAGS;
        a.mask &= ~RUN_UNBLOCKABLE;
        s->action[signo] = a;
        install(signo, &a);
    }
    inl_lock_release(&s->lock);
    bool handles = act && a.handler != RUN_DEFAULT && a.handler != RUN_IGNORE && RUN_BIT(signo) & RUN_FAULTS;
    if (handles && run_here.engine->watch) run_here.engine->watch->handles_fault();
    if (act) inl_log(INL_LOG_SIGNAL, "action of %d: handler %#lx flags %#lx", signo, (long)a.handler, (long)a.flags);
    if (old && !run_write(old, &before, sizeof before)) return -EFAULT;
    return 0;
}

long run_sys_sigaltstack(run_thread *t, uint64_t ss, uint64_t old)
{
    stack_t wanted, before = t->altstack;
    bool active = run_altstack_active(t, run_sp(&t->ctx));
    int keep = before.ss_flags & (int)SS_AUTODISARM;
    before.ss_flags = keep | (!before.ss_size ? SS_DISABLE : active ? SS_ONSTACK : 0);
    if (ss) {
        if (!run_read(&wanted, ss, sizeof wanted)) return -EFAULT;
        if (active) return -EPERM;
        int mode = wanted.ss_flags & ~(int)SS_AUTODISARM;
        if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0) return -EINVAL;
        if (mode == SS_DISABLE) {
            wanted.ss_sp = NULL;
            wanted.ss_size = 0;
        } else if (wanted.ss_size < RUN_LEAST_ALTSTACK) {
            return -ENOMEM;
        }
        t->altstack = (stack_t){.ss_sp = wanted.ss_sp, .ss_flags = wanted.ss_flags, .ss_size = wanted.ss_size};
    }
    if (old && !run_write(old, &before, sizeof before)) return -EFAULT;
    return 0;
}

/* --- delivery --- */

static run_action action_of(run_thread *t, int signo)
{
    run_signals *s = t->signals;
    inl_lock_take(&s->lock);
    run_action a = s->action[signo];
    inl_lock_release(&s->lock);
    return a;
}

static run_action take_action(run_thread *t, int signo)
{
    run_signals *s = t->signals;
    inl_lock_take(&s->lock);
    run_action a = s->action[signo];
    if (a.flags & SA_RESETHAND && a.handler != RUN_IGNORE && a.handler != RUN_DEFAULT) {
        s->action[signo].handler = RUN_DEFAULT;
        install(signo, &s->action[signo]);
    }
    inl_lock_release(&s->lock);
    return a;
}

static bool tell_client(run_thread *t, const siginfo_t *info)
{
    const run_client *c = &run_here.client;
    return !c->signal || c->signal(c->arg, t, info->si_signo, info, &t->ctx);
}

/* The program has no handler, or may not run it: what the kernel would do. */
static void act_by_default(run_thread *t, const siginfo_t *info, bool fault)
{
    int signo = info->si_signo;
    if (fault || (run_kills_by_default(signo) && run_here.pid != 1)) {
        if (!tell_client(t, info)) return;
        run_process_die_of(t, info);
    }
    /* The disposition changed while the signal waited: the kernel now has the default too. */
    if (STOPS_BY_DEFAULT & RUN_BIT(signo)) run_signal_send_back(info);
}

static void deliver_now(run_thread *t, const siginfo_t *info, uint64_t base, bool fault)
{
    int signo = info->si_signo;
    run_action a = action_of(t, signo);
    if (fault && (t->sigmask & RUN_BIT(signo) || a.handler == RUN_IGNORE)) a.handler = RUN_DEFAULT;
    if (a.handler == RUN_IGNORE) return;
    if (a.handler == RUN_DEFAULT) {
        act_by_default(t, info, fault);
        return;
    }
    if (run_here.engine->watch) run_here.engine->watch->interrupted(t);
    if (!tell_client(t, info)) return;
    a = take_action(t, signo);
    if (a.handler == RUN_IGNORE || a.handler == RUN_DEFAULT) { /* another thread has changed it, or was quicker */
        if (a.handler == RUN_DEFAULT || fault) act_by_default(t, info, fault);
        return;
    }
    inl_log(INL_LOG_SIGNAL, "signal %d code %d at %#lx goes to %#lx", signo, info->si_code, (long)t->ctx.pc,
            (long)a.handler);
    if (!run_sigframe_push(t, signo, info, &a, t->sigmask)) {
        if (signo == SIGSEGV) run_process_die(t, SIGSEGV);
        run_signal_raise(t, SIGSEGV, SI_KERNEL, 0);
        return;
    }
    t->sigmask = (base | a.mask | (a.flags & SA_NODEFER ? 0 : RUN_BIT(signo))) & ~RUN_UNBLOCKABLE;
    if (t->altstack.ss_flags & (int)SS_AUTODISARM) t->altstack = (stack_t){.ss_flags = SS_DISABLE};
}

/* `base` is the mask on top of which the handler runs. */
static void deliver(run_thread *t, const siginfo_t *info, uint64_t base, bool fault)
{
    siginfo_t seen = *info;
    if (run_here.engine->delivers && !run_here.engine->delivers(t, &seen)) return;
    deliver_now(t, &seen, base, fault && seen.si_signo == info->si_signo);
}

static int held_index(int signo) { return __builtin_popcountll(RUN_FAULTS & (RUN_BIT(signo) - 1)); }

/* A signal of the fault kind that was sent while the program blocks it. */
static void hold(run_thread *t, const siginfo_t *info)
{
    if (t->held_set & RUN_BIT(info->si_signo)) return;
    t->held[held_index(info->si_signo)] = *info;
    __atomic_fetch_or(&t->held_set, RUN_BIT(info->si_signo), __ATOMIC_SEQ_CST);
}

/* Takes the first of `which` out of those that are held. */
static siginfo_t take_held(run_thread *t, uint64_t which)
{
    int signo = __builtin_ctzll(which) + 1;
    siginfo_t info = t->held[held_index(signo)];
    __atomic_fetch_and(&t->held_set, ~RUN_BIT(signo), __ATOMIC_SEQ_CST);
    return info;
}

static void deliver_one(run_thread *t, const run_pending *p)
{
    int signo = p->info.si_signo;
    uint64_t base = p->temporary ? p->mask : t->sigmask;
    if (run_signal_is_nudge(&p->info)) return;
    if (!(base & RUN_BIT(signo))) {
        deliver(t, &p->info, base, false);
    } else if (RUN_BIT(signo) & RUN_FAULTS) {
        hold(t, &p->info);
    } else {
        run_signal_send_back(&p->info);
    }
}

bool run_signal_deliver_pending(run_thread *t)
{
    bool changed = false;
    run_hung_end(t);
    if (t->fault.present) {
        siginfo_t info = t->fault.info;
        t->fault.present = false;
        if (info.si_signo == SIGSYS) info.si_call_addr = (void *)(uintptr_t)t->ctx.pc; /* not where it was made */
        deliver(t, &info, t->sigmask, true);
        if (!t->pending.present) run_mask_apply(t);
        changed = true;
    }
    while (t->pending.present) {
        run_pending p = t->pending;
        t->pending.present = false;
        deliver_one(t, &p);
        run_mask_apply(t); /* the next one may arrive right here */
        changed = true;
    }
    while (t->held_set & ~t->sigmask) {
        siginfo_t info = take_held(t, t->held_set & ~t->sigmask);
        deliver(t, &info, t->sigmask, false);
        if (!t->pending.present) run_mask_apply(t);
        changed = true;
    }
    return changed;
}

void run_signal_raise(run_thread *t, int signo, int code, uint64_t addr)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signo;
    info.si_code = code;
    info.si_addr = code == SI_KERNEL ? NULL : (void *)addr;
    run_trap_set(t, signo, code, addr);
    run_signal_force(t, &info);
}

void run_signal_force(run_thread *t, const siginfo_t *info)
{
    deliver(t, info, t->sigmask, true);
    if (!t->pending.present) run_mask_apply(t);
}

void run_signal_give(run_thread *t, int signo)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signo;
    info.si_code = SI_USER;
    info.si_pid = run_here.pid;
    deliver_now(t, &info, t->sigmask, false);
    if (!t->pending.present) run_mask_apply(t);
}

void run_sys_sigreturn(run_thread *t)
{
    uint64_t mask = t->sigmask;
    bool good = run_sigframe_pop(t, &mask);
    t->sigmask = mask & ~RUN_UNBLOCKABLE;
    if (!good) {
        run_signal_raise(t, SIGSEGV, SI_KERNEL, 0);
        return;
    }
    run_segments_look(t);
    if (!t->pending.present) run_mask_apply(t);
}

/* The child of a fork has one thread, no pending signals, and its own copy of the dispositions. */
void run_signals_fork_child(run_thread *t)
{
    t->pending.present = false;
    t->hung.watched = false; /* timers stay with the parent */
    t->held_set = 0;
    t->fault.present = false;
    t->temp_active = false;
    run_here.signals = t->signals;
    inl_lock_reset(&t->signals->lock);
    t->signals->users = 1;
    for (int signo = 1; run_here.pid == 1 && signo <= SIGNALS; signo++)
        if (can_be_set(signo)) install(signo, &t->signals->action[signo]); /* the first of a namespace */
}

/* --- the system calls --- */

static long do_sigaction(run_thread *t, weave_context *c)
{
    return run_sys_sigaction(t, (int)run_arg(c, 0), run_arg(c, 1), run_arg(c, 2), run_arg(c, 3));
}

/* A signal that came before this call has blocked it is delivered first: sent back, it would be for this thread alone,
 * and the program may leave it to another one. */
static bool came_before(const run_thread *t)
{
    return t->pending.present && !t->pending.temporary && t->sigmask & ~RUN_FAULTS & RUN_BIT(t->pending.info.si_signo);
}

static long do_sigprocmask(run_thread *t, weave_context *c)
{
    uint64_t set, before = t->sigmask;
    if (run_arg(c, 3) != sizeof set) return -EINVAL;
    if (run_arg(c, 1)) {
        if (!run_read(&set, run_arg(c, 1), sizeof set)) return -EFAULT;
        set &= ~RUN_UNBLOCKABLE;
        switch ((int)run_arg(c, 0)) {
        case SIG_BLOCK: t->sigmask |= set; break;
        case SIG_UNBLOCK: t->sigmask &= ~set; break;
        case SIG_SETMASK: t->sigmask = set; break;
        default: return -EINVAL;
        }
        if (t->sigmask != before && !t->pending.present) run_mask_apply(t);
        if (came_before(t)) {
            t->sigmask = before;
            return RUN_RESTART;
        }
    }
    if (run_arg(c, 2) && !run_write(run_arg(c, 2), &before, sizeof before)) return -EFAULT;
    return 0;
}

static long do_sigpending(run_thread *t, weave_context *c)
{
    uint64_t set = 0, size = run_arg(c, 1);
    if (size > sizeof set) return -EINVAL;
    sys_call2(SYS_rt_sigpending, (long)&set, sizeof set);
    set |= t->held_set;
    return run_write(run_arg(c, 0), &set, size) ? 0 : -EFAULT;
}

static long do_sigreturn(run_thread *t, weave_context *c)
{
    (void)c;
    run_sys_sigreturn(t);
    return RUN_NO_ANSWER;
}

static long do_sigaltstack(run_thread *t, weave_context *c)
{
    return run_sys_sigaltstack(t, run_arg(c, 0), run_arg(c, 1));
}

/* The temporary mask lets in what is held: as if the kernel had it, the call ends before it sleeps. */
static long interrupt_by_held(run_thread *t)
{
    if (!run_quiet_begin(t)) return RUN_RESTART;
    t->mask_is_ours = true;
    t->pending.info = take_held(t, t->held_set & ~t->temp_mask);
    t->pending.temporary = true;
    t->pending.mask = t->temp_mask;
    t->pending.present = true;
    run_kernel_mask_set(~RUN_FAULTS);
    return -EINTR;
}

static long do_sigtimedwait(run_thread *t, weave_context *c)
{
    uint64_t set, to = run_arg(c, 1);
    if (run_arg(c, 3) != sizeof set || !run_read(&set, run_arg(c, 0), sizeof set)) return run_pass(t, c);
    if (!(t->held_set & set)) return run_pass(t, c);
    siginfo_t info = take_held(t, t->held_set & set);
    return to && !run_write(to, &info, sizeof info) ? -EFAULT : info.si_signo;
}

/* Calls that put in another mask while they sleep. A handler that ends the sleep runs on top of that
 * mask, and returns to the lasting one. The kernel is given a copy that lets nudges through: argument `at`
 * leads to the mask or, of pselect, to its address and size. */
static long with_mask(run_thread *t, weave_context *c, unsigned at, const uint64_t *pselect)
{
    uint64_t set = pselect ? pselect[0] : run_arg(c, at);
    if (!set || !run_read(&t->temp_mask, set, sizeof t->temp_mask)) return run_pass(t, c);
    t->temp_mask &= ~RUN_UNBLOCKABLE;
    if (t->held_set & ~t->temp_mask) return interrupt_by_held(t);
    uint64_t mask = t->temp_mask & ~RUN_BIT(SIGSYS), pair[2] = {(uint64_t)(uintptr_t)&mask, pselect ? pselect[1] : 0};
    long args[6];
    for (unsigned i = 0; i < 6; i++) args[i] = (long)run_arg(c, i);
    args[at] = pselect ? (long)pair : (long)&mask;
    t->temp_active = true;
    long answer = run_pass_args(t, run_number(c), args);
    t->temp_active = false;
    return answer;
}

static long do_sigsuspend(run_thread *t, weave_context *c) { return with_mask(t, c, 0, NULL); }

static long do_ppoll(run_thread *t, weave_context *c) { return with_mask(t, c, 3, NULL); }

static long do_epoll_pwait(run_thread *t, weave_context *c) { return with_mask(t, c, 4, NULL); }

static long do_pselect(run_thread *t, weave_context *c)
{
    uint64_t pair[2] = {0, 0}; /* pointer to the mask, its size */
    if (run_arg(c, 5)) run_read(pair, run_arg(c, 5), sizeof pair);
    return with_mask(t, c, 5, pair);
}

const run_syscall_row run_signal_syscalls[] = {
    {SYS_rt_sigaction, "rt_sigaction", do_sigaction},
    {SYS_rt_sigprocmask, "rt_sigprocmask", do_sigprocmask},
    {SYS_rt_sigpending, "rt_sigpending", do_sigpending},
    {SYS_rt_sigreturn, "rt_sigreturn", do_sigreturn},
    {SYS_sigaltstack, "sigaltstack", do_sigaltstack},
    {SYS_rt_sigsuspend, "rt_sigsuspend", do_sigsuspend},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", do_sigtimedwait},
    {SYS_ppoll, "ppoll", do_ppoll},
    {SYS_pselect6, "pselect6", do_pselect},
    {SYS_epoll_pwait, "epoll_pwait", do_epoll_pwait},
    {SYS_epoll_pwait2, "epoll_pwait2", do_epoll_pwait},
    {0, NULL, NULL},
};

/* --- what arrives --- */

void run_signal_tell_crash(run_thread *t, const run_crash *c)
{
    if (run_here.client.crashed) run_here.client.crashed(run_here.client.arg, t, c);
}

void run_signal_die_of_bug(run_thread *t, const run_crash *c)
{
    uint64_t pc = run_uc_pc(c->uc);
    inl_log(INL_LOG_SIGNAL, "fault of Inlay or the tool: signal %d at %#lx, address %#lx", c->signo, (long)pc,
            (long)c->addr);
    run_signal_tell_crash(t, c);
    run_signal_default(c->signo);
    /* The instruction is run again and faults again, now with the kernel's action. */
}

/* The kernel raised it for the instruction at which the thread stands; nobody sent it. */
bool run_signal_is_fault(int signo, const siginfo_t *info)
{
    if (!(RUN_BIT(signo) & RUN_FAULTS) || info->si_code <= 0) return false;
    enum { EVENT = 6 /* TRAP_PERF: of the kernel's counters, noticed somewhere behind what made it */ };
    if (signo == SIGTRAP && info->si_code == EVENT) return false;
    return !(signo == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

void run_signal(int signo, siginfo_t *info, void *uc, uint64_t tls_base)
{
    run_thread *t = run_self();
    run_vectors_note(t, uc);
    run_rights_open(); /* the return from here puts them back */
    if (run_hung_is_timer(info) && !t->pending.present) return;
    run_here.engine->signal(t, signo, info, uc, tls_base);
}
