/* corpse [pc]: what a core of a process would show that dies by a fault, by a trap or by a signal that it sends itself:
 * its registers as they were. A parent looks at them when the child has been killed but is not yet gone. With `pc` it
 * says as well whether the child stood at its instruction, which one in moved code does not. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RBX = 0x1234567, R12 = 0x2345678, XMM = 0x3456789 };

extern const char fault_at[], trap_behind[], call_behind[];

static void die(int signo)
{
    register uint64_t r12 __asm__("r12") = R12, b __asm__("rbx") = RBX;
    __asm__ volatile("movq %0, %%xmm9" ::"r"((uint64_t)XMM) : "xmm9");
    if (signo == SIGSEGV) {
        __asm__ volatile(".globl fault_at\nfault_at: movl $1, 8" ::"r"(b), "r"(r12) : "memory");
    } else if (signo == SIGTRAP) {
        __asm__ volatile("int3\n.globl trap_behind\ntrap_behind: nop" ::"r"(b), "r"(r12) : "memory");
    } else {
        uint64_t answer = SYS_tgkill;
        __asm__ volatile("syscall\n.globl call_behind\ncall_behind: nop"
                         : "+a"(answer)
                         : "D"(getpid()), "S"((long)syscall(SYS_gettid)), "d"(signo), "r"(b), "r"(r12)
                         : "rcx", "r11", "memory");
    }
    __asm__ volatile("" ::"r"(b), "r"(r12)); /* what is not read again may hold anything in moved code */
    _exit(9);
}

static void child(int signo, int from)
{
    char ready;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (read(from, &ready, 1) == 1) die(signo);
    _exit(8);
}

static void describe(pid_t pid, int signo, int with_pc)
{
    struct user_regs_struct r;
    struct user_fpregs_struct f;
    const char *at = signo == SIGSEGV ? fault_at : signo == SIGTRAP ? trap_behind : call_behind;
    ptrace(PTRACE_GETREGS, pid, 0, &r);
    ptrace(PTRACE_GETFPREGS, pid, 0, &f);
    printf("%s: rbx %llx, r12 %llx, xmm9 %x", strsignal(signo), r.rbx, r.r12, f.xmm_space[9 * 4]);
    if (with_pc) printf(", %s", r.rip == (uint64_t)(uintptr_t)at ? "in its place" : "elsewhere");
    printf("\n");
}

/* Signals are passed on; in the end the kernel tells that it is on its way out. */
static int watch(pid_t pid, int signo, int with_pc)
{
    int status;
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        int event = status >> 16, passed = event ? 0 : WSTOPSIG(status);
        if (event == PTRACE_EVENT_EXIT) describe(pid, signo, with_pc);
        ptrace(PTRACE_CONT, pid, 0, (void *)(long)passed);
    }
    return status;
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGSEGV, SIGTRAP, SIGABRT, SIGUSR1};
    int with_pc = argc > 1 && !strcmp(argv[1], "pc");
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        int ends[2];
        if (pipe(ends)) return 1;
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) child(signals[i], ends[0]);
        ptrace(PTRACE_SEIZE, pid, 0, (void *)PTRACE_O_TRACEEXIT);
        if (write(ends[1], "", 1) != 1) return 1;
        int status = watch(pid, signals[i], with_pc);
        printf("killed by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
    }
    return 0;
}
