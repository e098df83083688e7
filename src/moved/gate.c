/* System calls of a rewritten program that concern the tool: those that begin or end threads and
 * processes, set signals' actions, or could close Inlay's descriptors or take its memory away. All others never
 * leave the program's own code. Runs on the thread's private stack, all signals but faults blocked. */
#include "moved/private.h"
#include "base/log.h"
#include "base/sys.h"
#include "moved/sites.h"
#include "run/confine.h"
#include INL_ARCH_HEADER(run, abi)

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

enum { NUMBERS = 512, SET_SYSCALL_USER_DISPATCH = 59 };
/* clang-format off */
static const uint16_t life[] = {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_exit, SYS_exit_group,
                                SYS_execve, SYS_execveat, SYS_rt_sigaction, SYS_arch_prctl,
                                SYS_close_range, SYS_rt_sigreturn, SYS_sigaltstack, SYS_rt_sigqueueinfo,
                                SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_prctl, SYS_seccomp,
                                SYS_unshare, SYS_setns};
/* clang-format on */
static const uint16_t descriptors[] = {SYS_close, SYS_dup, SYS_dup2, SYS_dup3, SYS_fcntl};
static const uint16_t memory[] = {SYS_mmap, SYS_munmap, SYS_mremap};

/* By number: does the gate have to know of it; only if its arguments say so (descriptors; what is unmapped or mapped
 * over)? */
uint64_t moved_gated[NUMBERS / 64], moved_gated_fds[NUMBERS / 64];
bool moved_gated_others;

static bool has(const uint16_t *list, size_t n, long nr)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == nr) return true;
    return false;
}
#define HAS(list, nr) has(list, sizeof(list) / sizeof *(list), nr)

void moved_watch_syscalls(bool all) { moved_now.watches = all; }
bool moved_watches_syscalls(void) { return moved_now.watches; }

bool moved_syscall_matters(long nr)
{
    return moved_now.watches || nr < 0 || HAS(life, nr) || HAS(descriptors, nr) || nr == SYS_getdents64 ||
           HAS(memory, nr);
}

void moved_gate_init(void)
{
    run_fd_init();
    moved_gated_others = moved_now.watches;
    moved_gated[MOVED_IMAGES_CALL / 64] |= 1ull << MOVED_IMAGES_CALL % 64;
    for (long nr = 0; nr < NUMBERS; nr++) {
        if (moved_syscall_matters(nr)) moved_gated[nr / 64] |= 1ull << nr % 64;
        bool by_arguments = HAS(descriptors, nr) || (MOVED_NEEDS_GROUND && nr == SYS_munmap) ||
                            (MOVED_SEES_FIXED && nr == SYS_mmap);
        if (by_arguments && !moved_now.watches) moved_gated_fds[nr / 64] |= 1ull << nr % 64;
    }
}

/* --- exec --- */

/* Would the kernel run it? Close enough: if it does not after all, the last report is the one that
 * counts. */
static bool can_exec(int dirfd, const char *path, int flags)
{
    struct stat st;
    int follow = flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    if (sys_call4(SYS_newfstatat, dirfd, (long)path, (long)&st, follow)) return false;
    return S_ISREG(st.st_mode) && !sys_call4(SYS_faccessat2, dirfd, (long)path, X_OK, AT_EACCESS | follow);
}

static long run_exec(run_thread *t, int dirfd, uint64_t path, uint64_t argv, uint64_t envp, int flags)
{
    char name[PATH_MAX];
    bool ends = !(flags & RUN_EXEC_CHECK) && run_read_string(name, path, sizeof name) >= 0 &&
                can_exec(dirfd, name, flags);
    if (ends && moved_now.hooks.exec) moved_now.hooks.exec(t, name, (char *const *)argv);
    long answer = run_sys_execve(t, dirfd, path, argv, envp, flags);
    if (ends && moved_now.hooks.exec_failed) moved_now.hooks.exec_failed(t);
    return answer;
}

/* --- the rest --- */

/* The kernel has Inlay's, unless the program has set its own by a call that was not seen. */
static long run_sigaltstack(run_thread *t, uint64_t ss, uint64_t old)
{
    long answer = run_sys_sigaltstack(t, ss, old);
    stack_t ours = run_altstack_own(t);
    if (ss) sys_call2(SYS_sigaltstack, (long)&ours, 0);
    return answer;
}

/* In a child that shares this memory and was made by a call that could not be patched (Go's), which has dispositions of
 * its own: those that it resets before it executes a program stay as they are here. */
static long run_sigaction(run_thread *t, const weave_context *c)
{
    int signo = (int)run_arg(c, 0);
    uint64_t act = run_arg(c, 1), old = run_arg(c, 2), size = run_arg(c, 3);
    run_action a;
    bool resets = act && run_read(&a, act, sizeof a) && (a.handler == RUN_DEFAULT || a.handler == RUN_IGNORE);
    bool elsewhere = resets && !t->is_vfork_child && sys_call0(SYS_getpid) != run_here.pid;
    long answer = run_sys_sigaction(t, signo, elsewhere ? 0 : act, old, size);
    return answer || !elsewhere ? answer : sys_call4(SYS_rt_sigaction, signo, (long)act, 0, (long)size);
}

/* On a descriptor of Inlay's? */
static bool is_refused(const weave_context *c, long nr)
{
    uint64_t args[6];
    run_args(c, args);
    if (run_fd_is_refused(nr, args)) return true;
    return (nr == SYS_dup2 || nr == SYS_dup3) && run_fd_is_hidden((int)run_arg(c, 1));
}

/* New code near images, once it is told of. */
static void own_new(void)
{
    const move_told *told = (const move_told *)MOVE_TOLD_BASE;
    const move_told_range *areas;
    uint64_t count = moved_site_areas(&areas);
    if (__atomic_exchange_n(&moved_now.owns_new, true, __ATOMIC_RELAXED)) return;
    for (uint64_t i = 0; i < count; i++) run_own(areas[i].low, areas[i].high - areas[i].low, true);
    if (!moved_is_live()) return;
    const move_told_range *ranges = (const void *)told->ranges;
    for (uint64_t i = 0; i < told->range_count; i++) run_own(ranges[i].low, ranges[i].high - ranges[i].low, true);
}

static bool takes_memory(const weave_context *c)
{
    own_new();
    return run_memory_concerns(c);
}

/* Is it made here? All others are made in the gate. */
static bool is_served(const weave_context *c, long nr)
{
    if (HAS(life, nr) || is_refused(c, nr)) return true;
    if (HAS(memory, nr) && takes_memory(c)) return true;
    if (nr == SYS_munmap) return moved_loses_ground(c);
    return nr == SYS_getdents64 && run_lists_hidden((int)run_arg(c, 0));
}

static long call_prctl(run_thread *t, const weave_context *c)
{
    int option = (int)run_arg(c, 0);
    if (option == SET_SYSCALL_USER_DISPATCH) return -EINVAL; /* it goes by where calls are made from */
    return option == PR_SET_SECCOMP ? run_confine_prctl(t, c) : run_pass(t, c);
}

static long serve(run_thread *t, weave_context *c, long nr)
{
    switch (nr) {
    case SYS_clone:
    case SYS_fork:
    case SYS_vfork: return run_sys_clone(t, false);
    case SYS_clone3: return run_sys_clone(t, true);
    case SYS_exit: run_thread_exit(t, (int)run_arg(c, 0));
    case SYS_exit_group: run_process_exit(t, (int)run_arg(c, 0));
    case SYS_execve: return run_exec(t, AT_FDCWD, run_arg(c, 0), run_arg(c, 1), run_arg(c, 2), 0);
    case SYS_execveat:
        return run_exec(t, (int)run_arg(c, 0), run_arg(c, 1), run_arg(c, 2), run_arg(c, 3), (int)run_arg(c, 4));
    case SYS_rt_sigaction: return run_sigaction(t, c);
    case SYS_arch_prctl: return moved_arch_prctl(t, c);
    case SYS_rt_sigreturn: moved_sigreturn(t);
    case SYS_sigaltstack: return run_sigaltstack(t, run_arg(c, 0), run_arg(c, 1));
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_pidfd_send_signal: return run_sys_queue(t, c);
    case SYS_prctl: return call_prctl(t, c);
    case SYS_seccomp: return run_confine_seccomp(t, c);
    case SYS_unshare:
    case SYS_setns: return run_sys_alone(t, c);
    case SYS_close_range: return run_close_range(t, run_arg(c, 0), run_arg(c, 1), run_arg(c, 2));
    case SYS_getdents64: return run_list_unhidden(t, c);
    case SYS_mmap:
    case SYS_mremap: return run_memory_call(t, c);
    case SYS_munmap: return moved_loses_ground(c) ? moved_unmap_ground(t, c) : run_memory_call(t, c);
    default: return -EBADF; /* is_refused */
    }
}

/* A signal that comes during a call finds it over, or not begun (settle.c), so a thread has one at a time. */
static bool tell_of_entry(run_thread *t)
{
    run_asked_note(&t->ctx, &moved_of(t)->asked);
    return moved_now.watches && run_here.client.syscall_enter &&
           run_here.client.syscall_enter(run_here.client.arg, t, &t->ctx, run_number(&t->ctx));
}

static void tell_of_exit(run_thread *t, long nr)
{
    const run_asked *asked = &moved_of(t)->asked;
    if (!moved_now.watches) return;
    if (run_here.client.syscall_exit) run_here.client.syscall_exit(run_here.client.arg, t, &t->ctx, nr);
    if (asked->sp == run_sp(&t->ctx)) run_asked_back(&t->ctx, asked);
}

void moved_tell_of_exit(run_thread *t) { tell_of_exit(t, (long)t->frame.slot[MOVED_NUMBER_SLOT]); }

void moved_ask_again(const run_thread *t, weave_context *c)
{
    const run_asked *asked = &moved_of(t)->asked;
    if (moved_now.watches && asked->sp == run_sp(c)) run_asked_again(c, asked);
}

/* At a call: what is to happen next. */
static uint64_t begin_call(run_thread *t)
{
    weave_context *c = &t->ctx;
    long nr = run_number(c);
    if (nr == MOVED_IMAGES_CALL && c->pc == moved_now.linker_call) {
        moved_images_changed(t);
        if (moved_now.hooks.all_listed) moved_now.hooks.all_listed();
        return (uint64_t)(uintptr_t)moved_gate_leave;
    }
    uint64_t waits = moved_goes_native(t, c);
    if (waits) return waits;
    bool skipped = tell_of_entry(t);
    if (!skipped) nr = run_number(c);
    run_verdict verdict = skipped ? RUN_CALL_GOES : run_confine_ask(t, c);
    if (verdict == RUN_CALL_KILLS) run_confine_kill(t);
    if (!skipped && (verdict == RUN_CALL_REFUSED || !is_served(c, nr))) {
        t->frame.slot[MOVED_NUMBER_SLOT] = (uint64_t)nr;
        return (uint64_t)(uintptr_t)(moved_now.watches ? moved_gate_call : moved_gate_pass);
    }
    long answer = skipped ? run_number(c) : serve(t, c, nr);
    if (answer == RUN_RESTART) {
        t->pending.present = false;
        run_signal_send_back(&t->pending.info); /* it is blocked as yet */
        moved_ask_again(t, c);
        return moved_call_again();
    }
    inl_log(INL_LOG_SYSCALL, "call %ld -> %ld", nr, answer);
    run_set_answer(c, answer);
    run_set_clobbers(c);
    tell_of_exit(t, nr);
    return (uint64_t)(uintptr_t)moved_gate_leave;
}

/* run_engine.dispatch */
uint64_t moved_dispatch(run_thread *t)
{
    uint64_t next = (uint64_t)(uintptr_t)moved_gate_leave;
    if (t->leave == RUN_LEAVE_SYSCALL || t->leave == RUN_LEAVE_SYSCALL_DONE) t->sigmask = moved_of(t)->mask;
    if (t->leave == RUN_LEAVE_SYSCALL) next = begin_call(t);
    if (t->leave == RUN_LEAVE_SYSCALL_DONE) moved_tell_of_exit(t);
    moved_of(t)->mask = t->sigmask;
    return next;
}
