/* Procedures of which it is known what they count: pages touched for the first time, sleeps, time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline, noclone))
enum { PAGE = 4096 };

ALONE void touches(int pages)
{
    char *p = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    for (int i = 0; i < pages; i++) ((volatile char *)p)[(size_t)i * PAGE] = 1;
    munmap(p, (size_t)pages * PAGE);
}

ALONE void sleeps(int times)
{
    const struct timespec t = {0, 200000};
    for (int i = 0; i < times; i++) nanosleep(&t, NULL);
}

ALONE void spins(int ms)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ms * 1000000L);
}

ALONE void inner(int pages) { touches(pages); }

ALONE void outer(void)
{
    inner(40);
    touches(60);
    sleeps(7);
    spins(5);
}

ALONE void *worker(void *arg)
{
    touches((int)(long)arg);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "exits")) {
        inner(500);
        exit(0);
    }
    outer();
    pthread_t t[2];
    for (long k = 0; k < 2; k++) pthread_create(&t[k], NULL, worker, (void *)(300 * (k + 1)));
    for (int k = 0; k < 2; k++) pthread_join(t[k], NULL);
    pid_t child = fork();
    if (!child) {
        inner(200);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
