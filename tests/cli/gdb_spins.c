/* Threads that never rest, and one that sleeps; it must not matter to any of them that gdb looks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile long spins[4];
volatile int stop;

__attribute__((noinline)) void tick(long n) { spins[n]++; }

static void *thread(void *arg)
{
    while (!stop) tick((long)arg);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[3];
    struct timespec nap = {argc > 1 ? atoi(argv[1]) : 1, 0};
    for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, thread, (void *)i);
    int answer = nanosleep(&nap, NULL);
    while (!stop && argc > 2) nanosleep(&nap, NULL);
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    printf("slept %d\n", answer);
    return 7;
}
