/* Calls of a library through import stubs, which the dynamic linker fills in at the first call, from a procedure that
 * works for long; then, after more threads than 4096, one that works as well. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4200 };

__attribute__((noinline)) long work(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}

__attribute__((noinline)) long rounds(long n) { return work(n) + work(2 * n) + 1; }

__attribute__((noinline)) long late(long n) { return work(n) + 1; }

static void *nothing(void *arg) { return arg; }
static void *works(void *arg) { return (void *)late(*(long *)arg); }

int main(void)
{
    long n = 300000;
    for (int i = 0; i < 3; i++) {
        int number = atoi("12");
        for (volatile long k = 0; k < (i ? 0 : 200 * n); k++) {} /* no call: nobody else's time than main's */
        printf("%d %ld\n", number + i, rounds(n));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, i + 1 < THREADS ? nothing : works, &n) != 0) return 1;
        pthread_join(t, NULL);
    }
    return 0;
}
