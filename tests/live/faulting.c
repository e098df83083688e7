/* A thread of it faults all the time, at one instruction, and catches that. Says whether each fault was the right one,
 * where it was. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { NOWHERE = 16 };
extern const char faults_here[];
static sigjmp_buf back;
static volatile int over, wrong;

static void caught(int signo, siginfo_t *info, void *context)
{
    const ucontext_t *c = context;
    wrong += signo != SIGSEGV || info->si_addr != (void *)NOWHERE || info->si_code != SEGV_MAPERR ||
             c->uc_mcontext.gregs[REG_RIP] != (greg_t)(long)faults_here;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static void fault(volatile int *at)
{
    __asm__ volatile("faults_here: movl $1, (%0)" : : "r"(at) : "memory");
}

static void *work(void *arg)
{
    while (!over)
        if (!sigsetjmp(back, 1)) fault((int *)NOWHERE);
    return arg;
}

int main(void)
{
    struct sigaction a;
    char line[16];
    pthread_t t;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = caught;
    a.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &a, NULL);
    pthread_create(&t, NULL, work, NULL);
    if (!fgets(line, sizeof line, stdin)) return 1;
    over = 1;
    pthread_join(t, NULL);
    printf(wrong ? "%d were wrong\n" : "caught\n", wrong);
    return 5;
}
