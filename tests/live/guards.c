/* Answers lines from a stack that has a guard of the kernel's within its mapping, as C libraries make them where the
 * kernel can (Linux 6.13), and beside much memory that is never touched, as sanitizers have it for their shadows. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum { PAGE = 4096, STACK = 1 << 20, GUARD = 16 * PAGE };

__attribute__((noinline)) static int count(const char *line) { return (int)strcspn(line, "\n"); }

__attribute__((noinline)) static int answer(int depth)
{
    char line[80];
    if (depth) return answer(depth - 1) + 1;
    while (fgets(line, sizeof line, stdin)) {
        printf("%d\n", count(line));
        fflush(stdout);
    }
    return 0;
}

static sem_t made; /* the thread: who makes one blocks signals meanwhile */

static void *answers(void *arg)
{
    sem_wait(&made);
    printf("depth %d\n", answer(20));
    return arg;
}

int main(void)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, how, -1, 0);
    pthread_attr_t attr;
    pthread_t t;
    if (stack == MAP_FAILED || mmap(NULL, 1ul << 44, PROT_READ | PROT_WRITE, how, -1, 0) == MAP_FAILED) return 1;
    memset(stack, 1, STACK);
    madvise(stack + GUARD, GUARD, MADV_GUARD_INSTALL);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack + 2 * GUARD, STACK - 2 * GUARD);
    sem_init(&made, 0, 0);
    if (pthread_create(&t, &attr, answers, NULL) || sem_post(&made) || pthread_join(t, NULL)) return 1;
    return 0;
}
