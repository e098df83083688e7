/* Threads that send themselves a real-time signal all the time, and handle each: at most moments one is on its way.
 *
 *   queues THREADS */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
static volatile int over, wrong;
static __thread volatile int got;

static void handle(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    got += info->si_value.sival_int;
}

static void *work(void *arg)
{
    const union sigval one = {.sival_int = 1};
    while (!over) {
        const int before = got;
        pthread_sigqueue(pthread_self(), SIGRTMIN + 2, one);
        if (got != before + 1) wrong++;
    }
    return arg;
}

int main(int argc, char *argv[])
{
    struct sigaction a;
    pthread_t t[MOST];
    char line[16];
    int count = argc > 1 ? atoi(argv[1]) : 1;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = handle;
    a.sa_flags = SA_SIGINFO;
    sigaction(SIGRTMIN + 2, &a, NULL);
    for (int i = 0; i < count && i < MOST; i++) pthread_create(&t[i], NULL, work, NULL);
    if (!fgets(line, sizeof line, stdin)) return 1;
    over = 1;
    for (int i = 0; i < count && i < MOST; i++) pthread_join(t[i], NULL);
    printf(wrong ? "%d were wrong\n" : "caught\n", wrong);
    return 5;
}
