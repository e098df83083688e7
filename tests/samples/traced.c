/* A parent that traces its child, as debuggers do: the child stands in its own code with its own registers, its
 * system calls are those that it makes, faults stop it where they happen, and what the parent writes into
 * its code is executed. Signals and their handlers go on working in the child. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t no_code[4096] __attribute__((aligned(4096))) = {0xc3};
static volatile sig_atomic_t handled;

static void on_usr1(int signo)
{
    (void)signo;
    handled++;
}

__attribute__((noinline)) static int answer(void)
{
    __asm__ volatile(""); /* no inlining by way of constants */
    return 1;
}

static void child(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR1, on_usr1);
    int before = answer();
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    for (int i = 0; i < 3; i++) syscall(SYS_getppid);
    raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &set);
    if (before != 1 || answer() != 7 || handled != 1 || !sigismember(&set, SIGUSR2)) _exit(9);
    void (*volatile go)(void) = (void (*)(void))(uintptr_t)no_code;
    go();
    _exit(8);
}

/* mov $7, %eax; ret */
static int patch(pid_t pid)
{
    uint64_t code = 0xc300000007b8;
    return ptrace(PTRACE_POKETEXT, pid, (void *)(uintptr_t)answer, (void *)code) == 0;
}

static void describe(pid_t pid, int status, int *calls)
{
    struct user_regs_struct r;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    int signo = WSTOPSIG(status);
    if (signo == (SIGTRAP | 0x80)) {
        *calls += r.orig_rax == SYS_getppid;
    } else if (signo == SIGSEGV) {
        siginfo_t info;
        ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
        printf("faults at its code's end: %d, address %d, code %d\n", r.rip == (uintptr_t)no_code,
               info.si_addr == no_code, info.si_code);
    } else {
        printf("stops by signal %d\n", signo);
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t pid = fork();
    if (!pid) child();
    int status, calls = 0;
    waitpid(pid, &status, 0);
    printf("stops at first by %d\n", WSTOPSIG(status));
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    printf("patched %d\n", patch(pid));
    for (;;) {
        int pass = WSTOPSIG(status) & 0x80 || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_SYSCALL, pid, 0, (long)pass);
        if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) break;
        describe(pid, status, &calls);
    }
    printf("%d stops at getppid; ends by signal %d, status %d\n", calls, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
           WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    return 0;
}
