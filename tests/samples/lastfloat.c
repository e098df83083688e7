/* Asks the processor where its last floating-point instruction stood: in every form that tells it, by way of what has
 * been loaded again, in a handler of an exception, and in code that is made while it runs. An exception that waits
 * makes every processor tell it: some have nothing to say of other instructions, in the forms that store everything. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static uint8_t area[4096] __attribute__((aligned(64)));
static uint64_t label;
static const uint16_t unmasked = 0x37b; /* division by zero */

static void told(const char *how, unsigned at, unsigned width)
{
    uint64_t value = 0, wanted = width == 8 ? label : (uint32_t)label;
    memcpy(&value, area + at, width);
    printf("%s: %s\n", how, value == wanted ? "as it is" : value ? "elsewhere" : "nothing");
    memset(area, 0, sizeof area);
}

#define AFTER_LOAD(store)                                                                                              \
    __asm__ volatile("1: fldz\n\t lea 1b(%%rip), %0\n\t" store "\n\t fninit" : "=r"(label) : "r"(area) : "memory")
#define AFTER_FAULT(store)                                                                                             \
    __asm__ volatile("fldcw %2\n\t fld1\n\t fldz\n\t 1: fdivrp\n\t lea 1b(%%rip), %0\n\t" store                        \
                     "\n\t fnclex\n\t fninit"                                                                          \
                     : "=&r"(label)                                                                                    \
                     : "r"(area), "m"(unmasked), "a"(3), "d"(0)                                                        \
                     : "memory")

static void environments(void)
{
    AFTER_LOAD("fnstenv (%1)");
    told("environment", 12, 4);
    AFTER_LOAD("fnstenv 64(%1)\n\t fldenv 64(%1)\n\t fnstenv (%1)");
    told("loaded again", 12, 4);
    AFTER_LOAD("fnsave (%1)");
    told("state", 12, 4);
    AFTER_FAULT("fnstenv (%1)");
    told("environment, with an exception", 12, 4);
    for (int k = 0; k < 300; k++) {
        AFTER_LOAD("fnstenv (%1)");
        if (*(uint32_t *)(area + 12) != (uint32_t)label) printf("otherwise the time %d\n", k);
    }
}

static int has_xsave(void)
{
    uint32_t a = 1, b, c = 0, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return c >> 27 & 1;
}

static void whole_states(void)
{
    AFTER_FAULT("fxsave (%1)");
    told("everything, short", 8, 4);
    AFTER_FAULT("fxsave64 (%1)");
    told("everything", 8, 8);
    if (!has_xsave()) return;
    AFTER_FAULT("xsave64 (%1)");
    if (*(uint64_t *)(area + 512) & 1) told("extended", 8, 8);
    AFTER_FAULT("xsave (%1)");
    if (*(uint64_t *)(area + 512) & 1) told("extended, short", 8, 4);
}

static sigjmp_buf back;
static void on_exception(int signo, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    printf("signal %d, code %d\n", signo, info->si_code);
    memcpy(area, u->uc_mcontext.fpregs, 32);
    told("handler", 8, 8);
    siglongjmp(back, 1);
}

static void handler(void)
{
    struct sigaction s = {.sa_sigaction = on_exception, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &s, NULL);
    if (!sigsetjmp(back, 1))
        __asm__ volatile("lea 1f(%%rip), %%rax\n\t mov %%rax, %0\n\t fldcw %1\n\t fld1\n\t fldz\n\t 1: fdivrp\n\t fwait"
                         : "=m"(label)
                         : "m"(unmasked)
                         : "rax", "memory");
    __asm__ volatile("fninit");
}

/* As code does that is to find out where it is, and has neither call nor RIP to do it with. */
static void made(void)
{
    static const uint8_t code[] = {
        0x90, 0xd9, 0xee,       /* nop; fldz */
        0xd9, 0x74, 0x24, 0xe0, /* fnstenv -32(%rsp) */
        0x8b, 0x44, 0x24, 0xec, /* mov -20(%rsp), %eax */
        0xdd, 0xd8, 0xc3,       /* fstp %st(0); ret */
    };
    uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    memcpy(p, code, sizeof code);
    uint32_t (*where)(void) = (uint32_t(*)(void))(uintptr_t)p;
    printf("made: %s\n", where() == (uint32_t)(uintptr_t)(p + 1) ? "as it is" : "elsewhere");
}

int main(void)
{
    environments();
    whole_states();
    handler();
    made();
    return 0;
}
