/* Ends somebody at one step of a command that changes another process:
 *
 *   killer STEP self|all|target PID FILE ADDRESS COMMAND...
 *
 * A step is a call that changes process PID, made by any process of the command: ptrace, process_vm_writev, a write to
 * /proc/PID/mem. When so many have begun (STEP 0: never), before the last one is made, SIGKILL comes: to the process
 * that makes it, to all of the command's, or to PID. How many steps have begun is written to FILE, and behind it what
 * the 8 bytes at ADDRESS were in PID just before: -1: none were there. The command's status is this one's, 137 where a
 * signal has ended it. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64 };
static pid_t all[MOST];
static unsigned count, steps;

static void note(pid_t pid, bool there)
{
    for (unsigned i = 0; i < count; i++)
        if (all[i] == pid && !there) all[i] = all[--count];
        else if (all[i] == pid) return;
    if (there && count < MOST) all[count++] = pid;
}

static bool is_memory(pid_t pid, long fd)
{
    char link[64], path[64] = "";
    snprintf(link, sizeof link, "/proc/%d/fd/%ld", pid, fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    return n > 4 && !strncmp(path, "/proc/", 6) && !strcmp(path + n - 4, "/mem");
}

/* The thread is about to make one of the calls of `filter`. */
static bool is_step(pid_t pid)
{
    struct __ptrace_syscall_info call;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof call, &call) <= 0 || call.op != PTRACE_SYSCALL_INFO_SECCOMP)
        return false;
    return call.seccomp.nr != SYS_pwrite64 || is_memory(pid, (long)call.seccomp.args[0]);
}

/* All other calls are made without a stop. */
static void stop_at_steps(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(126);
}

static void look(pid_t pid, const char *address, char *out, size_t size)
{
    unsigned long long value;
    struct iovec here = {&value, sizeof value}, there = {(void *)strtoul(address, NULL, 0), sizeof value};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof value) snprintf(out, size, "%llu", value);
}

static void end(const char *whom, pid_t pid, pid_t target)
{
    if (!strcmp(whom, "target")) kill(target, SIGKILL);
    if (!strcmp(whom, "self")) kill(pid, SIGKILL);
    for (unsigned i = 0; i < count && !strcmp(whom, "all"); i++) kill(all[i], SIGKILL);
}

static pid_t start(char **argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        stop_at_steps();
        execv(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    int status;
    waitpid(pid, &status, __WALL);
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    ptrace(PTRACE_SETOPTIONS, pid, 0, options);
    note(pid, true);
    ptrace(PTRACE_CONT, pid, 0, 0);
    return pid;
}

int main(int argc, char **argv)
{
    char seen[32] = "-1";
    if (argc < 7) return 2;
    unsigned when = (unsigned)atoi(argv[1]);
    pid_t target = atoi(argv[3]), first = start(argv + 6);
    int status, result = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
        if (!WIFSTOPPED(status)) {
            note(pid, false);
            if (pid == first) result = WIFEXITED(status) ? WEXITSTATUS(status) : 137;
            continue;
        }
        note(pid, true);
        int signo = WSTOPSIG(status);
        if (status >> 16 == PTRACE_EVENT_SECCOMP && is_step(pid) && ++steps == when) {
            look(target, argv[5], seen, sizeof seen);
            end(argv[2], pid, target);
        }
        bool own = status >> 16 || signo == SIGSTOP;
        ptrace(PTRACE_CONT, pid, 0, own ? 0L : (long)signo);
    }
    FILE *f = fopen(argv[4], "w");
    if (f) fprintf(f, "%u %s\n", steps, seen);
    return f && !fclose(f) ? result : 2;
}
