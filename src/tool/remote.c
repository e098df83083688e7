#include "tool/remote.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { SYSCALL_STOP = SIGTRAP | 0x80 };

static inl_status fail_ptrace(remote *r, const char *what, inl_error *e)
{
    if (errno == ESRCH) r->gone = true;
    return inl_fail(e, INL_ERR_SYSTEM, "%s in process %d failed: %s", what, r->pid, strerror(errno));
}

/* Of a process of another width or instruction set there are fewer, or others. */
static bool get_registers(const remote *r, struct user_regs_struct *u)
{
    struct iovec all = {u, sizeof *u};
    if (ptrace(PTRACE_GETREGSET, r->pid, NT_PRSTATUS, &all) != 0) return false;
    if (all.iov_len != sizeof *u) memset(u, 0, sizeof *u);
    return true;
}

static bool set_registers(const remote *r, struct user_regs_struct *u)
{
    struct iovec all = {u, sizeof *u};
    return ptrace(PTRACE_SETREGSET, r->pid, NT_PRSTATUS, &all) == 0;
}

/* Runs to the next entry to or exit from a system call. */
static inl_status run_to_syscall(remote *r, inl_error *e)
{
    for (;;) {
        int status;
        if (ptrace(PTRACE_SYSCALL, r->pid, 0, 0) != 0) return fail_ptrace(r, "PTRACE_SYSCALL", e);
        pid_t got;
        do got = waitpid(r->pid, &status, __WALL);
        while (got < 0 && errno == EINTR);
        if (got < 0) return fail_ptrace(r, "waitpid", e);
        if (!WIFSTOPPED(status)) {
            r->gone = true;
            return inl_fail(e, INL_ERR_SYSTEM, "process %d ended while the tool was put into it", r->pid);
        }
        if (WSTOPSIG(status) == SYSCALL_STOP) return INL_OK;
        /* With everything blocked only SIGSTOP comes through; it is kept for the end. */
        if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP) r->stop_signal = SIGSTOP;
    }
}

inl_status remote_begin(remote *r, pid_t pid, inl_error *e)
{
    uint64_t all = ~0ull;
    *r = (remote){.pid = pid};
    if (ptrace(PTRACE_GETSIGMASK, pid, sizeof r->sigmask, &r->sigmask) != 0 ||
        ptrace(PTRACE_SETSIGMASK, pid, sizeof all, &all) != 0)
        return fail_ptrace(r, "holding signals back", e);
    inl_status s = run_to_syscall(r, e); /* the end of execve itself */
    if (s != INL_OK) return s;
    if (!get_registers(r, &r->regs)) return fail_ptrace(r, "reading registers", e);
    if (!remote_is_ours(r)) return inl_fail(e, INL_ERR_UNSUPPORTED, "the program is not of this architecture");
    long word;
    memcpy(&word, remote_syscall_insn, sizeof word);
    r->code_at = remote_registers_pc(&r->regs) & ~(uint64_t)7;
    errno = 0;
    r->code_word = ptrace(PTRACE_PEEKTEXT, pid, r->code_at, 0);
    if (errno || ptrace(PTRACE_POKETEXT, pid, r->code_at, word) != 0) {
        r->code_at = 0;
        return fail_ptrace(r, "writing at the entry point", e);
    }
    return INL_OK;
}

inl_status remote_call(remote *r, long *answer, long nr, const long args[6], inl_error *e)
{
    struct user_regs_struct u = r->regs;
    remote_registers_call(&u, r->code_at, nr, args);
    if (!set_registers(r, &u)) return fail_ptrace(r, "writing registers", e);
    inl_status s = run_to_syscall(r, e);
    if (s == INL_OK) s = run_to_syscall(r, e);
    if (s != INL_OK) return s;
    if (!get_registers(r, &u)) return fail_ptrace(r, "reading registers", e);
    *answer = remote_registers_answer(&u);
    return INL_OK;
}

inl_status remote_read(remote *r, uint64_t from, void *to, size_t size, inl_error *e)
{
    struct iovec here = {to, size}, there = {(void *)from, size};
    if (process_vm_readv(r->pid, &here, 1, &there, 1, 0) == (ssize_t)size) return INL_OK;
    return fail_ptrace(r, "reading memory", e);
}

inl_status remote_write(remote *r, uint64_t to, const void *from, size_t size, inl_error *e)
{
    struct iovec here = {(void *)from, size}, there = {(void *)to, size};
    if (process_vm_writev(r->pid, &here, 1, &there, 1, 0) == (ssize_t)size) return INL_OK;
    return fail_ptrace(r, "writing memory", e);
}

inl_status remote_go(remote *r, uint64_t pc, uint64_t sp, inl_error *e)
{
    struct user_regs_struct u = r->regs;
    remote_registers_start(&u, pc, sp);
    if (ptrace(PTRACE_POKETEXT, r->pid, r->code_at, r->code_word) != 0 || !set_registers(r, &u) ||
        ptrace(PTRACE_SETSIGMASK, r->pid, sizeof r->sigmask, &r->sigmask) != 0 ||
        ptrace(PTRACE_DETACH, r->pid, 0, (long)r->stop_signal) != 0)
        return fail_ptrace(r, "starting the tool", e);
    return INL_OK;
}

void remote_end(remote *r, int status)
{
    if (r->gone) return;
    if (r->code_at) {
        struct user_regs_struct u = r->regs;
        remote_registers_call(&u, r->code_at, SYS_exit_group, (long[6]){status});
        if (set_registers(r, &u) && ptrace(PTRACE_DETACH, r->pid, 0, 0) == 0) return;
    }
    kill(r->pid, SIGKILL);
}
