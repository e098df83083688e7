/* A static program without a libc that makes its own threads: raw clone with stacks of its own, futex to wait, signals
 * on alternate stacks, a timer that interrupts all of it. First, as Go's runtime does, without any thread pointer; then
 * with one that the program sets, and clone for its threads; these unmap their stacks before they exit, and send
 * themselves a signal in between. */
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <sys/syscall.h>

enum { THREADS = 6, TURNS = 50000, ROUNDS = 5, STACK = 65536 };

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static char first_stacks[THREADS][STACK] __attribute__((aligned(4096))), *stacks[THREADS];
static char signal_stacks[THREADS + 1][32768] __attribute__((aligned(64)));
static long first_tls[THREADS + 1][8] __attribute__((aligned(16))), *tls[THREADS + 1];
static int alive[THREADS];
static long total, with_tls;
static volatile long ticks, last_ones;

static long own(void)
{
    long *v;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(v));
    return *v;
}

static void on_signal(int sig) { __atomic_fetch_add(sig == SIGPROF ? &ticks : &last_ones, 1, __ATOMIC_RELAXED); }

static void use_signal_stack(int id)
{
    stack_t s = {.ss_sp = signal_stacks[id], .ss_size = sizeof signal_stacks[id]};
    call(SYS_sigaltstack, (long)&s, 0, 0, 0, 0, 0);
}

/* As musl ends a detached thread: once its stack and what the thread pointer leads to are gone, only registers are
 * left.
 */
__attribute__((noreturn)) static void exit_without_stack(void *stack)
{
    register long x2 __asm__("x2") = call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    register long x8 __asm__("x8") = SYS_munmap, x0 __asm__("x0") = (long)stack, x1 __asm__("x1") = STACK;
    __asm__ volatile("svc 0\n"
                     "mov x0, x2\n"
                     "mov x1, %3\n"
                     "mov x8, %4\n"
                     "svc 0\n"
                     "mov x8, %5\n"
                     "mov x0, xzr\n"
                     "svc 0\n"
                     : "+r"(x0), "+r"(x1), "+r"(x8)
                     : "i"(SIGUSR1), "i"(SYS_tkill), "i"(SYS_exit), "r"(x2)
                     : "memory");
    __builtin_unreachable();
}

/* Runs on a new stack; never returns. The kernel clears alive[id] and wakes its waiters. */
__attribute__((noreturn, used)) static void thread_body(long id)
{
    use_signal_stack((int)id);
    long sum = 0;
    for (int i = 0; i < TURNS; i++) sum += !with_tls || own() == id ? 1 : 1000000;
    __atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
    if (with_tls) exit_without_stack(stacks[id]);
    call(SYS_exit, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

/* Threads with a thread pointer have what it leads to at the low end of a stack that they unmap. */
static char *new_stack(int id)
{
    if (!with_tls) return first_stacks[id];
    return (char *)call(SYS_mmap, 0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long start_thread(int id, long more)
{
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD |
                 CLONE_CHILD_CLEARTID | more;
    stacks[id] = new_stack(id);
    tls[id] = with_tls ? (long *)(void *)stacks[id] : first_tls[id];
    tls[id][0] = id;
    alive[id] = 1;
    register long x8 __asm__("x8") = SYS_clone, x0 __asm__("x0") = flags, x2 __asm__("x2") = 0;
    register long x1 __asm__("x1") = (long)(stacks[id] + STACK), x3 __asm__("x3") = (long)tls[id];
    register long x4 __asm__("x4") = (long)&alive[id], x19 __asm__("x19") = id;
    __asm__ volatile("svc 0\n"
                     "cbnz x0, 1f\n"
                     "mov x29, xzr\n"
                     "mov x0, x19\n"
                     "bl thread_body\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x19)
                     : "x30", "memory");
    return x0;
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

static void run_threads(long flags)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            if (start_thread(i, flags) < 0) alive[i] = 0;
        for (int i = 0; i < THREADS; i++)
            while (__atomic_load_n(&alive[i], __ATOMIC_ACQUIRE))
                call(SYS_futex, (long)&alive[i], FUTEX_WAIT, 1, 0, 0, 0);
    }
}

__attribute__((noreturn, used)) static void program(void)
{
    use_signal_stack(THREADS);
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {on_signal, SA_ONSTACK | SA_RESTART, 0, ~0ul};
    call(SYS_rt_sigaction, SIGPROF, (long)&action, 0, 8, 0, 0);
    call(SYS_rt_sigaction, SIGUSR1, (long)&action, 0, 8, 0, 0);
    struct {
        long s, us, s2, us2;
    } timer = {0, 1000, 0, 1000};
    call(SYS_setitimer, 2 /* ITIMER_PROF */, (long)&timer, 0, 0, 0, 0);

    run_threads(0);
    print_number("without ", total);
    tls[THREADS] = first_tls[THREADS];
    tls[THREADS][0] = THREADS;
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(tls[THREADS]));
    with_tls = 1;
    run_threads(CLONE_SETTLS);
    print_number("with ", total);
    print_number("own ", own());
    print_number("last ones ", last_ones > 0); /* emulators lose some */
    while (!ticks) __asm__ volatile("yield");
    print_number("ticked ", ticks > 0);
    call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

__attribute__((noreturn)) void _start(void) { program(); }
