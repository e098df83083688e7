// Procedures that a tool stands in for, of every kind of type, that are left by returns, jumps, exceptions and the end of
// their thread, in which signals arrive and processes begin; and they call each other, and themselves. Every line says
// what is right, with the tool's changes or without. Arguments: signals (they come all the time), deep N (N calls one in
// another), depths N (and out of all of them), waits (for two lines, first).
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define ONE __attribute__((noinline))
#define PROCEDURE extern "C" __attribute__((noinline, optnone))
#else
#define ONE __attribute__((noinline, noclone))
#define PROCEDURE extern "C" __attribute__((noinline, noclone, noipa))
#endif

struct mixed {
    double a;
    long b;
};
struct large {
    long v[5];
};

static jmp_buf here;
static volatile sig_atomic_t signals, alarms;
static int cleaned;

PROCEDURE double mix(int a, double x, float y, long b) { return a * x + y - (double)b; }
PROCEDURE mixed pair(double a, long b) { return {a * 2, b * 3}; }
PROCEDURE large wide(long a) { return {{a, a + 1, a + 2, a + 3, a + 4}}; }
PROCEDURE long many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}
PROCEDURE int sum(int n, ...)
{
    va_list list;
    va_start(list, n);
    double s = 0;
    for (int i = 0; i < n; i++) s += i & 1 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return (int)(s * 10);
}
PROCEDURE long factorial(long n)
{
    long r = n <= 1 ? 1 : factorial(n - 1);
    __asm__ volatile("" : "+r"(r)); // no loop
    return n * r;
}
PROCEDURE void jump(int value) { longjmp(here, value); }
PROCEDURE int thrower(int v)
{
    if (v % 3 == 0) throw std::runtime_error("three");
    return v;
}
PROCEDURE int between(int v)
{
    struct cleaner {
        ~cleaner() { cleaned++; }
    } c;
    return thrower(v) + 1;
}
PROCEDURE int compare(const void *a, const void *b)
{
    if (*(const int *)a == 1000 || *(const int *)b == 1000) throw 5;
    return *(const int *)a - *(const int *)b;
}
PROCEDURE void on_signal(int signo) { signals = signals + (signo != 0); }
PROCEDURE int raises(int signo) { return raise(signo), signals; }
PROCEDURE int forks() { return fork(); }
PROCEDURE void *ends(void *how)
{
    if (how) pthread_exit(how);
    return (void *)8;
}
PROCEDURE int traced()
{
    void *frames[40];
    return backtrace(frames, 40);
}
/* Callers of its file know that it leaves every register but one alone. */
static long modest(long n) __asm__("modest");
static ONE long modest(long n)
{
    return n + n;
}

/* One place of the code from which procedures of either kind are called: those that are stood in for, and others. */
PROCEDURE long through(long (*f)(long), long n) { return f(n) + 1; }
PROCEDURE long leaf(long n) { return n & 1; }
PROCEDURE long within(long n)
{
    long total = 0;
    for (long i = 0; i < n; i++) total += through(leaf, i);
    return total;
}

/* Each ends with a jump to the next one, which returns for all. */
PROCEDURE long last(long n) { return n * 3; }
PROCEDURE long passed(long n) { return last(n + 2); }
PROCEDURE long passes(long n) { return passed(n + 1); }

static void on_alarm(int) { alarms = alarms + 1; }

static void types()
{
    mixed m = pair(1.25, 7);
    large w = wide(10);
    printf("types: %g %g %ld %ld %ld %ld %d\n", mix(3, 1.5, 2.25f, 4), m.a, m.b, w.v[0], w.v[4],
           many(1, 2, 3, 4, 5, 6, 7, 8, 9), sum(4, 1, 2.5, 3, 4.5));
}

static void calls()
{
    long total = 0;
    double half = 0;
    for (long i = 0; i < 100; i++) {
        double kept = (double)i / 2;
        total += modest(i) + i;
        half += kept;
    }
    long nested = 0;
    for (long i = 0; i < 40; i++) nested += through(within, i);
    long passing = 0;
    for (long i = 0; i < 30; i++) passing += passes(i);
    printf("calls: %ld %ld %g %ld %ld\n", factorial(10), total, half, nested, passing);
}

static void leaves()
{
    volatile int jumps = 0, caught = 0;
    for (volatile int i = 1; i <= 3000; i = i + 1) {
        int value = setjmp(here);
        if (value == 0) jump(i);
        jumps = jumps + (value == i);
    }
    int back = 0;
    for (int i = 1; i <= 99; i++) try {
            back += between(i);
        } catch (std::exception &) {
            caught = caught + 1;
        }
    int numbers[] = {5, 3, 1000, 4, 1, 2};
    for (int i = 0; i < 2; i++) try {
            qsort(numbers, 6, sizeof *numbers, compare);
        } catch (int five) {
            caught = caught + five;
        }
    printf("leaves: %d %d %d %d\n", jumps, caught, back, cleaned);
}

static void *thread(void *)
{
    long total = 0;
    for (int i = 0; i < 300; i++) total += many(1, 2, 3, 4, 5, 6, 7, 8, i);
    return (void *)total;
}

static void processes()
{
    int status;
    signal(SIGUSR1, on_signal);
    int seen = raises(SIGUSR1) * 10 + raises(SIGUSR1);
    fflush(stdout);
    pid_t child = forks();
    if (!child) _exit((int)factorial(5));
    waitpid(child, &status, 0);
    pthread_t id[4];
    void *result[2];
    long total = 0;
    for (long how = 0; how < 2; how++) {
        pthread_create(id, nullptr, ends, (void *)how);
        pthread_join(id[0], &result[how]);
    }
    for (pthread_t &t : id) pthread_create(&t, nullptr, thread, nullptr);
    for (pthread_t t : id) {
        void *one;
        pthread_join(t, &one);
        total += (long)one;
    }
    printf("processes: %d %d %ld %ld %ld %d\n", seen, WEXITSTATUS(status), (long)result[0], (long)result[1], total,
           traced() > 2);
}

static enum { COMES_BACK, LEAPS, ENDS, THROWS } bottom;
PROCEDURE long deep(long n)
{
    if (!n && bottom == LEAPS) longjmp(here, 1);
    if (!n && bottom == ENDS) pthread_exit(nullptr);
    if (!n && bottom == THROWS) throw 1;
    long r = n ? deep(n - 1) : -1;
    __asm__ volatile("" : "+r"(r));
    return r + 1;
}

static void *goes_deep(void *n) { return (void *)deep((long)n); }

/* From the bottom in all ways. */
static void leave_deep(long n)
{
    pthread_t id;
    for (volatile int i = 0; i < 5; i = i + 1) {
        bottom = LEAPS;
        if (!setjmp(here)) deep(n);
        bottom = THROWS;
        try {
            deep(n);
        } catch (int) {
        }
        bottom = i < 4 ? ENDS : COMES_BACK;
        pthread_create(&id, nullptr, goes_deep, (void *)n);
        pthread_join(id, nullptr);
    }
    printf("deep: %ld\n", deep(n));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    bool alarmed = !strcmp(what, "signals");
    if (!strcmp(what, "waits")) getchar(), puts("waits"), fflush(stdout), getchar();
    signal(SIGALRM, on_alarm);
    if (alarmed) setitimer(ITIMER_REAL, &often, nullptr);
    if (!strcmp(what, "deep")) printf("deep: %ld\n", deep(atol(argv[2])));
    if (!strcmp(what, "depths")) leave_deep(atol(argv[2]));
    types();
    calls();
    leaves();
    processes();
    while (alarmed && alarms < 30) signals = signals + (factorial(20) < 0);
    setitimer(ITIMER_REAL, &never, nullptr);
    return alarmed && !alarms;
}
