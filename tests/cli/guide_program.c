/* What the tools of guide.py look at: a procedure that ends with a jump to another one, one that is left by longjmp, a
 * repeated instruction, arguments on the stack, threads that have ended and some that still wait when the process ends.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TIMES = 100, THREADS = 4 };

static jmp_buf back;
static char bytes[1000];
static volatile long worked;
static pthread_barrier_t barrier;

__attribute__((noinline)) int last(int n) { return n + worked * 0 + 1; }
__attribute__((noinline)) int jumps(int n) { return last(n * 2); }

__attribute__((noinline)) void leaps(int n)
{
    worked++;
    if (n >= 0) longjmp(back, 1);
}

__attribute__((noinline)) void repeats(void *to, long n)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(7) : "memory");
}

__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    return a + b + c + d + e + f + g + h + worked * 0;
}

static void *work(void *arg)
{
    for (int i = 0; i < 3000; i++) worked++;
    pthread_barrier_wait(&barrier);
    while ((long)arg % 2) pause();
    return NULL;
}

int main(void)
{
    volatile int sum = 0;
    pthread_t thread[THREADS];
    for (volatile int i = 0; i < TIMES; i++) {
        sum += jumps(i);
        if (!setjmp(back)) leaps(i);
    }
    repeats(bytes, sizeof bytes);
    repeats(bytes, 0);
    sum += (int)many(1, 2, 3, 4, 5, 6, 7, 8);
    char *volatile none = NULL; /* the compiler would call malloc */
    char *grown = realloc(none, 100);
    grown = grown ? realloc(grown, 5000) : NULL;
    if (!grown) puts("out of memory");
    free(grown);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, work, (void *)i);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i += 2) pthread_join(thread[i], NULL);
    printf("%d\n", sum);
    return 0;
}
