/* Threads that each go round in `turn`, to be told apart and stopped one by one: single.c, points.py. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3 };
volatile long turns[THREADS];
volatile int tids[THREADS];
volatile int stop;

__attribute__((noinline)) void turn(int k) { turns[k]++; }

static void *goes_round(void *arg)
{
    int k = (int)(long)arg;
    tids[k] = gettid();
    while (!stop) {
        turn(k);
        usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    char line[100];
    pthread_t t[THREADS];
    for (long k = 0; k < THREADS; k++) pthread_create(&t[k], NULL, goes_round, (void *)k);
    for (long k = 0; k < THREADS; k++)
        while (!turns[k]) usleep(1000);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "exec", 4)) execv(argv[argc - 1], (char *[]){argv[argc - 1], NULL});
        fputs(line, stdout);
        fflush(stdout);
    }
    stop = 1;
    for (int k = 0; k < THREADS; k++) pthread_join(t[k], NULL);
    return 5;
}
