/* Several threads come to one place all the time, and to one that nothing can be put into: its code has a single byte.
 * Another one sleeps again and again where there is room for a short jump alone behind the call, as in the C library's
 * procedure for all calls that block; a springboard's is behind the next procedure. It has so much memory (in MB) that
 * its end takes a moment. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void narrow(void);
void behind(void);
long waits(long number, const void *a, const void *b), next(long);
extern const char waits_end[]; /* handlers of signals look whether they have come before this */
__asm__(".text\n.globl narrow, behind\n"
        ".type narrow, @function\nnarrow: ret\n.size narrow, 1\n"
        ".type behind, @function\nbehind: nop; ret\n.size behind, 2\n"
        ".p2align 6\n.globl waits, waits_end, next\n.type waits, @function\n"
        "waits: mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi; syscall\nwaits_end: ret; nop\n.size waits, . - waits\n"
        ".type next, @function\nnext: lea 1(%rdi), %rax; ret\n.size next, . - next\n.p2align 4\n");

__attribute__((noinline)) int place(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static void *comes_there(void *arg)
{
    for (;;) {
        place(100);
        narrow();
        behind();
    }
    return arg;
}

static void *sleeps(void *arg)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    while (next(waits(SYS_nanosleep, &moment, NULL)) && arg != waits_end) {}
    return arg;
}

int main(int argc, char **argv)
{
    enum { THREADS = 3 };
    pthread_t one;
    size_t size = (argc > 1 ? (size_t)atoi(argv[1]) : 0) << 20;
    char *memory = malloc(size + 1);
    if (!memory) return 1;
    memset(memory, 1, size + 1);
    for (int i = 0; i < THREADS && argc == 1; i++)
        if (pthread_create(&one, NULL, i == 2 ? sleeps : comes_there, NULL)) return 1;
    puts("there");
    fflush(stdout);
    pause();
    return memory[size];
}
