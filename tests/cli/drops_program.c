/* Signals with handlers, with one that is there once, with none, and faults in the midst of code; tells what came. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int came[2];

static void handler(int signo) { came[signo == SIGUSR2]++; }

/* Instructions before and behind the one that faults. */
__attribute__((noinline)) static int counted(const volatile char *at, int x)
{
    x = x * 3 + 1;
    x += *at;
    return x ^ 5;
}

/* Natively it ends there. */
__attribute__((noinline)) static int skips(int x)
{
    x = x * 5 + 2;
    __asm__ volatile("mov %0, %%eax\n mov (%1), %%ecx\n mov %%eax, %0" : "+r"(x) : "d"(8l) : "rax", "rcx");
    return x ^ 9;
}

/* In the midst of a system call, from which another procedure returns. */
__attribute__((noinline, used)) int elsewhere(void) { return 77; }
__attribute__((noinline)) static int leaves(void)
{
    long answer;
    pid_t self = getpid();
    __asm__ volatile("sub $128, %%rsp\n call 1f\n jmp 2f\n 1: syscall\n mov $5, %%eax\n ret\n 2: add $128, %%rsp"
                     : "=a"(answer)
                     : "0"((long)SYS_kill), "D"((long)self), "S"((long)SIGALRM)
                     : "rcx", "r11", "memory");
    return (int)answer;
}

int main(void)
{
    struct sigaction a = {.sa_handler = handler}, once = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};
    int sum = 0;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &once, NULL);
    for (int i = 0; i < 10; i++) raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGUSR2);
    raise(SIGTERM);
    for (int i = 0; i < 5; i++) {
        char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sum += counted(page, i);
    }
    int skipped = 0, left = 0;
    for (int i = 0; i < 7; i++) skipped += skips(i);
    sigaction(SIGALRM, &a, NULL);
    for (int i = 0; i < 3; i++) left += leaves();
    printf("%d %d, %d, %d, %d\n", came[0], came[1], sum, skipped, left);
    return 3;
}
