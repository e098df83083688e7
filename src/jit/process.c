/* Processes: fork, the end, and the rows of the system calls that start or end something. */
#include <errno.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/sys.h"
#include "jit/confine.h"
#include "jit/kernel.h"
#include "jit/x86_64/abi.h"

/* --- fork --- */

static long raw_fork(const jit_clone_args *a, size_t size)
{
    jit_clone_args mine = *a;
    mine.flags &= ~(uint64_t)JIT_CLONE_OURS;
    mine.tls = mine.stack = mine.stack_size = 0;
    if (size) return sys_call2(SYS_clone3, (long)&mine, (long)size);
    return sys_call(SYS_clone, (long)(mine.flags | mine.exit_signal), 0, (long)mine.parent_tid, (long)mine.child_tid, 0,
                    0);
}

/* In the child, lock held since before the fork: one thread, its own cache, nothing pending. */
void jit_fork_child(jit_thread *t)
{
    jit.pid = (int)sys_call0(SYS_getpid);
    t->tid = (int)sys_call0(SYS_gettid);
    jit.exiting = false;
    jit_cache_fork_child();
    jit_threads_after_fork(t);
    jit_signals_fork_child(t);
}

static void become_child(jit_thread *t, const jit_clone_args *a)
{
    jit_fork_child(t);
    if (jit.client.fork_lock) jit.client.fork_lock(jit.client.arg, 2);
    inl_lock_reset(&jit.lock);
    if (a->stack) jit_set_sp(&t->ctx, a->stack + a->stack_size);
    if (a->flags & CLONE_SETTLS) t->ctx.fs_base = a->tls;
    if (a->flags & CLONE_CLEAR_SIGHAND) jit_signals_clear(t->signals);
    if (jit.client.fork_child) jit.client.fork_child(jit.client.arg, t);
}

long jit_fork(jit_thread *t, const jit_clone_args *a, size_t size)
{
    if (!jit_quiet_begin(t)) return JIT_RESTART;
    if (jit.client.fork_before) jit.client.fork_before(jit.client.arg, t);
    inl_lock_take(&jit.lock);
    if (jit.client.fork_lock) jit.client.fork_lock(jit.client.arg, 0);
    jit_cache_fork_prepare();
    long answer = raw_fork(a, size);
    if (answer == 0) {
        become_child(t, a);
    } else {
        jit_cache_fork_parent();
        if (jit.client.fork_lock) jit.client.fork_lock(jit.client.arg, 1);
        inl_lock_release(&jit.lock);
        if (jit.client.fork_parent) jit.client.fork_parent(jit.client.arg, t, (int)answer);
        inl_log(INL_LOG_THREAD, "fork flags %#lx -> %ld", (long)a->flags, answer);
    }
    jit_quiet_end(t);
    return answer;
}

/* --- the end --- */

static void wait_for_the_end(void)
{
    for (;;) sys_call0(SYS_pause);
}

void jit_process_end(jit_thread *t, int status, int signo)
{
    if (__atomic_exchange_n(&jit.exiting, true, __ATOMIC_ACQ_REL)) wait_for_the_end();
    if (jit.client.thread_end) jit.client.thread_end(jit.client.arg, t);
    if (jit.client.exit) jit.client.exit(jit.client.arg, t, status, signo);
}

void jit_process_exit(jit_thread *t, int status)
{
    jit_kernel_mask_all();
    inl_log(INL_LOG_THREAD, "process ends with status %d", status & 0xff);
    if (!t->is_vfork_child) jit_process_end(t, status, 0);
    jit_exit_raw(&t->busy, SYS_exit_group, status);
}

/* By the signal itself, so that the parent sees it and a core is written where one would be. */
void jit_process_die(jit_thread *t, int signo)
{
    jit_kernel_mask_all();
    inl_log(INL_LOG_SIGNAL, "dies by signal %d at %#lx", signo, (long)t->ctx.pc);
    if (!t->is_vfork_child) jit_process_end(t, 0, signo);
    jit_action by_default = {0};
    sys_call4(SYS_rt_sigaction, signo, (long)&by_default, 0, sizeof by_default.mask);
    jit_kernel_mask_set(~JIT_BIT(signo));
    sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo);
    jit_exit_raw(&t->busy, SYS_exit_group, 128 + signo);
}

/* --- rows --- */

static long run_clone(jit_thread *t, weave_context *c) { return jit_sys_clone(t, jit_number(c) == SYS_clone3); }

static long run_exit(jit_thread *t, weave_context *c) { jit_thread_exit(t, (int)jit_arg(c, 0)); }

static long run_exit_group(jit_thread *t, weave_context *c) { jit_process_exit(t, (int)jit_arg(c, 0)); }

static long run_execve(jit_thread *t, weave_context *c)
{
    return jit_sys_execve(t, -100 /* AT_FDCWD */, jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2), 0);
}

static long run_execveat(jit_thread *t, weave_context *c)
{
    return jit_sys_execve(t, (int)jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2), jit_arg(c, 3), (int)jit_arg(c, 4));
}

/* What the kernel is to do when the thread has ended. */
static long run_set_tid_address(jit_thread *t, weave_context *c)
{
    t->clear_tid = jit_arg(c, 0);
    return jit_pass(t, c);
}

static long run_set_robust_list(jit_thread *t, weave_context *c)
{
    long answer = jit_pass(t, c);
    if (!answer) t->robust = jit_arg(c, 0);
    return answer;
}

/* A critical section of rseq is known by its code addresses, and the kernel compares them with where
 * the thread really stands: in the cache. It would never be restarted, so there must be none. */
static long run_rseq(jit_thread *t, weave_context *c)
{
    (void)t;
    (void)c;
    return -ENOSYS;
}

static long run_prctl(jit_thread *t, weave_context *c)
{
    enum { SET_SECCOMP = 22, SET_TSC = 26, SET_SYSCALL_USER_DISPATCH = 59 };
    int option = (int)jit_arg(c, 0);
    if (option == SET_TSC) t->no_cycles = false; /* the first fault tells */
    /* It lets calls through by where they are made from, and ours are made elsewhere. */
    if (option == SET_SYSCALL_USER_DISPATCH) return -EINVAL;
    return option == SET_SECCOMP ? jit_confine_prctl(t, c) : jit_pass(t, c);
}

/* What its tracer will look at must be the program itself. */
static long run_ptrace(jit_thread *t, weave_context *c)
{
    long answer = jit_pass(t, c);
    if (answer != 0 || (int)jit_arg(c, 0) != PTRACE_TRACEME) return answer;
    weave_context before = *c;
    jit_set_answer(c, 0);
    jit_set_clobbers(c);
    jit_let_go(t);
    *c = before;
    return 0;
}

static long run_arch_prctl(jit_thread *t, weave_context *c)
{
    return jit_arch_prctl(t, (int)jit_arg(c, 0), jit_arg(c, 1));
}

const jit_syscall_row jit_process_syscalls[] = {
    {SYS_clone, "clone", run_clone},
    {SYS_clone3, "clone3", run_clone},
    {SYS_fork, "fork", run_clone},
    {SYS_vfork, "vfork", run_clone},
    {SYS_exit, "exit", run_exit},
    {SYS_exit_group, "exit_group", run_exit_group},
    {SYS_execve, "execve", run_execve},
    {SYS_execveat, "execveat", run_execveat},
    {SYS_set_tid_address, "set_tid_address", run_set_tid_address},
    {SYS_set_robust_list, "set_robust_list", run_set_robust_list},
    {SYS_rseq, "rseq", run_rseq},
    {SYS_prctl, "prctl", run_prctl},
    {SYS_ptrace, "ptrace", run_ptrace},
    {SYS_seccomp, "seccomp", jit_confine_seccomp},
    {SYS_arch_prctl, "arch_prctl", run_arch_prctl},
    {0, NULL, NULL},
};
