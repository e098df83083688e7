/* What a tool changes by sending the program on with registers of its making: a branch by its flags, floating point by
 * its vector, a call by the program counter; and a procedure that a tool answers for. With an argument signals come all
 * the time. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

enum { ROUNDS = 2000 };

static volatile sig_atomic_t alarms;
static void on_alarm(int signo) { alarms += signo != 0; }

__attribute__((noinline)) long branch(long n)
{
    __asm__ volatile("cmp $7, %0\n\tjne 1f\n\tmov $1000, %0\n1:" : "+r"(n) : : "cc");
    return n;
}

__attribute__((noinline)) double half(double x)
{
    __asm__ volatile("" : "+x"(x));
    return x / 2;
}

__attribute__((noinline)) void skipped(long *n) { *n += 1000000; }

__attribute__((noinline)) long calls(long n)
{
    skipped(&n);
    return n + 1;
}

__attribute__((noinline)) long answered(long n)
{
    __asm__ volatile("" : "+r"(n));
    return n * 3;
}

/* A tool goes on in its middle. */
__attribute__((noinline)) long straight(long n)
{
    __asm__ volatile("add $1, %0\n\tadd $2, %0\n\tadd $4, %0\n\tadd $8, %0\n\tadd $16, %0" : "+r"(n) : : "cc");
    return n;
}

int main(int argc, char **argv)
{
    struct itimerval often = {{0, 300}, {0, 300}};
    long sum = 0, called = 0, given = 0;
    double halves = 0;
    (void)argv;
    signal(SIGALRM, on_alarm);
    if (argc > 1) setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < ROUNDS; i++) {
        sum += branch(i % 10);
        halves += half((double)i);
        called += calls(i);
        given += answered(i) + straight(i);
    }
    printf("%ld %.1f %ld %ld\n", sum, halves, called, given);
    return argc > 1 && !alarms;
}
