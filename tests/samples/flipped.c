/* A thread sets a signal's handler and has the signal ignored, in turns, while others get it all the time: one that is
 * on its way to the handler when it is ignored is ignored. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

enum { TURNS = 400000 };
static volatile int stop, got;

static void handler(int signo) { got += signo; }

static void *spin(void *none)
{
    while (!stop) continue;
    return none;
}

int main(void)
{
    struct sigaction a = {.sa_handler = SIG_IGN};
    struct itimerval often = {{0, 10}, {0, 10}};
    pthread_t threads[2];
    sigaction(SIGPROF, &a, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, spin, NULL);
    for (int i = 0; i < 2 * TURNS; i++) {
        a.sa_handler = i & 1 ? SIG_IGN : handler;
        sigaction(SIGPROF, &a, NULL);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("alive");
    return 0;
}
