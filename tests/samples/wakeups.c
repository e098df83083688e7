/* A signal that comes shortly before a call sleeps. Its handler writes to the pipe that the call waits for, so natively
 * no order of the two is ever fatal: the handler runs at once, and then there is something to read. Where the handler
 * would only run at some later moment the call must not go to sleep before. Tried with a timer that goes off in
 * the middle of a long instruction right in front of the call, with delays that sweep over the call's own
 * way, and with another thread that sends signals as fast as they are taken. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { LONG = 24 << 20, SWEEPS = 3000, SENT = 3000 };

static int ends[2];
static volatile unsigned handled;

static void on_signal(int sig)
{
    (void)sig;
    int kept = errno;
    handled++;
    if (write(ends[1], "x", 1) != 1) abort();
    errno = kept;
}

static void go_off_after(int microseconds)
{
    struct itimerval t = {.it_value = {0, microseconds}};
    setitimer(ITIMER_REAL, &t, NULL);
}

/* A string instruction over much memory, and the call behind it with nothing between. */
static long read_after_work(void *memory, size_t size, void *to)
{
    long answer = SYS_read;
    void *at = memory;
    __asm__ volatile("xor %%eax, %%eax\n rep stosb\n mov %[nr], %%eax\n mov %[fd], %%edi\n mov %[to], %%rsi\n"
                     "mov $1, %%edx\n syscall\n"
                     : "=&a"(answer), "+D"(at), "+c"(size)
                     : [nr] "i"(SYS_read), [fd] "r"(ends[0]), [to] "r"(to)
                     : "rsi", "rdx", "r11", "memory", "cc");
    return answer;
}

static void after_work(void)
{
    char *memory = malloc(LONG), c;
    unsigned done = 0;
    for (int i = 1; i <= 20; i++) {
        go_off_after(i * 60);
        long n = read_after_work(memory, LONG, &c);
        while (n == -EINTR || n == -ERANGE) n = read(ends[0], &c, 1);
        done += n == 1;
    }
    free(memory);
    printf("after work: %u\n", done);
}

/* By calls that Inlay passes on unseen (read), that it looks at (ppoll), and that sleep without limit. */
static bool wait_for_byte(int way)
{
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    char c;
    if (way == 1)
        while (ppoll(&p, 1, NULL, NULL) < 0 && errno == EINTR) {}
    if (way == 2)
        while (poll(&p, 1, -1) < 0 && errno == EINTR) {}
    ssize_t n;
    while ((n = read(ends[0], &c, 1)) < 0 && errno == EINTR) {}
    return n == 1;
}

static void swept(void)
{
    unsigned done = 0;
    for (int i = 0; i < SWEEPS; i++) {
        go_off_after(1 + i % 40);
        done += wait_for_byte(i % 3);
    }
    printf("swept: %u\n", done);
}

static pthread_t sleeper;
static volatile unsigned taken;

static void *send(void *unused)
{
    for (unsigned i = 0; i < SENT; i++) {
        for (volatile unsigned k = 0; k < i * 7 % 400; k++) {}
        pthread_kill(sleeper, SIGUSR1);
        while (taken <= i) sched_yield();
    }
    return unused;
}

/* The thread is on its way into the call when the signal comes. */
static void sent(void)
{
    pthread_t sender;
    sleeper = pthread_self();
    unsigned done = 0;
    pthread_create(&sender, NULL, send, NULL);
    for (unsigned i = 0; i < SENT; i++) {
        done += wait_for_byte((int)(i % 3));
        taken = i + 1;
    }
    pthread_join(sender, NULL);
    printf("sent: %u\n", done);
}

int main(void)
{
    if (pipe(ends)) return 1;
    for (int flags = 0; flags <= (int)SA_RESTART; flags += (int)SA_RESTART) {
        struct sigaction a = {.sa_handler = on_signal, .sa_flags = flags};
        sigaction(SIGALRM, &a, NULL);
        sigaction(SIGUSR1, &a, NULL);
        handled = taken = 0;
        after_work();
        swept();
        sent();
        printf("handled: %u\n", handled);
    }
    return 0;
}
