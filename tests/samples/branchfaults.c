/* Returns, indirect jumps and calls that fault, where they read their target or at the target itself: a handler sees
 * the registers and flags that they had, those included that whoever translates such branches needs himself. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static sigjmp_buf behind;
static const char *kind;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    const greg_t *g = ((const ucontext_t *)context)->uc_mcontext.gregs;
    printf("%s: signal %d, address %p, rcx %#llx, rdx %#llx, rax %#llx, r8 %#llx, r11 %#llx, zero %lld\n", kind, signo,
           info->si_addr, g[REG_RCX], g[REG_RDX], g[REG_RAX], g[REG_R8], g[REG_R11], g[REG_EFL] >> 6 & 1);
    siglongjmp(behind, 1);
}

#define SET                                                                                                            \
    "mov $0x11100, %%ecx\n mov $0x22200, %%edx\n mov $0x33300, %%eax\n mov $0x44400, %%r8d\n mov $0x55500, %%r11d\n"   \
    "cmp %%eax, %%eax\n"
#define AT(name, code)                                                                                                 \
    kind = name;                                                                                                       \
    if (!sigsetjmp(behind, 1)) __asm__ volatile(SET code : : : "rax", "rcx", "rdx", "r8", "r11", "memory")

static void all(void)
{
    AT("return", "mov $0x10, %%esp\n ret");
    AT("return that pops", "mov $0x10, %%esp\n ret $16");
    AT("jump by rcx", "jmp *0x20(%%rcx)");
    AT("jump by rdx", "jmp *0x20(%%rdx)");
    AT("jump by another", "jmp *0x20(%%rax)");
    AT("call by two", "call *0x20(%%rax, %%rdx)");
    AT("jump to rcx", "jmp *%%rcx");
    AT("jump to rdx", "jmp *%%rdx");
    AT("jump to another", "jmp *%%r8");
}

int main(void)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &act, NULL);
    all();
    all();
    return 0;
}
