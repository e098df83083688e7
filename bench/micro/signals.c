/* A storm of signals that the program handles: half sent to itself, half faults that its handler
 * answers by skipping the instruction.
 * operations: 10000 (signals) */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static volatile sig_atomic_t sent, faults;

static void on_sent(int signo)
{
    (void)signo;
    sent++;
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    ucontext_t *u = context;
    u->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
    faults++;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_sent;
    sigaction(SIGUSR1, &a, NULL);
    a.sa_sigaction = on_fault;
    a.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &a, NULL);
    for (int i = 0; i < rounds * 5000; i++) {
        raise(SIGUSR1);
        __asm__ volatile("ud2");
    }
    printf("%d %d\n", (int)sent, (int)faults);
    return 0;
}
