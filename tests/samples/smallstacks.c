/* Handlers on alternate stacks that have room for little more than the kernel's frame: how much of the stack a signal
 * takes is printed, from samples of its words, and what handlers find there: of frames that lie above them when calls
 * are made with addresses where nothing is, when faults come in the handler, when a stack disarms itself, when no frame
 * can be written to it, and when abort is called with the stack nearly used up. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

enum { ROOM = 1 << 16, UNTOUCHED = 0x5a, ENOUGH = 200, NEAR = 700 };

static _Alignas(64) uint8_t ample[ROOM];
static volatile sig_atomic_t seen;
static volatile double work = 1;
static sigjmp_buf back;

static void counts(int signo, siginfo_t *info, void *context) { (void)signo, (void)info, (void)context, seen++; }

static void handle(int signo, void (*f)(int, siginfo_t *, void *), int flags)
{
    struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | SA_ONSTACK | flags};
    sigemptyset(&a.sa_mask);
    sigaction(signo, &a, NULL);
}

static void stack(void *at, size_t size, int flags)
{
    stack_t s = {.ss_sp = at, .ss_size = size, .ss_flags = flags};
    if (sigaltstack(&s, NULL)) printf("sigaltstack: %s\n", strerror(errno));
}

static size_t used(void)
{
    size_t k = 0;
    while (k < ROOM && ample[k] == UNTOUCHED) k++;
    return ROOM - k;
}

/* What the kernel itself writes. */
static size_t one_frame(void)
{
    stack(ample, sizeof ample, 0);
    handle(SIGUSR1, counts, 0);
    memset(ample, UNTOUCHED, sizeof ample);
    raise(SIGUSR1);
    return used();
}

/* As small as it can be, with nothing to write to below it. */
static void *small(size_t size)
{
    const size_t page = 4096, pages = (size + page - 1) / page * page;
    uint8_t *at = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at, page, PROT_NONE)) exit(1);
    return at + page + pages - size;
}

static void smallest(size_t frame)
{
    size_t size = frame + ENOUGH < getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : frame + ENOUGH;
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    stack(small(size), size, 0);
    handle(SIGALRM, counts, 0);
    for (int i = 0; i < 3; i++) raise(SIGUSR1);
    printf("the smallest stack: %d signals sent\n", (int)seen);
    seen = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    while (seen < 200) work = work * 1.0000001 + (work > 2 ? -1 : 1e-9);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("the smallest stack: signals at any place\n");
}

/* --- the frames above --- */

static __attribute__((noinline)) uint64_t sum(const uint8_t *at, size_t size)
{
    uint64_t h = 0;
    for (size_t i = 0; i < size; i++) h = h * 31 + at[i];
    return h;
}

static void fault(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    siglongjmp(back, 1);
}

static void calls_wrongly(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    const uint8_t *frame = (const uint8_t *)context;
    size_t size = (size_t)(ample + ROOM - frame);
    volatile uint64_t before = sum(frame, size);
    void *nothing = (void *)16;
    int failed = 0;
    failed += syscall(SYS_rt_sigaction, SIGUSR2, nothing, NULL, 8) == -1 && errno == EFAULT;
    failed += syscall(SYS_rt_sigaction, SIGUSR2, NULL, nothing, 8) == -1 && errno == EFAULT;
    failed += syscall(SYS_sigaltstack, NULL, nothing) == -1 && errno == EFAULT;
    failed += syscall(SYS_execve, nothing, NULL, NULL) == -1 && errno == EFAULT;
    printf("  %d calls have failed, the frame is %s\n", failed, sum(frame, size) == before ? "as it was" : "another");
    if (!sigsetjmp(back, 1)) *(volatile int *)nothing = 1;
    printf("  after a fault it is %s\n", sum(frame, size) == before ? "as it was" : "another");
    seen++;
}

static void while_on_it(void)
{
    stack(ample, sizeof ample, 0);
    handle(SIGUSR2, calls_wrongly, 0);
    handle(SIGSEGV, fault, 0);
    printf("wrong calls in a handler\n");
    volatile uint64_t kept = 0x123456789abcdef0;
    raise(SIGUSR2);
    printf("  behind it: %s\n", kept == 0x123456789abcdef0 ? "right" : "wrong");
}

static void shows_stack(int signo, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    stack_t now;
    int local;
    (void)signo, (void)info;
    sigaltstack(NULL, &now);
    printf("  its frame says: %s, flags %x; asked in it: flags %x; it runs %s\n",
           u->uc_stack.ss_sp == ample ? "the stack" : "another", (unsigned)u->uc_stack.ss_flags, (unsigned)now.ss_flags,
           (uint8_t *)&local >= ample && (uint8_t *)&local < ample + ROOM ? "there" : "elsewhere");
}

static void disarming(void)
{
    stack_t now;
    printf("a stack that disarms itself\n");
    stack(ample, sizeof ample, (int)SS_AUTODISARM);
    handle(SIGUSR1, shows_stack, 0);
    raise(SIGUSR1);
    sigaltstack(NULL, &now);
    printf("  afterwards: %s, flags %x\n", now.ss_sp == ample ? "the stack" : "another", (unsigned)now.ss_flags);
    stack(NULL, 0, SS_DISABLE);
    printf("none\n");
    raise(SIGUSR1);
}

/* --- masks and floating point --- */

static void shows_mask(int signo, siginfo_t *info, void *context)
{
    sigset_t mask;
    unsigned control = 0;
    (void)info, (void)context;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    printf("  signal %d, blocked:", signo == SIGUSR1 ? 1 : 2);
    for (int s = 1; s < NSIG; s++)
        if (sigismember(&mask, s) == 1)
            printf(" %s", s == SIGUSR1 ? "USR1" : s == SIGUSR2 ? "USR2" : s == SIGALRM ? "ALRM" : "?");
#ifdef __x86_64__
    unsigned short word;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    __asm__ volatile("fnstcw %0" : "=m"(word));
    printf("; mxcsr %x, control %x\n", control, word);
#else
    (void)control;
    printf("\n");
#endif
    if (signo == SIGUSR1) raise(SIGUSR2);
}

static void begins_with(void)
{
    struct sigaction a = {.sa_sigaction = shows_mask, .sa_flags = SA_SIGINFO};
    printf("masks\n");
    sigemptyset(&a.sa_mask);
    sigaddset(&a.sa_mask, SIGALRM);
    sigaction(SIGUSR1, &a, NULL);
    sigemptyset(&a.sa_mask);
    a.sa_flags |= SA_NODEFER;
    sigaction(SIGUSR2, &a, NULL);
#ifdef __x86_64__
    unsigned rounds_down = 0x3f80, kept = 0;
    __asm__ volatile("ldmxcsr %0" : : "m"(rounds_down));
    raise(SIGUSR1);
    __asm__ volatile("stmxcsr %0" : "=m"(kept));
    printf("  behind them mxcsr %x\n", kept);
#else
    raise(SIGUSR1);
#endif
}

/* --- no frame --- */

static void of_kernel(int signo, siginfo_t *info, void *context)
{
    (void)context;
    printf("  signal %d, code %d, address %p\n", signo, info->si_code, info->si_addr);
}

/* SIGUSR1 has a stack that cannot be written to, or is too small; SIGSEGV comes instead, on the ordinary one. */
static void unusable(size_t size, int protection, bool blocked)
{
    struct sigaction a = {.sa_sigaction = of_kernel, .sa_flags = SA_SIGINFO};
    sigset_t mask;
    sigemptyset(&a.sa_mask);
    sigemptyset(&mask);
    if (blocked) sigaddset(&mask, SIGSEGV);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGSEGV, &a, NULL);
    handle(SIGUSR1, of_kernel, 0);
    stack(mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size, 0);
    for (int i = 0; i < 2; i++) raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    _exit(3);
}

static void without_frame(void)
{
    enum { TOO_SMALL = 2048 };
    for (int kind = 0; kind < 4; kind++) {
        int status = 0;
        const bool blocked = kind & 1, small = kind & 2;
        printf("no frame on a stack that is %s, SIGSEGV %s\n", small ? "small" : "read-only",
               blocked ? "blocked" : "handled");
        pid_t child = fork();
        if (child == 0) unusable(small ? TOO_SMALL : ROOM, PROT_READ | (small ? PROT_WRITE : 0), blocked);
        waitpid(child, &status, 0);
        printf("  %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* --- the end --- */

/* Only what is left is enough for the call; natively a signal that ends the program needs no frame. */
static void aborts(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    abort();
}

static void ends_on(size_t frame)
{
    int status = 0;
    size_t size = frame + NEAR + 1000;
    pid_t child = fork();
    if (child == 0) {
        stack(small(size), size, 0);
        handle(SIGUSR1, aborts, 0);
        raise(SIGUSR1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("abort in a handler: %s\n",
           WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? "SIGABRT" : "something else");
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    size_t frame = one_frame();
    printf("a frame of %zu bytes\n", frame);
    seen = 0;
    smallest(frame);
    while_on_it();
    disarming();
    begins_with();
    without_frame();
    ends_on(frame);
    return 0;
}
