/* Signals with handlers, with one that is there once, with none, and faults in the midst of code; tells what came. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

static volatile int came[2];

static void handler(int signo) { came[signo == SIGUSR2]++; }

/* Instructions before and behind the one that faults. */
__attribute__((noinline)) static int counted(const volatile char *at, int x)
{
    x = x * 3 + 1;
    x += *at;
    return x ^ 5;
}

int main(void)
{
    struct sigaction a = {.sa_handler = handler}, once = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};
    int sum = 0;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &once, NULL);
    for (int i = 0; i < 10; i++) raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGUSR2);
    raise(SIGTERM);
    for (int i = 0; i < 5; i++) {
        char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sum += counted(page, i);
    }
    printf("%d %d, %d\n", came[0], came[1], sum);
    return 3;
}
