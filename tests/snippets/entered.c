/* Parameters that are not where they were passed when a procedure returns: it has changed them all.
 *
 *   entered            a fixed number of calls: recursion, longjmp, tail calls, threads that come and go
 *   entered waits      waits in a procedure until a byte comes from standard input that is no dot, then calls it again,
 *                      so often as bytes come, and ends with them
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

typedef struct pair {
    long a;
    double b;
} pair;
typedef struct big {
    long v[5];
} big;

static jmp_buf back;
static volatile long sink;

__attribute__((noinline)) static long used(long v)
{
    __atomic_fetch_add(&sink, v, __ATOMIC_RELAXED);
    return v;
}

__attribute__((noinline)) long lost(int n, const char *text, double real, float narrow, pair p, big b, long g, short h,
                                    long on_stack)
{
    static long times;
    long sum = n + text[0] + (long)real + (long)narrow + p.a + (long)p.b + b.v[0] + g + h + on_stack;
    n = -1, text = "gone", real = -2, narrow = -3, p.a = -4, p.b = -5, g = -7, h = -8, on_stack = -9;
    for (int i = 0; i < 5; i++) b.v[i] = -1;
    used(n), used(text[0]), used((long)real + (long)narrow + p.a + (long)p.b + b.v[1] + g + h + on_stack);
    times++;
    return sum;
}

/* Compilers that know all its callers drop what it does not look at, and what it knows, and pass the others in other
 * registers; how it is called stays for those that do not. */
__attribute__((noinline)) static long moved(long unseen, long known, long kept) { return used(kept) + (known & 1); }

__attribute__((noinline)) long deep(long n, long weight)
{
    if (weight != 3 * n) return -1;
    long below = n ? deep(used(n) - 1, weight - 3) * 2 + 1 : 0;
    return used(0) + below;
}

__attribute__((noinline)) long leaps(long n, long depth)
{
    if (!depth && n & 1) longjmp(back, 1);
    long below = depth ? leaps(n, depth - 1) : n;
    return used(0) + below;
}

__attribute__((noinline)) long last(long n) { return used(n) + 1; }

__attribute__((noinline)) long tail(long n, long m)
{
    used(m);
    return last(n * 2);
}

__attribute__((noinline)) long waits(long n)
{
    char byte = 0;
    long got;
    do {
        got = read(0, &byte, 1);
        used(0);
    } while (got == 1 && byte == '.');
    return used(0) + (got == 1 ? n : -1);
}

static void *thread(void *arg)
{
    for (long i = 0; i < 2000; i++) {
        long n = (i + (long)arg) % 9;
        deep(n, 3 * n);
    }
    return NULL;
}

static void calls(void)
{
    for (int i = 0; i < 100; i++) {
        pair p = {i, i / 2.0};
        big b = {{i, 2 * i, 3 * i, 4 * i, 5 * i}};
        lost(i, &"text"[i % 4], i / 4.0, (float)i / 8, p, b, i * 3l, (short)-i, i * 7l);
        if (!setjmp(back)) leaps(i, i % 5);
        tail(i, i & 7);
        moved(i * 11l, 3, i);
    }
}

static void threads(void)
{
    pthread_t t[4];
    for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, thread, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        for (long n = 1; waits(n) >= 0; n++) printf("%ld\n", n), fflush(stdout);
        return 0;
    }
    calls();
    threads();
    printf("%ld\n", sink);
    return 0;
}
