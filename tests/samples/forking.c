/* Threads that are in the middle of something whenever another one forks; each child does the same once, and ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, CHILDREN = 150 };

static atomic_int ends;

__attribute__((noinline)) void target(void) { __asm__ volatile(""); }

static void *calls(void *arg)
{
    while (!ends) target();
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    int good = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, calls, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        int status = 0;
        if (fork() == 0) {
            target();
            _exit(3);
        }
        wait(&status);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 3;
    }
    ends = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d children\n", good);
    return 0;
}
