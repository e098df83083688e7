// callees signals|often|threads|leaps|throws: procedures that snippets call, while signals come, in several threads, out
// of which is jumped or thrown. What it writes is the same whether or not, but for `throws`.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/time.h>

static volatile long ticks;
static thread_local long own;
static jmp_buf back;
static bool leaping;

static void tick(int) { ticks = ticks + 1; }

// What snippets call.
extern "C" __attribute__((noinline)) long work(long n, double by)
{
    double sum = 0;
    for (volatile long i = 0; i < n; i = i + 1) sum += (double)i * by;
    own++;
    return (long)sum;
}

extern "C" __attribute__((noinline)) int leap(int n)
{
    if (leaping && n % 3 == 0) longjmp(back, n + 1);
    return n;
}

extern "C" __attribute__((noinline)) void thrower(int n)
{
    if (n == 5) throw n;
}

// Where they are put in.
extern "C" __attribute__((noinline)) long poked(long n)
{
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void *poke(void *)
{
    long sum = 0;
    for (long i = 0; i < 300; i++) sum += poked(i);
    return (void *)sum;
}

static long under_signals(int every, long least)
{
    struct itimerval often = {{0, every}, {0, every}}, never = {};
    long sum = 0;
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &often, nullptr);
    for (long i = 0; i < 2000 || ticks < 20; i++) sum += i < 2000 ? poked(i) : work(100, 1) * 0;
    for (long i = 0; ticks < least; i++) poked(i);
    setitimer(ITIMER_REAL, &never, nullptr);
    return sum;
}

static long in_threads()
{
    pthread_t threads[4];
    long sum = 0;
    for (pthread_t &t : threads) pthread_create(&t, nullptr, poke, nullptr);
    for (pthread_t &t : threads) {
        void *answer;
        pthread_join(t, &answer);
        sum += (long)answer;
    }
    return sum;
}

static long with_leaps()
{
    static volatile long sum, i;
    leaping = true;
    for (i = 0; i < 3000; i = i + 1) {
        if (setjmp(back) == 0) poked(i);
        else leap(1);
        sum += i;
    }
    return sum;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    long sum = 0;
    if (!strcmp(how, "signals")) sum = under_signals(300, 0);
    if (!strcmp(how, "often")) sum = under_signals(100, 5000);
    if (!strcmp(how, "threads")) sum = in_threads();
    if (!strcmp(how, "leaps")) sum = with_leaps();
    try {
        if (!strcmp(how, "throws"))
            for (int i = 0; i < 9; i++) sum += poked(i);
    } catch (int n) {
        printf("caught %d\n", n);
    }
    printf("%ld\n", sum);
    return 0;
}
