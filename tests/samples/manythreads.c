/* A thousand threads at once, each with a megabyte of stack, in four gigabytes of address space; and as many again. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { COUNT = 1000, STACK = 1 << 20 };
static pthread_barrier_t all;

static void *meet(void *arg)
{
    pthread_barrier_wait(&all);
    return arg;
}

int main(void)
{
    static pthread_t threads[COUNT];
    struct rlimit r = {4000000ul << 10, 4000000ul << 10};
    pthread_attr_t a;
    setrlimit(RLIMIT_AS, &r);
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, STACK);
    pthread_barrier_init(&all, NULL, COUNT + 1);
    for (int turn = 0; turn < 2; turn++) {
        long sum = 0;
        for (long i = 0; i < COUNT; i++) {
            int error = pthread_create(&threads[i], &a, meet, (void *)i);
            if (!error) continue;
            printf("thread %ld: %s\n", i, strerror(error));
            return 1;
        }
        pthread_barrier_wait(&all);
        for (int i = 0; i < COUNT; i++) {
            void *answer;
            pthread_join(threads[i], &answer);
            sum += (long)answer;
        }
        printf("sum %ld\n", sum);
    }
    return 0;
}
