/* Threads created and joined, one after the other.
 * operations: 2000 (threads) */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *body(void *arg)
{
    *(long *)arg += 1;
    return arg;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    long count = 0;
    for (int i = 0; i < rounds * 2000; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, body, &count) != 0) return 1;
        pthread_join(t, NULL);
    }
    printf("%ld\n", count);
    return 0;
}
