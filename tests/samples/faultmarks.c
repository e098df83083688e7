/* Stores to `marks` one behind the other, in stretches of code that a fault interrupts: its handler stores the next
 * two, and goes on behind the access or leaves by siglongjmp; now and then a branch leaves the stretch before. Who
 * traces memory sees each once, in this order. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { EACH = 8, ROUNDS = 3000 };
volatile unsigned char marks[EACH * ROUNDS];
static volatile unsigned char *volatile at;
static volatile int round_now;
static sigjmp_buf way_out;
extern char behind_fault[];

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    at[2] = 1, at[3] = 1;
    if (round_now % 3 == 2) {
        at[4] = 1, at[5] = 1;
        siglongjmp(way_out, 1);
    }
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)behind_fault;
}

static __attribute__((noinline)) void stretch(volatile unsigned char *m, int round, long nowhere)
{
    m[0] = 1, m[1] = 1;
    if (round % 7 == 6) {
        m[2] = 1, m[3] = 1, m[4] = 1, m[5] = 1, m[6] = 1, m[7] = 1;
        return;
    }
    __asm__ volatile("mov (%0), %%rax\n.globl behind_fault\nbehind_fault:" : : "r"(nowhere) : "rax", "memory");
    m[4] = 1, m[5] = 1, m[6] = 1, m[7] = 1;
}

int main(void)
{
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &act, NULL);
    for (round_now = 0; round_now < ROUNDS; round_now++) {
        at = marks + EACH * round_now;
        if (!sigsetjmp(way_out, 0)) stretch(at, round_now, 16);
        else at[6] = 1, at[7] = 1;
    }
    long sum = 0;
    for (unsigned i = 0; i < sizeof marks; i++) sum += marks[i];
    printf("%ld marks of %d\n", sum, (int)sizeof marks);
    return 0;
}
