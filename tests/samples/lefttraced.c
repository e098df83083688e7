/* A tracer attaches to a process, steps it a little, and ends without having let it go: the kernel has the process go
 * on with what it stopped for last, a trap. Who handles that goes on, another one dies of it, wherever the steps have
 * led. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 2 /* TRAP_TRACE */, WARM = 100000, ROUNDS = 16 };

static volatile long *turns;
static volatile sig_atomic_t told;

static void on_trap(int signo, siginfo_t *info, void *uc)
{
    (void)uc;
    told = signo == SIGTRAP && info->si_code == STEP ? 1 : 2;
}

__attribute__((noinline)) static void turn(void)
{
    ++*turns;
    __asm__ volatile("");
}

static void traced(int handles)
{
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    if (handles) sigaction(SIGTRAP, &trap, NULL);
    while (!told) turn();
    _exit(10 + told);
}

static void tracer(int handles, int steps)
{
    int status;
    *turns = 0;
    pid_t pid = fork();
    if (!pid) traced(handles);
    while (*turns < WARM) usleep(1000);
    ptrace(PTRACE_ATTACH, pid, 0, 0);
    waitpid(pid, &status, 0);
    for (int i = 0; i < steps; i++) {
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        waitpid(pid, &status, 0);
    }
    _exit(0);
}

int main(void)
{
    turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int i = 0; i < ROUNDS; i++) {
        int status;
        pid_t pid = fork();
        if (!pid) tracer(i % 2, 3 + i);
        while (waitpid(-1, &status, 0) == pid) {}
        printf("after %d steps: %x\n", 3 + i, (unsigned)status);
        fflush(stdout);
    }
    return 0;
}
