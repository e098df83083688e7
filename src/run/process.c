/* Processes: fork, the end, and the rows of the system calls that start or end something. */
#include <errno.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "base/sys.h"
#include "run/confine.h"
#include "run/kernel.h"
#include "run/worker.h"
#include INL_ARCH_HEADER(run, abi)

/* --- fork --- */

static long raw_fork(const run_clone_args *a, size_t size)
{
    run_clone_args mine = *a;
    mine.flags &= ~(uint64_t)RUN_CLONE_OURS;
    mine.tls = mine.stack = mine.stack_size = 0;
    if (size) return sys_call2(SYS_clone3, (long)&mine, (long)size);
    long args[5] = {(long)(mine.flags | mine.exit_signal), 0, (long)mine.parent_tid};
    args[RUN_CLONE_CHILD_TID] = (long)mine.child_tid;
    return sys_call(SYS_clone, args[0], args[1], args[2], args[3], args[4], 0);
}

/* In the child, lock held since before the fork: one thread, its own cache, nothing pending. */
void run_fork_child(run_thread *t)
{
    run_here.pid = (int)sys_call0(SYS_getpid);
    t->tid = (int)sys_call0(SYS_gettid);
    run_here.exiting = false;
    if (run_here.engine->watch) {
        run_here.engine->watch->fork_child();
        run_memory_fork_child();
    }
    run_threads_after_fork(t);
    run_signals_fork_child(t);
}

static void become_child(run_thread *t, const run_clone_args *a)
{
    run_fork_child(t);
    if (run_here.client.fork_lock) run_here.client.fork_lock(run_here.client.arg, 2);
    inl_lock_reset(&run_here.lock);
    t->divert.on = false;
    run_proc_forget_all();
    run_here.shares_files = a->flags & CLONE_FILES;
    if (a->stack) run_set_sp(&t->ctx, a->stack + a->stack_size);
    if (a->flags & CLONE_SETTLS) t->ctx.tls_base = a->tls;
    if (a->flags & CLONE_CLEAR_SIGHAND) run_signals_clear(t->signals);
    if (run_here.client.fork_child) run_here.client.fork_child(run_here.client.arg, t);
}

long run_fork(run_thread *t, const run_clone_args *a, size_t size)
{
    if (!run_quiet_begin(t)) return RUN_RESTART;
    run_fd_take_over(t);
    if (run_here.client.fork_before) run_here.client.fork_before(run_here.client.arg, t);
    inl_lock_take(&run_here.lock);
    if (run_here.client.fork_lock) run_here.client.fork_lock(run_here.client.arg, 0);
    if (run_here.engine->watch) run_here.engine->watch->fork_prepare();
    long answer = raw_fork(a, size);
    if (answer == 0) {
        become_child(t, a);
    } else {
        if (run_here.engine->watch) run_here.engine->watch->fork_parent();
        if (run_here.client.fork_lock) run_here.client.fork_lock(run_here.client.arg, 1);
        inl_lock_release(&run_here.lock);
        if (run_here.client.fork_parent) run_here.client.fork_parent(run_here.client.arg, t, (int)answer);
        inl_log(INL_LOG_THREAD, "fork flags %#lx -> %ld", (long)a->flags, answer);
    }
    run_quiet_end(t);
    return answer;
}

/* --- the end --- */

static void wait_for_the_end(void)
{
    for (;;) sys_wait();
}

void run_process_end(run_thread *t, int status, int signo)
{
    if (__atomic_exchange_n(&run_here.exiting, true, __ATOMIC_ACQ_REL)) wait_for_the_end();
    run_hung_let_in(0); /* faults are told, and who does not come back can be ended */
    run_fd_take_over(t);
    if (!run_workers_end()) run_say("a thread of the tool's own does not end: the process ends without waiting for it");
    if (run_here.client.thread_end) run_here.client.thread_end(run_here.client.arg, t);
    if (run_here.client.exit) run_here.client.exit(run_here.client.arg, t, status, signo);
    run_kernel_mask_all();
}

void run_process_exit(run_thread *t, int status)
{
    run_kernel_mask_all();
    inl_log(INL_LOG_THREAD, "process ends with status %d", status & 0xff);
    if (!t->is_vfork_child) run_process_end(t, status, 0);
    run_exit_raw(&t->busy, SYS_exit_group, status);
}

/* The signal waits; the kernel takes it on the way back to the program, with the program's registers at its own
 * instruction, so that a core shows those. The frame is on Inlay's stack of signals, where no handler runs any more:
 * the program's stack may have no room. Comes back where that cannot be done. */
static void die_in_program(run_thread *t, const siginfo_t *info)
{
    run_action frame = {.flags = SA_RESTORER | SA_ONSTACK};
    weave_context before = t->ctx;
    t->altstack = (stack_t){.ss_sp = t->signal_stack, .ss_size = t->signal_stack_size};
    if (!run_sigframe_push(t, info->si_signo, info, &frame, ~RUN_BIT(info->si_signo))) return;
    if (run_signal_send_last(t, info)) run_sigreturn_for_good(run_sp(&t->ctx) + RUN_HANDLER_POPS, &before);
}

/* No signal that is sent ends the first process of a namespace. A return without a frame is a fault, which does. */
static void die_first(const run_thread *t, int signo)
{
    if (run_here.pid == 1 && signo == SIGSEGV) run_sigreturn_for_good(0, &t->ctx);
}

/* By the signal itself, so that the parent sees it and a core is written where one would be. */
void run_process_die_of(run_thread *t, const siginfo_t *info)
{
    int signo = info->si_signo;
    run_kernel_mask_all();
    inl_log(INL_LOG_SIGNAL, "dies by signal %d at %#lx", signo, (long)t->ctx.pc);
    if (!t->is_vfork_child) run_process_end(t, 0, signo);
    run_signal_default(signo);
    die_in_program(t, info);
    die_first(t, signo);
    run_kernel_mask_set(~RUN_BIT(signo));
    run_signal_self(signo);
    run_exit_raw(&t->busy, SYS_exit_group, 128 + signo);
}

void run_process_die(run_thread *t, int signo)
{
    run_process_die_of(t, &(siginfo_t){.si_signo = signo, .si_code = SI_KERNEL});
}

/* --- rows --- */

static long do_clone(run_thread *t, weave_context *c) { return run_sys_clone(t, run_number(c) == SYS_clone3); }

static long do_exit(run_thread *t, weave_context *c) { run_thread_exit(t, (int)run_arg(c, 0)); }

static long do_exit_group(run_thread *t, weave_context *c) { run_process_exit(t, (int)run_arg(c, 0)); }

static long do_execve(run_thread *t, weave_context *c)
{
    return run_sys_execve(t, -100 /* AT_FDCWD */, run_arg(c, 0), run_arg(c, 1), run_arg(c, 2), 0);
}

static long do_execveat(run_thread *t, weave_context *c)
{
    return run_sys_execve(t, (int)run_arg(c, 0), run_arg(c, 1), run_arg(c, 2), run_arg(c, 3), (int)run_arg(c, 4));
}

/* What the kernel is to do when the thread has ended. */
static long do_set_tid_address(run_thread *t, weave_context *c)
{
    t->clear_tid = run_arg(c, 0);
    return run_pass(t, c);
}

static long do_set_robust_list(run_thread *t, weave_context *c)
{
    long answer = run_pass(t, c);
    if (!answer) t->robust = run_arg(c, 0);
    return answer;
}

/* The kernel knows critical sections by the program's addresses, and compares them with where the thread stands: an
 * engine with copies of the program's code must see to them. */
static long do_rseq(run_thread *t, weave_context *c)
{
    const run_watch *watch = run_here.engine->watch;
    return watch ? watch->sequences(t, c) : run_pass(t, c);
}

static long do_prctl(run_thread *t, weave_context *c)
{
    enum { SET_SECCOMP = 22, SET_TSC = 26, SET_SYSCALL_USER_DISPATCH = 59 };
    int option = (int)run_arg(c, 0);
    if (option == SET_TSC) t->no_cycles = false; /* the first fault tells */
    if (option == SET_SYSCALL_USER_DISPATCH) return run_divert_set(t, c);
    return option == SET_SECCOMP ? run_confine_prctl(t, c) : run_pass(t, c);
}

/* (L) */
static bool is_ours(int tid)
{
    for (const run_thread *o = run_here.threads; o; o = o->next)
        if (o->tid == tid) return true;
    return false;
}

/* What shares memory with the thread, but is another process (LeakSanitizer's task), has it stop, wherever it is. It
 * may stand for long, and the others must not need what it holds; so it gets the news while it holds nothing. From then
 * on it executes nothing but what its processor has begun: should it not stand soon, as a parent that waits for its
 * vfork, it does so before it takes a lock. */
static long stop_other(run_thread *t, const weave_context *c)
{
    enum { TURNS = 100, NAP = 500000 }; /* nanoseconds */
    int tid = (int)run_arg(c, 1);
    inl_lock_take(&run_here.lock);
    if (run_here.client.fork_lock) run_here.client.fork_lock(run_here.client.arg, 0);
    long answer = run_pass(t, c);
    bool waits = answer == 0 && is_ours(tid) && run_confine_lets(t, SYS_waitid) && run_confine_lets(t, SYS_nanosleep);
    for (int i = 0; waits && i < TURNS; i++) {
        siginfo_t said = {0};
        long failed = sys_call(SYS_waitid, P_PID, tid, (long)&said, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL, 0,
                               0);
        if (failed || said.si_signo) break;
        sys_call2(SYS_nanosleep, (long)&(struct timespec){.tv_nsec = NAP}, 0);
    }
    if (run_here.client.fork_lock) run_here.client.fork_lock(run_here.client.arg, 1);
    inl_lock_release(&run_here.lock);
    return answer;
}

/* What its tracer will look at must be the program itself. */
static long do_ptrace(run_thread *t, weave_context *c)
{
    int request = (int)run_arg(c, 0);
    bool stops = request == PTRACE_ATTACH || request == PTRACE_INTERRUPT;
    long answer = stops ? stop_other(t, c) : run_pass(t, c);
    if (answer != 0 || request != PTRACE_TRACEME) return answer;
    weave_context before = *c;
    run_set_answer(c, 0);
    run_set_clobbers(c);
    run_let_go(t);
    *c = before;
    return 0;
}

const run_syscall_row run_process_syscalls[] = {
    {SYS_clone, "clone", do_clone},
    {SYS_clone3, "clone3", do_clone},
    {SYS_fork, "fork", do_clone},
    {SYS_vfork, "vfork", do_clone},
    {SYS_exit, "exit", do_exit},
    {SYS_exit_group, "exit_group", do_exit_group},
    {SYS_execve, "execve", do_execve},
    {SYS_execveat, "execveat", do_execveat},
    {SYS_set_tid_address, "set_tid_address", do_set_tid_address},
    {SYS_set_robust_list, "set_robust_list", do_set_robust_list},
    {SYS_rseq, "rseq", do_rseq},
    {SYS_prctl, "prctl", do_prctl},
    {SYS_ptrace, "ptrace", do_ptrace},
    {SYS_seccomp, "seccomp", run_confine_seccomp},
    {SYS_unshare, "unshare", run_sys_alone},
    {SYS_setns, "setns", run_sys_alone},
    {0, NULL, NULL},
};
