/* A static program without a libc that makes its own threads, as Go's runtime does: raw clone with
 * stacks of its own, thread-local base set by the clone, futex to wait, signals on alternate stacks
 * with its own restorer, a timer that interrupts all of it. */
#include <asm/prctl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <sys/syscall.h>

enum { THREADS = 6, TURNS = 50000, STACK = 65536 };

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "+a"(nr)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return nr;
}

static char stacks[THREADS][STACK] __attribute__((aligned(4096)));
static char signal_stacks[THREADS + 1][16384] __attribute__((aligned(64)));
static long tls[THREADS + 1][8];
static int alive[THREADS];
static long total;
static volatile long ticks;

static long own(void)
{
    long v;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(v));
    return v;
}

static void on_signal(int sig)
{
    if (sig == SIGPROF) __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
}

__attribute__((naked)) static void restorer(void) { __asm__ volatile("mov $15, %eax\n syscall"); }

static void use_signal_stack(int id)
{
    stack_t s = {.ss_sp = signal_stacks[id], .ss_size = sizeof signal_stacks[id]};
    call(SYS_sigaltstack, (long)&s, 0, 0, 0, 0, 0);
}

/* Runs on a new stack; never returns. The kernel clears alive[id] and wakes its waiters. */
__attribute__((noreturn, used)) static void thread_body(long id)
{
    use_signal_stack((int)id);
    long sum = 0;
    for (int i = 0; i < TURNS; i++) sum += own() == id ? 1 : 1000000;
    __atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
    call(SYS_exit, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

static void start_thread(int id)
{
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SETTLS |
                 CLONE_CHILD_CLEARTID;
    tls[id][0] = id;
    alive[id] = 1;
    long *top = (long *)(stacks[id] + STACK) - 2;
    register long r10 __asm__("r10") = (long)&alive[id];
    register long r8 __asm__("r8") = (long)tls[id];
    register long r12 __asm__("r12") = id;
    long nr = SYS_clone;
    __asm__ volatile("syscall\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "xor %%ebp, %%ebp\n"
                     "mov %%r12, %%rdi\n"
                     "call thread_body\n"
                     "1:"
                     : "+a"(nr)
                     : "D"(flags), "S"(top), "d"(0), "r"(r10), "r"(r8), "r"(r12)
                     : "rcx", "r11", "memory");
}

static void print_number(const char *name, long n)
{
    char line[64];
    int at = 0;
    while (name[at]) {
        line[at] = name[at];
        at++;
    }
    char digits[24];
    int d = 0;
    do digits[d++] = (char)('0' + n % 10);
    while (n /= 10);
    while (d) line[at++] = digits[--d];
    line[at++] = '\n';
    call(SYS_write, 1, (long)line, at, 0, 0, 0);
}

__attribute__((noreturn, used)) static void program(void)
{
    tls[THREADS][0] = THREADS;
    call(SYS_arch_prctl, ARCH_SET_FS, (long)tls[THREADS], 0, 0, 0, 0);
    use_signal_stack(THREADS);
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {on_signal, SA_ONSTACK | SA_RESTART | 0x04000000, restorer, ~0ul};
    call(SYS_rt_sigaction, SIGPROF, (long)&action, 0, 8, 0, 0);
    struct {
        long s, us, s2, us2;
    } timer = {0, 1000, 0, 1000};
    call(SYS_setitimer, 2 /* ITIMER_PROF */, (long)&timer, 0, 0, 0, 0);

    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < THREADS; i++) start_thread(i);
        for (int i = 0; i < THREADS; i++) {
            while (__atomic_load_n(&alive[i], __ATOMIC_ACQUIRE))
                call(SYS_futex, (long)&alive[i], FUTEX_WAIT, 1, 0, 0, 0);
        }
    }
    while (!ticks) __asm__ volatile("pause");
    print_number("total ", total);
    print_number("ticked ", ticks > 0);
    call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

__attribute__((naked, noreturn)) void _start(void)
{
    __asm__ volatile("xor %ebp, %ebp\n and $-16, %rsp\n call program");
}
