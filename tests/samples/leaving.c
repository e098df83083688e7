/* Procedures that a signal's handler leaves in their middle, by a jump or by going on at another place: counts of
 * what was executed must come out right all the same. Faults at the beginning, in the middle and at the end of
 * blocks, in loops and behind branches. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static sigjmp_buf out;
static void jumps_out(int signo) { siglongjmp(out, signo); }

__attribute__((noinline)) long walks(int k, volatile int *p)
{
    long sum = k;
    if (k & 1) sum += 5;
    else sum *= 3;
    for (int i = 0; i < (k & 7); i++) {
        if (i == (k >> 3 & 7)) sum += *p;
        else sum ^= i;
        if (sum & 4) sum += 7;
    }
    if (sum % 3 == 0) sum++;
    return sum;
}

__attribute__((noinline)) long writes(int k, volatile long *p, long *q)
{
    long a = k * 5 + 1, b = k ^ 77;
    q[0] += a;
    q[1] ^= b;
    if (k % 7 < 4) {
        a += q[1] & 15;
        *p = a;
        q[2] += a * b;
    } else {
        q[2] -= b;
    }
    do {
        a = a * 3 + q[a & 1];
        if (a & 8) *p += 1;
        else b += a;
    } while (++k % 5);
    return a + b + q[2];
}

/* Goes on behind the load, or at the other end. */
extern char steps_load[], steps_behind[], steps_other[];
long steps(long n, long *p);
__asm__(".text\n.globl steps\n.type steps, @function\nsteps:\n"
        "xor %eax, %eax\n"
        "1: test $1, %dil\n jz 2f\n"
        "add $3, %rax\n"
        "steps_load: mov (%rsi), %rcx\n"
        "steps_behind: lea 1(%rax,%rcx), %rax\n"
        "nop\n nop\n"
        "2: dec %rdi\n jnz 1b\n"
        "ret\n"
        "steps_other: add $1000, %rax\n"
        "nop\n nop\n"
        "jmp 2b\n"
        ".size steps, .-steps\n");

static void goes_on(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signo, (void)info;
    g[REG_RCX] = 5;
    g[REG_RIP] = (greg_t)(g[REG_RDI] & 2 ? steps_behind : steps_other);
}

int main(void)
{
    volatile int good = 1, faults = 0;
    volatile long total = 0, place = 0;
    long some[3] = {1, 2, 3};
    signal(SIGSEGV, jumps_out);
    for (volatile int k = 0; k < 400; k++) {
        if (sigsetjmp(out, 1)) {
            faults++;
            continue;
        }
        total += walks(k, k % 5 == 0 ? (volatile int *)16 : &good);
        total += writes(k, k % 4 == 0 ? (volatile long *)16 : &place, some);
    }
    struct sigaction a = {.sa_sigaction = goes_on, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    for (int k = 1; k < 30; k++) total += steps(k, k % 3 ? some : (long *)16);
    printf("%ld, %d faults\n", total, faults);
    return 0;
}
