/* Instructions that trap or fault in the program's own text, in procedures that hardly do anything else: in front, in
 * the middle and at the end of them, where whoever overwrites code has overwritten some. The handler tells where it was
 * called, behind a trap and at a fault, and what the procedure goes on to count. */
#include <signal.h>
#include <stdio.h>
#include <sys/ucontext.h>

#define PROC(name, text)                                                                                               \
    __asm__(".text\n .p2align 4\n .globl " #name "\n .type " #name ",@function\n" #name ":\n" text                     \
            "\n ret\n .size " #name ",.-" #name "\n");                                                                 \
    extern char name[];

#define ALL(ROW)                                                                                                       \
    ROW(first, "int3\n inc %eax", 0)                                                                                   \
    ROW(second, "nop\n int3\n nop", 0)                                                                                 \
    ROW(middle, "inc %eax\n inc %eax\n int3\n inc %eax", 0)                                                            \
    ROW(last, "lea 1(%rax,%rax), %eax\n inc %eax\n inc %eax\n inc %eax\n int3", 0)                                     \
    ROW(pair, "int3\n int3\n inc %eax", 0)                                                                             \
    ROW(prefixed, "nop\n .byte 0x66, 0xcc\n nop", 0)                                                                   \
    ROW(rex, ".byte 0x48, 0xcc\n nop", 0)                                                                              \
    ROW(two_bytes, "nop\n .byte 0xcd, 3\n nop", 0)                                                                     \
    ROW(ice, ".byte 0xf1\n inc %eax\n inc %eax", 0)                                                                    \
    ROW(looped, "mov $3, %ecx\n1: inc %eax\n int3\n dec %ecx\n jnz 1b", 0)                                             \
    ROW(undefined, "nop\n ud2\n inc %eax", 2)                                                                          \
    ROW(halted, "hlt\n inc %eax\n inc %eax", 1)                                                                        \
    ROW(elsewhere, "inc %eax\n add 0x10, %eax\n inc %eax", 7)

#define DEFINE(name, text, size) PROC(name, text)
ALL(DEFINE)

static char *volatile now;
static volatile int size;

static void handler(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    long addr = (long)info->si_addr;
    printf("  signal %d code %d at %ld, addr %ld, eax %d, ecx %d\n", signo, info->si_code,
           (long)(g[REG_RIP] - (long)now), addr > 4096 ? addr - (long)now : addr, (int)g[REG_RAX], (int)g[REG_RCX]);
    g[REG_RIP] += size ? size : g[REG_RIP] == (greg_t)now; /* int1, which not every hypervisor takes to be over */
}

static void try(const char *name, char *at, int skipped)
{
    int sum = 1, rest = 0;
    now = at;
    size = skipped;
    printf("%s\n", name);
    __asm__ volatile("call *%2" : "+a"(sum), "+c"(rest) : "d"(at) : "memory", "cc");
    printf("  %d %d\n", sum, rest);
}

int main(void)
{
    static const int signals[] = {SIGTRAP, SIGSEGV, SIGILL};
    const struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) sigaction(signals[i], &act, NULL);
    for (int round = 0; round < 2; round++) {
#define TRY(name, text, size) try(#name, name, size);
        ALL(TRY)
    }
    return 0;
}
