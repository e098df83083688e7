/* Stores to `marks` by threads: one that ends before the others begin, then two that take turns. Who traces memory
 * sees each store once, whoever's memory the records of the later threads went to. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { EACH = 200, TURNS = 3, THREADS = 2 };
volatile unsigned char marks[EACH * (1 + TURNS * THREADS)];
static int next, baton[THREADS][2];

static __attribute__((noinline)) void mark(void)
{
    for (int end = next + EACH; next < end; next++) marks[next] = 1;
}

static void *first(void *arg)
{
    mark();
    return arg;
}

/* A thread sleeps until it has the baton, and makes no record meanwhile. */
static void *in_turns(void *arg)
{
    int me = (int)(intptr_t)arg;
    char byte;
    for (int i = 0; i < TURNS; i++) {
        if (read(baton[me][0], &byte, 1) != 1) return NULL;
        mark();
        if (write(baton[(me + 1) % THREADS][1], &byte, 1) != 1) return NULL;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    (void)argv;
    if (argc > 1) return mark(), 0; /* once, and no thread */
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_join(threads[0], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (pipe(baton[i])) return 1;
        pthread_create(&threads[i], NULL, in_turns, (void *)(intptr_t)i);
    }
    if (write(baton[0][1], "b", 1) != 1) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d marks\n", next);
    return 0;
}
