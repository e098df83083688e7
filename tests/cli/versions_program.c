/* Two regions of interest, one in the other; a tick before each piece of work; a second thread, which works too. */
#include <pthread.h>
#include <stdio.h>

static volatile unsigned long sum;

__attribute__((noinline)) void tick(void) { sum++; }
__attribute__((noinline)) void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++) sum += i % 3 ? i : 1;
}
__attribute__((noinline)) void region(unsigned n)
{
    for (unsigned i = 0; i < n; i++) work(i);
    sum++;
}

static void *other(void *arg)
{
    for (unsigned i = 0; i < 20; i++) region(5);
    return arg;
}

int main(void)
{
    pthread_t t;
    for (unsigned i = 0; i < 50; i++) {
        tick();
        work(3);
    }
    pthread_create(&t, NULL, other, NULL);
    for (unsigned i = 0; i < 30; i++) region(7);
    pthread_join(t, NULL);
    printf("%lu\n", sum > 0);
    return 0;
}
