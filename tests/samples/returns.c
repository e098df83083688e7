/* Returns that are more than the end of a procedure: ones that drop arguments, ones that are jumps, ones whose stack
 * cannot be written to; with an argument also what the words below the stack pointer hold behind them, and what another
 * thread sees of them meanwhile. x86-64. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { PAGE = 4096, STEPS = 5 };

uint64_t dropped(void), jumping(void), behind(void), below(void), registers(void), threaded(const uint64_t *steps);
void called_often(uint64_t times, uint64_t *end, _Atomic int *begun);
extern char step[], last_step[];

__asm__(".text\n"
        "drops_two: ret $16\n"
        "dropped: sub $136, %rsp\n push $0x1234\n push $0x5678\n call drops_two\n"
        "  mov -8(%rsp), %rax\n shl $32, %rax\n add -16(%rsp), %rax\n add $136, %rsp\n ret\n"
        "jumping: lea 3f(%rip), %rax\n call 1f\n2: pause\n jmp 2b\n"
        "1: mov %rax, (%rsp)\n ret\n"
        "3: lea 4f(%rip), %rax\n push %rax\n ret\n"
        "4: mov $7, %eax\n ret\n"
        "nothing: ret\n"
        "behind: call nothing\n"
        "1: mov -8(%rsp), %rax\n lea 1b(%rip), %rcx\n sub %rcx, %rax\n ret\n"
        /* how many of the words below are others behind a call */
        "below: mov $64, %ecx\n"
        "1: neg %rcx\n mov %rcx, -8(%rsp,%rcx,8)\n neg %rcx\n dec %rcx\n jnz 1b\n"
        "  call nothing\n xor %eax, %eax\n mov $-64, %rcx\n"
        "3: cmp %rcx, -8(%rsp,%rcx,8)\n je 4f\n inc %eax\n"
        "4: inc %rcx\n jnz 3b\n ret\n"
        /* all of them, those that calls clobber included: how many are others */
        "1: not %rax\n ret\n"
        "registers: push %rbx\n mov $1, %ebx\n mov $-2, %rax\n mov $3, %ecx\n mov $4, %edx\n mov $5, %r10d\n mov $6, "
        "%r11d\n"
        "  call 1b\n"
        "  sub $1, %rax\n sub $3, %rcx\n sub $4, %rdx\n sub $5, %r10\n sub $6, %r11\n"
        "  or %rcx, %rax\n or %rdx, %rax\n or %r10, %rax\n or %r11, %rax\n pop %rbx\n ret\n"
        /* `end` becomes the stack pointer; the word below it is only ever the same return address */
        "called_often: mov %rsp, %rcx\n mov %rsi, %rsp\n lea 2f(%rip), %rax\n mov %rax, -8(%rsp)\n movl $1, (%rdx)\n"
        "1: call nothing\n"
        "2: dec %rdi\n jnz 1b\n mov %rcx, %rsp\n ret\n"
        /* the stack pointer goes through a table, three times */
        "threaded: mov %rsp, %rdx\n xor %eax, %eax\n mov $3, %ecx\n"
        "1: mov %rdi, %rsp\n ret\n"
        "step: inc %rax\n ret\n"
        "last_step: dec %ecx\n jnz 1b\n mov %rdx, %rsp\n ret\n");

enum { OFTEN = 200000, SIGNALS = 40, DEPTH = 15, FIBONACCI = 610 };
static uint64_t words[64];
static _Atomic int begun, over;

static void *watch(void *seen)
{
    const _Atomic uint64_t *word = (const _Atomic uint64_t *)&words[63];
    while (!begun) continue;
    uint64_t first = *word;
    do *(long *)seen += *word != first;
    while (!over);
    return NULL;
}

static long others_seen(void)
{
    pthread_t thread;
    long seen = 0;
    if (pthread_create(&thread, NULL, watch, &seen)) return -1;
    called_often(OFTEN, &words[64], &begun);
    over = 1;
    pthread_join(thread, NULL);
    return seen;
}

/* --- signals while there is nothing but calls and returns --- */

static volatile sig_atomic_t signals;
static void count(int signo) { signals += signo == SIGALRM; }

static __attribute__((noinline)) unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static int interrupted(void)
{
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    int good = 1;
    signal(SIGALRM, count);
    setitimer(ITIMER_REAL, &often, NULL);
    while (signals < SIGNALS) good &= fibonacci(DEPTH) == FIBONACCI;
    setitimer(ITIMER_REAL, &never, NULL);
    return good;
}

int main(int argc, char **argv)
{
    uint64_t *steps = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)argv;
    if (steps == MAP_FAILED) return 1;
    steps += PAGE / sizeof *steps; /* a program that has handlers needs room below */
    for (int i = 0; i < STEPS; i++) steps[i] = (uint64_t)(uintptr_t)step;
    steps[STEPS] = (uint64_t)(uintptr_t)last_step;
    printf("dropped %#lx, jumping %lu\n", (unsigned long)dropped(), (unsigned long)jumping());
    mprotect(steps, PAGE, PROT_READ);
    printf("threaded %lu, registers %#lx\n", (unsigned long)threaded(steps), (unsigned long)registers());
    if (argc == 1) return 0;
    mprotect(steps, PAGE, PROT_READ | PROT_WRITE);
    printf("behind %ld, below %lu, seen %ld\n", (long)behind(), (unsigned long)below(), others_seen());
    printf("threaded %lu\n", (unsigned long)threaded(steps));
    printf("kept: %d\n", steps[0] == (uint64_t)(uintptr_t)step && steps[STEPS] == (uint64_t)(uintptr_t)last_step);
    printf("interrupted: %d\n", interrupted());
    return 0;
}
