/* Variables, procedures and threads to look at and call from outside: `once` in mutators.py. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
struct inner {
    short a;
    unsigned char b;
    double d;
};
struct config {
    int limit;
    const char *name;
    float ratio;
    struct inner in[3];
    unsigned bits : 5;
    int neg : 4;
} config = {42, "hello", 0.5f, {{1, 2, 3.5}, {-4, 5, 6.25}, {7, 8, 9}}, 17, -3};
enum color { RED, GREEN = 5 } color = GREEN;
struct pair {
    long a, b;
} pair = {3, 4};
struct mixed {
    double d;
    int i;
} mixed = {2.5, 9};
struct large {
    long v[5];
} large = {{1, 2, 3, 4, 5}};
__int128 huge = ((__int128)7 << 64) + 5;
struct pair swapped(struct pair p) { return (struct pair){p.b, p.a}; }
double of_mixed(struct mixed m, long by) { return m.d * m.i + (double)by; }
struct mixed halved(struct mixed m) { return (struct mixed){m.d / 2, m.i / 2}; }
struct large moved(struct large l, long by)
{
    for (int i = 0; i < 5; i++) l.v[i] += by;
    return l;
}
__int128 doubled(__int128 v) { return v * 2; }
long counter = 1000;
int array[10] = {3, 1, 4, 1, 5, 9, 2, 6};
double mix(int a, double b, float c, long d, double e) { return a * b + c * d - e; }
float half(float x) { return x / 2; }
long six(long a, long b, long c, long d, long e, long f)
{
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}
/* Not all find a register. */
long eight(long a, long b, long c, long d, long e, long f, long g, long h) { return six(a, b, c, d, e, f) - g * h; }
double twelve(int a, double b, float c, double d, short e, double f, double g, double h, float i, double j, double k,
              double l)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l;
}
const char *greet(const char *who)
{
    static char buf[100];
    snprintf(buf, 100, "hi %s %ld", who, counter);
    return buf;
}
static void *waits(void *p)
{
    char c;
    while (read(*(int *)p, &c, 1) == 1) {}
    return NULL;
}
volatile long spins;
__attribute__((noinline)) long step(long n)
{
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}
static void *works(void *p)
{
    while (!*(volatile int *)p) spins = step(spins) % 1000;
    return NULL;
}
volatile int cut_short;
static void *sleeps(void *p)
{
    const struct timespec longer = {.tv_sec = 1000};
    while (!p) cut_short += nanosleep(&longer, NULL) != 0;
    return NULL;
}
/* In a signal's handler. */
static void asked(int signo) { sleeps((void *)(long)(signo == SIGUSR1 ? 0 : signo)); }
static void *interrupted(void *p)
{
    signal(SIGUSR1, asked);
    raise(SIGUSR1);
    return p;
}
/* Any call: its number is on the stack, as where one procedure of the C library's makes them all. */
long makes(long a, long b, long c, long d, long e, long f, long nr);
__asm__(".type makes, @function\n"
        "makes: .cfi_startproc\n"
        "       mov 8(%rsp), %rax\n"
        "       mov %rcx, %r10\n"
        "       syscall\n"
        "       ret\n"
        "       .cfi_endproc\n"
        "       .size makes, . - makes\n");
static void *polls(void *p)
{
    while (!p) cut_short += makes(0, 0, 1000000, 0, 0, 0, SYS_poll) != 0;
    return NULL;
}
int main(void)
{
    int p[2], stop = 0;
    char line[100];
    pthread_t t[4];
    if (pipe(p)) return 1;
    pthread_create(&t[0], NULL, waits, &p[0]);
    pthread_create(&t[1], NULL, works, &stop);
    pthread_create(&t[2], NULL, interrupted, NULL);
    pthread_create(&t[3], NULL, polls, NULL);
    puts("ready");
    fflush(stdout);
    while (fgets(line, 100, stdin)) {
        printf("%ld %d %.3f %d\n", counter, config.limit, config.in[1].d, cut_short);
        fflush(stdout);
    }
    stop = 1;
    close(p[1]);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return config.in[2].b;
}
