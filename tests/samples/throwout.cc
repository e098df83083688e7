/* Exceptions that begin in a signal's handler and pass the frame of what it interrupted: thrown at a fault,
 * caught around it, with cleanups on the way; a thread that is cancelled in the middle of a computation, and one that
 * waits in a call whose number only the caller knows. */
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static int cleaned;
struct guard {
    ~guard() { cleaned++; }
};

static void on_fault(int signo) { throw signo; }

__attribute__((noinline)) static int reads(volatile int *from, int n)
{
    guard g;
    int sum = n;
    for (int i = 0; i < n; i++) sum += from[i] * i;
    return sum;
}

__attribute__((noinline)) static int divides(int a, volatile int *b)
{
    guard g;
    return a / *b + 1;
}

__attribute__((noinline)) static int attempt(int k)
{
    volatile int zero = 0, some[4] = {1, 2, 3, 4};
    int before = k * 3;
    try {
        if (k % 3 == 0) return reads(some, 4);
        if (k % 3 == 1) return reads((volatile int *)8, k) + before;
        return divides(k, &zero);
    } catch (int signo) {
        return 1000 * signo + before;
    }
}

static volatile unsigned long rounds;
static pthread_barrier_t ready;
static void *computes(void *)
{
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    pthread_barrier_wait(&ready);
    for (unsigned long x = 1;; x = x * 5 + 1) rounds += x & 1;
    return nullptr;
}

static long (*volatile call)(long, ...) = syscall; /* as declared it throws nothing */
static void *waits(void *)
{
    guard g;
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    pthread_barrier_wait(&ready);
    for (;;) call(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
    return nullptr;
}

static void cancel(void *(*what)(void *))
{
    pthread_t t;
    void *result;
    pthread_barrier_init(&ready, nullptr, 2);
    pthread_create(&t, nullptr, what, nullptr);
    pthread_barrier_wait(&ready);
    usleep(500);
    pthread_cancel(t);
    pthread_join(t, &result);
    if (result != PTHREAD_CANCELED) std::printf("not cancelled\n");
}

int main()
{
    struct sigaction a = {};
    a.sa_handler = on_fault;
    a.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &a, nullptr);
    sigaction(SIGFPE, &a, nullptr);
    long sum = 0;
    for (int k = 0; k < 300; k++) sum += attempt(k);
    std::printf("sum %ld, cleaned %d\n", sum, cleaned);
    for (int k = 0; k < 20; k++) cancel(computes);
    cleaned = 0;
    for (int k = 0; k < 20; k++) cancel(waits);
    std::printf("cancelled, cleaned %d\n", cleaned);
    return 0;
}
