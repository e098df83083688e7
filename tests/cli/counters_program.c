/* Work whose counts are known to be the same each time: in threads, across fork and exec, with signals that arrive in
 * the middle of it, and faults. What is named work_... is counted; at mark() the counters are looked at. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
static volatile unsigned kept;
static volatile sig_atomic_t arrived;
static sigjmp_buf before;

/* Nothing is counted here. `number`: which look; below 100 the counters are made anew, too. */
APART void mark(unsigned number)
{
    kept += number;
    __asm__ volatile("" ::: "memory");
}

APART unsigned work_branches(unsigned n)
{
    unsigned x = n, sum = 0;
    for (unsigned i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        if (x & 0x10000000) sum += 3;
        if (x & 0x20000000) sum ^= x;
        else sum--;
        if (x & 0x40000000) continue;
        if ((x >> 8) % 4099 == 3) break;
        if (x & 0x80000000) sum *= 5;
    }
    return sum;
}

APART unsigned work_looked_at(unsigned n)
{
    unsigned x = n, sum = 0;
    for (unsigned i = 0; i < n; i++) {
        x = x * 22695477 + 1;
        if (x & 0x1000000) sum += i;
        if (x & 0x2000000) sum ^= x;
        if (x & 0x4000000) sum--;
        if (x & 0x8000000) continue;
        sum *= 3;
    }
    return sum;
}

/* The third of its blocks may fault. */
APART unsigned work_faults(unsigned n, const volatile unsigned *p)
{
    unsigned sum = n;
    if (n & 1) sum += 5;
    if (n & 2) sum ^= 9;
    sum += *p;
    if (n & 4) sum *= 7;
    if (n & 8) sum--;
    return sum;
}

static void on_fault(int signo)
{
    (void)signo;
    mark(200);
    siglongjmp(before, 1);
}

static void on_alarm(int signo)
{
    (void)signo;
    arrived++;
}

static unsigned all(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) sum += work_branches(200 + i);
    return sum + work_looked_at(n);
}

static void *thread(void *arg)
{
    unsigned *n = arg;
    *n = all(*n);
    return NULL;
}

static void threads(void)
{
    pthread_t t[3];
    unsigned n[3] = {100, 200, 300};
    for (int i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, thread, &n[i])) exit(9);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    printf("threads %u %u %u\n", n[0], n[1], n[2]);
}

static void faults(void)
{
    static const volatile unsigned there = 4;
    static volatile unsigned k, sum;
    struct sigaction act = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &act, NULL);
    for (k = 0; k < 64; k++)
        if (!sigsetjmp(before, 1)) sum += work_faults(k, k % 5 ? &there : NULL);
    printf("faults %u\n", sum);
}

static void signals(void)
{
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    unsigned sum = 0;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 4000; i++) sum += work_branches(1000);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("signals %u\n", sum);
}

static void forks(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        mark(100);
        printf("child %u\n", all(70));
        mark(100);
        fflush(stdout);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    mark(100);
    printf("parent %u\n", all(30));
    mark(100);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "second")) {
        mark(100);
        printf("second %u\n", all(20));
        mark(100);
        return 3;
    }
    printf("first %u\n", all(40));
    mark(100);
    for (unsigned i = 1; i < 4; i++) {
        mark(i);
        printf("again %u\n", all(10 * i));
        mark(100);
    }
    faults();
    signals();
    mark(100);
    threads();
    mark(100);
    forks();
    fflush(stdout);
    if (getenv("INLAY_OUT")) setenv("INLAY_OUT", getenv("INLAY_OUT_SECOND"), 1);
    execl("/proc/self/exe", argv[0], "second", NULL);
    return 9;
}
