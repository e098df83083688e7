/* Signals, synchronous and asynchronous. A handler sees the original registers and may change them;
 * timers interrupt loops and system calls; alternate and nested stacks; masks; a fault inside a
 * handler; read() restarted with SA_RESTART and failing with EINTR without. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, nested, depth;
static int wrong;

static void on_handler(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
    struct sigaction sa = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&sa.sa_mask);
    sigaction(sig, &sa, NULL);
}

/* The faulting load, between two labels, with known values in every register that is free. */
extern char fault_at[], fault_resume[];
__attribute__((noinline)) static uint64_t load_with_known_registers(volatile void *where)
{
    uint64_t result;
    __asm__ volatile("mov $0x1111, %%r8\n mov $0x2222, %%r9\n mov $0x3333, %%r10\n"
                     "mov $0x4444, %%r11\n mov $0x5555, %%r12\n mov $0x6666, %%r13\n"
                     "stc\n"
                     ".globl fault_at\nfault_at:\n mov (%1), %%rax\n"
                     ".globl fault_resume\nfault_resume:\n"
                     "sbb $0, %%rax\n" /* the carry must have survived */
                     "add %%r12, %%rax\n"
                     : "=&a"(result)
                     : "r"(where)
                     : "r8", "r9", "r10", "r11", "r12", "r13", "cc", "memory");
    return result;
}

static void on_segv(int sig, siginfo_t *si, void *context)
{
    ucontext_t *uc = context;
    greg_t *r = uc->uc_mcontext.gregs;
    if (sig != SIGSEGV || (uintptr_t)si->si_addr != 0x1000) wrong |= 1;
    if (r[REG_RIP] != (greg_t)fault_at) wrong |= 2;
    if (r[REG_R8] != 0x1111 || r[REG_R9] != 0x2222 || r[REG_R10] != 0x3333 || r[REG_R11] != 0x4444 ||
        r[REG_R12] != 0x5555 || r[REG_R13] != 0x6666)
        wrong |= 4;
    if (!(r[REG_EFL] & 1)) wrong |= 8;
    r[REG_RAX] = 1000;
    r[REG_R12] = 7;
    r[REG_RIP] = (greg_t)fault_resume;
}

static void fix_and_resume(void)
{
    on_handler(SIGSEGV, on_segv, 0);
    uint64_t v = 0;
    for (int i = 0; i < 100; i++) v += load_with_known_registers((void *)0x1000);
    printf("segv %llu wrong %d\n", (unsigned long long)v, wrong);
}

static void on_tick(int sig, siginfo_t *si, void *context)
{
    (void)sig, (void)si, (void)context;
    ticks++;
}

static void storm(void)
{
    on_handler(SIGALRM, on_tick, SA_RESTART);
    struct itimerval it = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &it, NULL);
    uint64_t sum = 0, rounds = 0;
    while (ticks < 200 || rounds < 200000) {
        for (uint64_t i = 0; i < 50; i++) sum += i * rounds;
        __asm__ volatile("" : "+r"(sum)); /* so that the sums are done */
        rounds++;
    }
    memset(&it, 0, sizeof it);
    setitimer(ITIMER_REAL, &it, NULL);
    printf("storm over\n");
}

static void on_nested(int sig, siginfo_t *si, void *context)
{
    (void)sig, (void)si, (void)context;
    nested++;
    if (++depth < 5) raise(SIGUSR1);
    depth--;
}

static stack_t alternate;
static void on_alternate(int sig, siginfo_t *si, void *context)
{
    (void)sig, (void)si, (void)context;
    char here;
    char *base = alternate.ss_sp;
    if (&here < base || &here >= base + alternate.ss_size) wrong |= 16;
}

static void stacks(void)
{
    on_handler(SIGUSR1, on_nested, SA_NODEFER);
    raise(SIGUSR1);
    printf("nested %d\n", (int)nested);
    alternate.ss_size = 65536;
    alternate.ss_sp = malloc(alternate.ss_size);
    sigaltstack(&alternate, NULL);
    on_handler(SIGUSR2, on_alternate, SA_ONSTACK);
    raise(SIGUSR2);
    kill(getpid(), SIGUSR2);
    stack_t now;
    sigaltstack(NULL, &now);
    printf("alternate wrong %d kept %d\n", wrong, now.ss_sp == alternate.ss_sp);
}

static sigjmp_buf escape;
static void on_overflow(int sig, siginfo_t *si, void *context)
{
    (void)sig, (void)si, (void)context;
    siglongjmp(escape, 1);
}

__attribute__((noinline)) static int overflow(volatile char *up)
{
    volatile char here[4096];
    here[0] = up ? up[0] : 1;
    return here[0] == 77 ? 0 : overflow(here) + here[0];
}

static void masks(void)
{
    sigset_t set, old, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    nested = 0;
    depth = 4;
    raise(SIGUSR1);
    sigpending(&pending);
    int before = nested, waiting = sigismember(&pending, SIGUSR1);
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("blocked %d pending %d then %d\n", before, waiting, (int)nested);
    depth = 0;
}

/* A pipe that nobody writes to until the timer has interrupted the read twice. */
static int pipe_ends[2];
static void on_write(int sig, siginfo_t *si, void *context)
{
    (void)sig, (void)si, (void)context;
    if (++ticks == 3 && write(pipe_ends[1], "x", 1) != 1) wrong |= 32;
}

static void restarted(void)
{
    char c = 0;
    if (pipe(pipe_ends) != 0) return;
    struct itimerval it = {{0, 3000}, {0, 3000}}, off = {{0, 0}, {0, 0}};
    ticks = 0;
    on_handler(SIGALRM, on_write, SA_RESTART);
    setitimer(ITIMER_REAL, &it, NULL);
    ssize_t n = read(pipe_ends[0], &c, 1);
    setitimer(ITIMER_REAL, &off, NULL);
    printf("restarted read %zd %c\n", n, c);

    ticks = 100;
    on_handler(SIGALRM, on_write, 0);
    setitimer(ITIMER_REAL, &it, NULL);
    n = read(pipe_ends[0], &c, 1);
    int error = errno;
    setitimer(ITIMER_REAL, &off, NULL);
    printf("interrupted read %zd %s\n", n, error == EINTR ? "EINTR" : "other");
}

static void others(void)
{
    on_handler(SIGSEGV, on_overflow, SA_ONSTACK);
    int escaped = sigsetjmp(escape, 1);
    if (!escaped) overflow(NULL);
    printf("stack overflow escaped %d\n", escaped);

    on_handler(SIGFPE, on_overflow, 0);
    if (!sigsetjmp(escape, 1)) __asm__ volatile("xor %%ecx, %%ecx\n cltd\n idiv %%ecx" ::"a"(1) : "rcx", "rdx", "cc");
    on_handler(SIGILL, on_overflow, 0);
    if (!sigsetjmp(escape, 1)) __asm__ volatile("ud2");
    on_handler(SIGTRAP, on_tick, 0);
    ticks = 0;
    __asm__ volatile("int3");
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    on_handler(SIGSEGV, on_overflow, 0);
    if (!sigsetjmp(escape, 1)) *(volatile char *)page = 1;
    if (!sigsetjmp(escape, 1)) ((void (*)(void))page)();
    printf("fpe ill trap %d write exec survived\n", (int)ticks);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    fix_and_resume();
    storm();
    stacks();
    masks();
    restarted();
    others();
    return wrong;
}
