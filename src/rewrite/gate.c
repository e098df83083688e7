/* System calls of a rewritten program that concern the tool: those that begin or end threads and
 * processes, set signals' actions, or could close Inlay's descriptors. All others never leave the program's
 * own code. Runs on the thread's private stack, all signals but faults blocked. */
#include "rewrite/run_private.h"
#include "base/log.h"
#include "base/sys.h"
#include "jit/x86_64/abi.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

enum { NUMBERS = 512 };
static const uint16_t life[] = {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_exit, SYS_exit_group,
                                SYS_execve, SYS_execveat, SYS_rt_sigaction, SYS_arch_prctl,
                                SYS_close_range};
static const uint16_t descriptors[] = {SYS_close, SYS_dup2, SYS_dup3};

uint64_t rewrite_gated[NUMBERS / 64], rewrite_gated_fds[NUMBERS / 64];

static bool has(const uint16_t *list, size_t n, long nr)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == nr) return true;
    return false;
}
#define HAS(list, nr) has(list, sizeof(list) / sizeof *(list), nr)

bool rewrite_syscall_matters(long nr) { return nr < 0 || HAS(life, nr) || HAS(descriptors, nr); }

void rewrite_gate_init(void)
{
    for (long nr = 0; nr < NUMBERS; nr++) {
        if (rewrite_syscall_matters(nr)) rewrite_gated[nr / 64] |= 1ull << nr % 64;
        if (HAS(descriptors, nr)) rewrite_gated_fds[nr / 64] |= 1ull << nr % 64;
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
    return S_ISREG(st.st_mode) &&
           !sys_call4(SYS_faccessat2, dirfd, (long)path, X_OK, AT_EACCESS | follow);
}

static long run_exec(jit_thread *t, int dirfd, uint64_t path, uint64_t argv, uint64_t envp, int flags)
{
    char name[PATH_MAX];
    bool ends = !t->is_vfork_child && jit_read_string(name, path, sizeof name) >= 0 &&
                can_exec(dirfd, name, flags);
    if (ends && rewrite_run_hooks.exec) rewrite_run_hooks.exec(t, name);
    long answer = jit_sys_execve(t, dirfd, path, argv, envp, flags);
    if (ends && rewrite_run_hooks.exec_failed) rewrite_run_hooks.exec_failed(t);
    return answer;
}

/* --- the rest --- */

static long run_arch_prctl(jit_thread *t, weave_context *c)
{
    if (jit_arg(c, 0) != ARCH_SET_GS) return jit_arch_prctl(t, (int)jit_arg(c, 0), jit_arg(c, 1));
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        jit_say("the program wants GS for itself (arch_prctl), which a rewritten program cannot have");
    return -EPERM;
}

static long run_descriptor(weave_context *c, long nr)
{
    if (jit_fd_is_hidden((int)jit_arg(c, 0))) return -EBADF;
    if (nr != SYS_close && jit_fd_is_hidden((int)jit_arg(c, 1))) return -EBADF;
    return sys_call3(nr, (long)jit_arg(c, 0), (long)jit_arg(c, 1), (long)jit_arg(c, 2));
}

static long serve(jit_thread *t, weave_context *c, long nr)
{
    switch (nr) {
    case SYS_clone:
    case SYS_fork:
    case SYS_vfork: return jit_sys_clone(t, false);
    case SYS_clone3: return jit_sys_clone(t, true);
    case SYS_exit: jit_thread_exit(t, (int)jit_arg(c, 0));
    case SYS_exit_group: jit_process_exit(t, (int)jit_arg(c, 0));
    case SYS_execve: return run_exec(t, AT_FDCWD, jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2), 0);
    case SYS_execveat:
        return run_exec(t, (int)jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2), jit_arg(c, 3),
                        (int)jit_arg(c, 4));
    case SYS_rt_sigaction:
        return jit_sys_sigaction(t, (int)jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2), jit_arg(c, 3));
    case SYS_arch_prctl: return run_arch_prctl(t, c);
    case SYS_close_range: return jit_close_range(t, jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2));
    default: return run_descriptor(c, nr);
    }
}

/* jit_native.dispatch */
uint64_t rewrite_dispatch(jit_thread *t)
{
    if (t->leave == JIT_LEAVE_SYSCALL) {
        weave_context *c = &t->ctx;
        t->sigmask = t->native_mask;
        long nr = jit_number(c), answer = serve(t, c, nr);
        inl_log(INL_LOG_SYSCALL, "call %ld -> %ld", nr, answer);
        jit_set_answer(c, answer);
        jit_set_clobbers(c);
    }
    t->native_mask = t->sigmask;
    return (uint64_t)(uintptr_t)rewrite_gate_leave;
}
