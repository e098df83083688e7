/* Threads that are in the dynamic linker's search for unwind tables nearly all the time, half of them for an address
 * that nothing is known of. It ends when it is told something. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2 };

static volatile int stop;

static void *work(void *nowhere)
{
    struct dl_find_object found;
    long wrong = 0;
    while (!stop) wrong += _dl_find_object(nowhere ? nowhere : (void *)work, &found) != (nowhere ? -1 : 0);
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[THREADS];
    void *wrong;
    long sum = 0;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, i % 2 ? (void *)1 : NULL);
    getchar();
    stop = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        sum += (long)wrong;
    }
    puts(sum ? "wrong" : "caught");
    return 5;
}
