/* The program steps itself: it sets TF by popf, by a handler's return and by iret, and writes down where it is trapped,
 * how often and with which flags, as distances from labels: the same natively and from elsewhere. With an argument
 * without flags, which inserted code may have where nobody looks at them but who steps. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

enum { TF = 0x100, MOST = 4096 };

extern const char first[], last[];
static struct {
    long at;
    unsigned long flags, r11;
    int code, trapno;
    long distance;
} seen[MOST];
static volatile int count, limit, faults;
static int keep_r11, flagless;
static unsigned long not_seen; /* flags */

static void trapped(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signo;
    if (count < MOST) {
        long at = g[REG_RIP] - (long)first;
        seen[count].at = at >= 0 && at < last - first ? at : -1;
        seen[count].flags = g[REG_EFL] & 0x4ffd5 & ~not_seen; /* ID is the system's */
        seen[count].r11 = keep_r11 ? (unsigned long)g[REG_R11] & TF : 0;
        seen[count].code = info->si_code;
        seen[count].trapno = (int)g[REG_TRAPNO];
        seen[count].distance = (long)info->si_addr - g[REG_RIP];
    }
    if (++count == limit) g[REG_EFL] &= ~TF;
}

static void faulted(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)signo, (void)info;
    faults += g[REG_EFL] & TF ? 1 : 100;
    g[REG_RIP] += 3; /* mov (%rbx), %rax */
}

static void asked(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TF;
}

static void show(const char *what)
{
    unsigned long hash = 1469598103934665603ul;
    for (int i = 0; i < count && i < MOST; i++)
        for (size_t k = 0; k < sizeof seen[i]; k++) hash = (hash ^ ((unsigned char *)&seen[i])[k]) * 1099511628211ul;
    printf("%s: %d traps, %d faults, %lx;", what, count, faults, flagless ? 0 : hash);
    for (int i = 0; i < count && i < 60; i++) printf(" %ld", seen[i].at);
    printf("\n");
    for (int i = 0; i < count && i < 4 && !flagless; i++)
        printf("  code %d trap %d flags %lx distance %ld r11 %lx\n", seen[i].code, seen[i].trapno, seen[i].flags,
               seen[i].distance, seen[i].r11);
    memset(seen, 0, sizeof seen);
    count = limit = faults = 0;
}

/* The flags are known before. */
#define BEGIN "cmp %%rsp, %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
#define END   "pushfq\n andq $~0x100, (%%rsp)\n popfq\n"

#ifdef __clang__
__attribute__((noinline)) /* it knows no clones */
#else
__attribute__((noinline, noclone)) /* its labels stand once */
#endif
static void
all(void)
{
    uint64_t a = 0, from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {0};
    __asm__ volatile("first: nop");
    __asm__ volatile(BEGIN "inc %0\n add $2, %0\n" END : "+r"(a) : : "memory", "cc");
    show("plain");
    __asm__ volatile(BEGIN "call 1f\n jmp 2f\n 1: test %0, %0\n jz 3f\n nop\n 3: ret\n 2: nop\n" END
                     : "+r"(a)
                     :
                     : "memory", "cc");
    show("branches");
    __asm__ volatile(BEGIN "lea 1f(%%rip), %%rax\n jmp *%%rax\n ud2\n 1: nop\n" END : : : "rax", "memory", "cc");
    show("indirect");
    keep_r11 = 1;
    __asm__ volatile(BEGIN "mov $39, %%eax\n syscall\n nop\n mov $13, %%eax\n mov $77, %%edi\n syscall\n nop\n" END
                     :
                     :
                     : "rax", "rcx", "rdi", "r11", "memory", "cc");
    keep_r11 = 0;
    show("calls");
    uint64_t n = 8, *s = from, *d = to;
    __asm__ volatile(BEGIN "cld\n rep movsq\n nop\n" END : "+c"(n), "+S"(s), "+D"(d) : : "memory", "cc");
    show(to[7] == 8 && !n ? "repeated" : "wrongly repeated");
    n = 8, d = to;
    not_seen = 0x8d5; /* between two scans some processors show the flags of the last one, some those before them all */
    __asm__ volatile(BEGIN "mov $3, %%eax\n repne scasq\n nop\n" END : "+c"(n), "+D"(d) : : "rax", "memory", "cc");
    not_seen = 0;
    show(n == 5 && d == to + 3 ? "found" : "not found");
    __asm__ volatile(BEGIN "xor %%ebx, %%ebx\n mov (%%rbx), %%rax\n nop\n" END : : : "rax", "rbx", "memory", "cc");
    show("fault");
    __asm__ volatile("movq $0x100, -8(%%rsp)\n sub $8, %%rsp\n cmp %0, %0\n setge %b0\n setl %b0\n add $8, %%rsp\n"
                     : "+r"(a)
                     :
                     : "memory", "cc"); /* opcodes that look like popf and pushf */
    __asm__ volatile(BEGIN "pushfq\n pop %0\n" END : "=r"(a) : : "memory", "cc");
    show(a & TF ? "pushed" : "not pushed");
    raise(SIGUSR1); /* its handler's return sets the flag */
    __asm__ volatile("nop\n nop\n" END : : : "memory", "cc");
    limit = count = 0;
    printf("handler's return: trapped\n");
    __asm__ volatile("cmp %%rsp, %%rsp\n mov %%rsp, %%rax\n mov %%ss, %%ecx\n push %%rcx\n push %%rax\n pushfq\n orq "
                     "$0x100, (%%rsp)\n"
                     "mov %%cs, %%ecx\n push %%rcx\n lea 1f(%%rip), %%rax\n push %%rax\n iretq\n 1: nop\n nop\n" END
                     :
                     :
                     : "rax", "rcx", "memory", "cc");
    show("iret");
    limit = 2; /* the handler ends it */
    __asm__ volatile(BEGIN "nop\n nop\n nop\n nop\n" : : : "memory", "cc");
    show("ended by the handler");
    __asm__ volatile("last: nop");
}

int main(int argc, char **argv)
{
    (void)argv;
    flagless = argc > 1;
    struct sigaction a = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &a, NULL);
    a.sa_sigaction = faulted;
    sigaction(SIGSEGV, &a, NULL);
    a.sa_sigaction = asked;
    sigaction(SIGUSR1, &a, NULL);
    all();
    return 0;
}
