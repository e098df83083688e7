/* The 128 bytes below the stack pointer belong to a leaf procedure: nothing that comes in between, a signal's frame
 * above all, may write there. A leaf fills its red zone and looks at it again after something happened: a timer's
 * signal in a loop, a fault, a signal at a system call. The handlers run on the same stack, with SA_ONSTACK but no
 * alternate stack, and on an alternate stack; a handler that stands on the alternate stack is interrupted too. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { ZONE = 128, WORDS = ZONE / 8, TICKS = 150 };

static volatile sig_atomic_t hits;
static volatile unsigned long damaged;

/* Fills the red zone, does `what`, answers how many of its words have changed; -1: another stack pointer. */
#define IN_RED_ZONE(name, what)                                                                                        \
    __attribute__((noinline)) static long name(uint64_t value, uint64_t number, uint64_t a, uint64_t b)                \
    {                                                                                                                  \
        long wrong = 0;                                                                                                \
        __asm__ volatile("lea -136(%%rsp), %%r8\n"                                                                     \
                         "mov %%rsp, %%r9\n"                                                                           \
                         "mov $16, %%r10d\n"                                                                           \
                         "1: mov %[value], (%%r8, %%r10, 8)\n"                                                         \
                         "dec %%r10\n jnz 1b\n" what "\n"                                                              \
                         "cmp %%rsp, %%r9\n je 2f\n mov $-1, %[wrong]\n jmp 4f\n"                                      \
                         "2: lea -136(%%rsp), %%r8\n"                                                                  \
                         "mov $16, %%r10d\n"                                                                           \
                         "3: xor %%ebx, %%ebx\n"                                                                       \
                         "cmp %[value], (%%r8, %%r10, 8)\n setne %%bl\n"                                               \
                         "add %%rbx, %[wrong]\n"                                                                       \
                         "dec %%r10\n jnz 3b\n"                                                                        \
                         "4:\n"                                                                                        \
                         : [wrong] "+r"(wrong), "+a"(number), "+D"(a), "+S"(b)                                         \
                         : [value] "r"(value)                                                                          \
                         : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory");                             \
        return wrong;                                                                                                  \
    }

IN_RED_ZONE(in_loop, "mov $60, %%ecx\n 9: dec %%ecx\n jnz 9b")
IN_RED_ZONE(at_call, "syscall")
IN_RED_ZONE(at_fault, "mov %%rax, (%%rdi)")
IN_RED_ZONE(at_trap, "ud2")
_Static_assert(WORDS == 16, "the loops count so far");

/* Uses its stack, so that a frame in the wrong place is not the only thing that does damage. */
__attribute__((noinline)) static void scribble(void)
{
    volatile char much[300];
    for (unsigned i = 0; i < sizeof much; i++) much[i] = (char)0xee;
}

static void on_signal(int sig)
{
    (void)sig;
    scribble();
    hits++;
}

/* Over the instruction that faulted: each is as long as it says here. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)info;
    ucontext_t *uc = context;
    scribble();
    hits++;
    uc->uc_mcontext.gregs[REG_RIP] += sig == SIGILL ? 2 : 3;
}

/* A handler on the alternate stack, whose own red zone is to survive a second signal. */
static void on_nested(int sig)
{
    (void)sig;
    long wrong = at_call(0x1122334455667788, SYS_kill, (uint64_t)getpid(), SIGUSR1);
    wrong += at_fault(0x99aabbccddeeff00, 0, 0, 0);
    damaged += (unsigned long)wrong;
    hits++;
}

static void act(int sig, void (*handler)(int), int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
    sigaction(sig, &a, NULL);
}

static void act_on_fault(int sig, int flags)
{
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | flags};
    sigaction(sig, &a, NULL);
}

static void timer(int microseconds)
{
    struct itimerval t = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static void look(const char *name, int flags)
{
    act(SIGALRM, on_signal, flags);
    act(SIGUSR1, on_signal, flags);
    act(SIGUSR2, on_nested, flags);
    act_on_fault(SIGSEGV, flags);
    act_on_fault(SIGILL, flags);

    long loops = 0, calls = 0, faults = 0;
    hits = 0;
    timer(500);
    while (hits < TICKS)
        for (uint64_t i = 0; i < 500; i++) loops += in_loop(i * 0x9e3779b97f4a7c15, 0, 0, 0);
    timer(0);
    hits = 0;
    for (uint64_t i = 1; i <= 50; i++) {
        calls += at_call(i * 0x9e3779b97f4a7c15, SYS_kill, (uint64_t)getpid(), SIGUSR1);
        calls += at_call(i * 0x517cc1b727220a95, SYS_tkill, (uint64_t)gettid(), SIGUSR1);
        calls += at_call(i * 0x6c62272e07bb0142, SYS_sched_yield, 0, 0);
        calls += at_call(i * 0x27bb2ee687b0b0fd, SYS_sigaltstack, 0, 0);
        faults += at_fault(i * 0x9e3779b97f4a7c15, 0, 0, 0);
        faults += at_trap(i * 0x517cc1b727220a95, 0, 0, 0);
    }
    printf("%s: damaged in loops %ld, at calls %ld, at faults %ld; %d signals\n", name, loops, calls, faults,
           (int)hits);
    hits = 0;
    damaged = 0;
    raise(SIGUSR2);
    printf("%s: damaged in a handler %lu; %d signals\n", name, damaged, (int)hits);
}

int main(void)
{
    look("same stack", 0);
    look("no alternate stack", SA_ONSTACK);
    stack_t s = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&s, NULL);
    look("alternate stack", SA_ONSTACK);
    look("alternate stack not wanted", 0);
    return 0;
}
