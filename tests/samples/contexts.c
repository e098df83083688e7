/* What a handler is shown, and what it may change: addresses against labels, every general register, flags,
 * for faults of each kind and for signals that come at any instruction of a loop; a way on at another label;
 * the alternate stack that is not there; a way back through a restorer of the program's own. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { REGISTERS = 15 };
static const int by_number[REGISTERS] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
                                         REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* Loads all registers from `known`, runs one instruction that faults, stores all registers and the flags. */
extern uint64_t known[REGISTERS], found[REGISTERS], found_flags;
uint64_t known[REGISTERS], found[REGISTERS], found_flags;

#define FAULTING(name, instruction)                                                                                    \
    void name(void);                                                                                                   \
    extern char name##_at[], name##_behind[], name##_other[];                                                          \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                                        \
            "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"                                  \
            "lea known(%rip), %r15\n"                                                                                  \
            "mov (%r15), %rax\n mov 8(%r15), %rbx\n mov 16(%r15), %rcx\n mov 24(%r15), %rdx\n"                         \
            "mov 32(%r15), %rsi\n mov 40(%r15), %rdi\n mov 48(%r15), %rbp\n mov 56(%r15), %r8\n"                       \
            "mov 64(%r15), %r9\n mov 72(%r15), %r10\n mov 80(%r15), %r11\n mov 88(%r15), %r12\n"                       \
            "mov 96(%r15), %r13\n mov 104(%r15), %r14\n mov 112(%r15), %r15\n"                                         \
            "stc\n" #name "_at:\n" instruction "\n" #name "_behind:\n"                                                 \
            "mov %r15, 112+found(%rip)\n lea found(%rip), %r15\n"                                                      \
            "mov %rax, (%r15)\n mov %rbx, 8(%r15)\n mov %rcx, 16(%r15)\n mov %rdx, 24(%r15)\n"                         \
            "mov %rsi, 32(%r15)\n mov %rdi, 40(%r15)\n mov %rbp, 48(%r15)\n mov %r8, 56(%r15)\n"                       \
            "mov %r9, 64(%r15)\n mov %r10, 72(%r15)\n mov %r11, 80(%r15)\n mov %r12, 88(%r15)\n"                       \
            "mov %r13, 96(%r15)\n mov %r14, 104(%r15)\n"                                                               \
            "pushf\n popq found_flags(%rip)\n"                                                                         \
            "1: pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n" #name                         \
            "_other:\n movq $77, found(%rip)\n jmp 1b\n"                                                               \
            ".size " #name ", .-" #name "\n")

FAULTING(loads, "mov (%rcx), %rdx");
FAULTING(stores, "movl $1, 16(%rcx,%rax,8)");
FAULTING(divides, "idivq %rcx");
FAULTING(illegal, "ud2");
FAULTING(trapping, "nopl (%rax,%rax)\n nop\n int3");

static volatile struct {
    char *at, *behind, *other; /* of the instruction that faults */
    int way, wrong, times, trap;
    void *address;
} expected;
enum { SKIP, RETRY, ELSEWHERE };

static uint64_t mixed(uint64_t v) { return v ^ 0x5555555555555555; }

static void check(int good, int bit)
{
    if (!good) expected.wrong |= bit;
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    char *pc = (char *)g[REG_RIP];
    expected.times++;
    check(pc == (expected.trap ? expected.behind : expected.at), 1);
    for (int i = 0; i < REGISTERS; i++) check((uint64_t)g[by_number[i]] == known[i], 2);
    check(g[REG_EFL] & 1, 4);
    check(info->si_signo == signo, 8);
    check(expected.trap || info->si_addr == expected.address, 16);
    if (expected.way == RETRY) return;
    for (int i = 0; i < REGISTERS; i++) g[by_number[i]] = (greg_t)mixed(known[i]);
    g[REG_EFL] &= ~1l;
    g[REG_EFL] |= 0x40;
    g[REG_RIP] = (greg_t)(expected.way == SKIP ? expected.behind : expected.other);
}

static void handle(int signo, void (*f)(int, siginfo_t *, void *), int flags)
{
    struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | flags};
    sigaction(signo, &a, NULL);
}

static void known_registers(uint64_t rcx)
{
    for (int i = 0; i < REGISTERS; i++) known[i] = 0x1000100010001ull * (uint64_t)(i + 3);
    known[0] = 2;
    known[2] = rcx;
}

static void fault(const char *name, int signo, void (*run)(void), char *at, char *behind, char *other, void *address,
                  uint64_t rcx)
{
    handle(signo, on_fault, 0);
    known_registers(rcx);
    for (int way = SKIP; way <= ELSEWHERE; way += ELSEWHERE) {
        expected.at = at, expected.behind = behind, expected.other = other;
        expected.way = way, expected.wrong = expected.times = 0, expected.trap = signo == SIGTRAP;
        expected.address = address;
        memset(found, 0, sizeof found);
        for (int k = 0; k < 100; k++) run();
        if (way == ELSEWHERE) {
            check(found[0] == 77, 32);
        } else {
            for (int i = 0; i < REGISTERS; i++) check(found[i] == mixed(known[i]), 64);
            check((found_flags & 0x41) == 0x40, 128);
        }
        printf("%s: %d times, wrong %d\n", name, expected.times, expected.wrong);
    }
}
#define FAULT(name, signo, address, rcx)                                                                               \
    fault(#name, signo, name, name##_at, name##_behind, name##_other, (void *)(address), rcx)

/* --- the page is there the second time --- */

static char *page;
static void on_missing(int signo, siginfo_t *info, void *context)
{
    on_fault(signo, info, context);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void retried(void)
{
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, on_missing, 0);
    known_registers((uint64_t)page);
    expected.at = loads_at, expected.behind = loads_behind;
    expected.way = RETRY, expected.wrong = expected.times = expected.trap = 0;
    expected.address = page;
    for (int k = 0; k < 100; k++) {
        page[0] = (char)k;
        mprotect(page, 4096, PROT_NONE);
        loads();
        check(found[3] == (uint64_t)k, 32);
        for (int i = 0; i < REGISTERS; i++) check(i == 3 || found[i] == known[i], 64);
        check(found_flags & 1, 128);
    }
    printf("retried: %d times, wrong %d\n", expected.times, expected.wrong);
}

/* --- signals at any instruction --- */

/* Whatever is interrupted, r8 + r9 is 0 but between three instructions, r10 is twice r11 but between two others;
 * the carry is set when r9 has just changed. The handler lengthens the loop now and then. */
extern char loop_begin[], loop_uneven[], loop_between[], loop_even[], loop_odd[], loop_straight[], loop_end[];
uint64_t loops(uint64_t n);
__asm__(".text\n.globl loops\n.type loops, @function\nloops:\n"
        "xor %r8d, %r8d\n xor %r9d, %r9d\n xor %r10d, %r10d\n xor %r11d, %r11d\n xor %eax, %eax\n"
        "loop_begin:\n"
        "add $1, %r8\n"
        "loop_uneven: mov %r8, %r9\n"
        "loop_between: neg %r9\n"
        "loop_even: jnc 2f\n"
        "add $2, %r10\n"
        "loop_odd: inc %r11\n"
        "loop_straight: test $64, %r8b\n"
        "jz 1f\n"
        "push %r8\n mov (%rsp), %rcx\n pop %rdx\n xor %rcx, %rdx\n add %rdx, %rax\n"
        "1: cmp %rdi, %r8\n"
        "jb loop_begin\n"
        "2: add %r10, %rax\n"
        "loop_end: ret\n"
        ".size loops, .-loops\n");

static volatile long ticks, inside, lengthened;
static int tick_wrong;
static void on_tick(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    char *pc = (char *)g[REG_RIP];
    (void)signo, (void)info;
    ticks++;
    if (pc <= loop_begin || pc >= loop_end) return;
    inside++;
    greg_t sum = pc == loop_uneven ? 1 : pc == loop_between ? 2 * g[REG_R8] : 0;
    if (g[REG_R8] + g[REG_R9] != sum) tick_wrong |= 1;
    if (g[REG_R10] != 2 * g[REG_R11] + (pc == loop_odd ? 2 : 0)) tick_wrong |= 2;
    if (pc == loop_even && !(g[REG_EFL] & 1)) tick_wrong |= 4;
    if (pc > loop_straight && pc < loop_end && g[REG_RAX] < 0) tick_wrong |= 8;
    if (inside % 8 == 0 && pc <= loop_straight) g[REG_RDI] += 1, lengthened++;
}

static sigjmp_buf out;
static void on_tick_out(int signo, siginfo_t *info, void *context)
{
    on_tick(signo, info, context);
    if (ticks % 2) siglongjmp(out, 1);
}

static void storm(void (*f)(int, siginfo_t *, void *), const char *name)
{
    struct itimerval every = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
    ticks = inside = lengthened = 0;
    tick_wrong = 0;
    handle(SIGALRM, f, SA_RESTART);
    setitimer(ITIMER_REAL, &every, NULL);
    int wrong = 0;
    while (inside < 300) {
        if (sigsetjmp(out, 1)) continue;
        long before = lengthened;
        uint64_t n = 100000, sum = loops(n);
        if (sum != 2 * (n + (uint64_t)(lengthened - before))) wrong++;
    }
    setitimer(ITIMER_REAL, &off, NULL);
    printf("%s: sums wrong %d, contexts wrong %d\n", name, wrong, tick_wrong);
}

/* --- stacks --- */

static char *interrupted_sp;
static int stack_wrong;
static void on_own_stack(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    stack_t now;
    char here;
    (void)signo, (void)info;
    sigaltstack(NULL, &now);
    if (now.ss_flags != SS_DISABLE || now.ss_sp || now.ss_size) stack_wrong |= 1;
    if (uc->uc_stack.ss_flags & ~SS_DISABLE || uc->uc_stack.ss_sp || uc->uc_stack.ss_size) stack_wrong |= 2;
    if (&here > interrupted_sp || interrupted_sp - &here > 100000) stack_wrong |= 4;
    if ((char *)uc->uc_mcontext.gregs[REG_RSP] > interrupted_sp) stack_wrong |= 8;
}

static void stacks(void)
{
    char here;
    stack_t now, own = {.ss_sp = malloc(65536), .ss_size = 65536}, none = {.ss_flags = SS_DISABLE};
    interrupted_sp = &here;
    sigaltstack(NULL, &now);
    printf("stack: flags %d, size %zu, %d\n", now.ss_flags, now.ss_size, now.ss_sp != NULL);
    handle(SIGUSR1, on_own_stack, SA_ONSTACK); /* there is none */
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    sigaltstack(&own, NULL);
    sigaltstack(NULL, &now);
    printf("stack: %d, %d\n", now.ss_sp == own.ss_sp, now.ss_flags);
    sigaltstack(&none, &now);
    raise(SIGUSR1);
    sigaltstack(NULL, &now);
    printf("stack: flags %d, wrong %d\n", now.ss_flags, stack_wrong);
}

/* --- a restorer that is no library's --- */

void own_restorer(void);
__asm__(".text\n.type own_restorer, @function\nnop\nown_restorer:\n"
        "mov $15, %eax\n syscall\n.size own_restorer, .-own_restorer\n");

static void with_own_restorer(void)
{
    struct {
        void *handler;
        uint64_t flags;
        void (*restorer)(void);
        uint64_t mask;
    } a = {(void *)on_fault, SA_SIGINFO | 0x04000000, own_restorer, 0};
    FAULT(loads, SIGSEGV, 0x1000, 0x1000);
    syscall(SYS_rt_sigaction, SIGSEGV, &a, NULL, 8);
    expected.way = SKIP, expected.wrong = expected.times = 0;
    for (int k = 0; k < 100; k++) loads();
    printf("own restorer: %d times, wrong %d\n", expected.times, expected.wrong);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    FAULT(loads, SIGSEGV, 0x1000, 0x1000);
    FAULT(stores, SIGSEGV, 0x1020, 0x1000);
    FAULT(divides, SIGFPE, divides_at, 0);
    FAULT(illegal, SIGILL, illegal_at, 0);
    FAULT(trapping, SIGTRAP, 0, 0);
    retried();
    storm(on_tick, "storm");
    storm(on_tick_out, "storm with jumps out");
    stacks();
    with_own_restorer();
    return 0;
}
