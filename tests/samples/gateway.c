/* What a system call leaves alone: all registers but rax, rcx and r11, the vector registers, rounding modes, and every
 * flag, whatever they were and whichever way the call takes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* clang-format off */
enum { CF = 1, PF = 4, AF = 0x10, ZF = 0x40, SF = 0x80, DF = 0x400, OF = 0x800, ID = 0x200000,
       OURS = CF | PF | AF | ZF | SF | DF | OF | ID, GENERAL = 11, VECTORS = 16 };

/* The order is that of the loads and stores below. */
struct state {
    uint64_t general[GENERAL]; /* rbx rdx rsi rdi r8 r9 r10 r12 r13 r14 r15 */
    uint64_t flags, answer, r11;
    uint32_t mxcsr;
    uint16_t control;
    unsigned char vector[VECTORS][16];
};
/* clang-format on */

#define EACH_VECTOR(f)  f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define TEXT(x)         #x
#define LOAD_VECTOR(n)  "movups 118+" TEXT(n) "*16(%%rbp), %%xmm" TEXT(n) "\n"
#define STORE_VECTOR(n) "movups %%xmm" TEXT(n) ", 118+" TEXT(n) "*16(%%rbp)\n"
_Static_assert(__builtin_offsetof(struct state, mxcsr) == 112 && __builtin_offsetof(struct state, control) == 116 &&
                   __builtin_offsetof(struct state, flags) == 88,
               "the code below");
_Static_assert(__builtin_offsetof(struct state, vector) == 118, "the code below");

__attribute__((noinline)) static void call(const struct state *before, struct state *after, long number)
{
    struct {
        const struct state *before;
        struct state *after;
        uint32_t mxcsr;
        uint16_t control;
    } kept = {before, after, 0, 0};
    __asm__ volatile(
        "stmxcsr 16(%[kept])\n fnstcw 20(%[kept])\n"
        "sub $128, %%rsp\n push %%rbp\n push %[kept]\n mov %[before], %%rbp\n" EACH_VECTOR(
            LOAD_VECTOR) "ldmxcsr 112(%%rbp)\n fldcw 116(%%rbp)\n"
                         "mov 0(%%rbp), %%rbx\n mov 8(%%rbp), %%rdx\n mov 16(%%rbp), %%rsi\n mov 24(%%rbp), %%rdi\n"
                         "mov 32(%%rbp), %%r8\n mov 40(%%rbp), %%r9\n mov 48(%%rbp), %%r10\n mov 56(%%rbp), %%r12\n"
                         "mov 64(%%rbp), %%r13\n mov 72(%%rbp), %%r14\n mov 80(%%rbp), %%r15\n"
                         "pushq 88(%%rbp)\n popfq\n"
                         "syscall\n"
                         "pushfq\n cld\n"
                         "mov 8(%%rsp), %%rbp\n mov 8(%%rbp), %%rbp\n" /* kept.after */
                         "mov %%rax, 96(%%rbp)\n mov %%r11, 104(%%rbp)\n popq 88(%%rbp)\n"
                         "stmxcsr 112(%%rbp)\n fnstcw 116(%%rbp)\n"
                         "mov %%rbx, 0(%%rbp)\n mov %%rdx, 8(%%rbp)\n mov %%rsi, 16(%%rbp)\n mov %%rdi, 24(%%rbp)\n"
                         "mov %%r8, 32(%%rbp)\n mov %%r9, 40(%%rbp)\n mov %%r10, 48(%%rbp)\n mov %%r12, 56(%%rbp)\n"
                         "mov %%r13, 64(%%rbp)\n mov %%r14, 72(%%rbp)\n mov %%r15, 80(%%rbp)\n" EACH_VECTOR(
                             STORE_VECTOR) "pop %%rbx\n pop %%rbp\n ldmxcsr 16(%%rbx)\n fldcw 20(%%rbx)\n"
                                           "add $128, %%rsp\n"
        : "+a"(number)
        : [kept] "c"(&kept), [before] "r"(before)
        : "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory", "xmm0",
          "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
          "xmm14", "xmm15");
}

/* In the order of the structure: rdx is argument 2, rsi 1, rdi 0, r10 3. */
static void arguments(struct state *s, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    s->general[3] = a, s->general[2] = b, s->general[1] = c, s->general[6] = d;
}

static void fill(struct state *s, unsigned flags)
{
    unsigned char *byte = (unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) byte[i] = (unsigned char)(i * 29 + flags * 7 + 3);
    s->flags = 0x202 | flags;
    s->mxcsr = 0x1f80 | (flags & CF ? 0x6000 : 0x2000) | (flags & ZF ? 0x8000 : 0);
    s->control = (uint16_t)(0x7f | (flags & CF ? 0xc00 : 0x800));
}

/* What has changed, as letters. */
static const char *changed(const struct state *a, const struct state *b, char *to)
{
    int n = 0;
    if (memcmp(a->general, b->general, sizeof a->general)) to[n++] = 'g';
    if ((a->flags ^ b->flags) & OURS) to[n++] = 'f';
    if ((b->r11 ^ b->flags) & OURS) to[n++] = 'r';
    if (a->mxcsr != b->mxcsr) to[n++] = 'm';
    if (a->control != b->control) to[n++] = 'c';
    if (memcmp(a->vector, b->vector, sizeof a->vector)) to[n++] = 'v';
    to[n] = 0;
    return to;
}

enum { ALL_FLAGS = 256 };
static unsigned flags_of(unsigned i)
{
    static const unsigned each[] = {CF, PF, AF, ZF, SF, DF, OF, ID};
    unsigned flags = 0;
    for (int bit = 0; bit < 8; bit++)
        if (i >> bit & 1) flags |= each[bit];
    return flags;
}

static void look(const char *name, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    struct state before, after;
    char text[8], worst[8] = "";
    int64_t answer = 0;
    unsigned answers = 0;
    for (unsigned i = 0; i < ALL_FLAGS; i++) {
        fill(&before, flags_of(i));
        memset(&after, 0, sizeof after);
        arguments(&before, a, b, c, d);
        call(&before, &after, number);
        if (*changed(&before, &after, text)) strcpy(worst, text);
        if (i == 0 || (int64_t)after.answer != answer) answers++;
        answer = (int64_t)after.answer;
    }
    printf("%s: answers %u, %s, changed '%s'\n", name, answers, answer < 0 ? strerror((int)-answer) : "fine", worst);
}

static volatile uint64_t flags_in_handler;
static volatile unsigned handled, odd_frames;
static void on_signal(int sig, siginfo_t *info, void *context)
{
    const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)info;
    flags_in_handler |= __builtin_ia32_readeflags_u64();
    odd_frames += g[REG_EFL] != g[REG_R11]; /* the call has kept them there */
    handled += sig == SIGUSR1;
}

int main(void)
{
    struct sigaction handles = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &handles, NULL);
    uint64_t mask = 0, old = 0;
    struct sigaction action;
    stack_t stack;
    char buffer[512];
    struct timespec moment = {0, 1};
    int folder = open("/", O_RDONLY | O_DIRECTORY);
#define LOOK(n, ...) look(#n, SYS_##n, __VA_ARGS__)
#define AT(p)        (uint64_t)(uintptr_t)(p)
    LOOK(getppid, 1, 2, 3, 4);
    LOOK(sched_yield, 1, 2, 3, 4);
    LOOK(write, 1, AT(buffer), 0, 0);
    LOOK(read, (uint64_t)-1, AT(buffer), 1, 0);
    LOOK(rt_sigprocmask, SIG_BLOCK, AT(&mask), AT(&old), 8);
    LOOK(rt_sigpending, AT(&mask), 8, 0, 0);
    LOOK(rt_sigaction, SIGUSR1, 0, AT(&action), 8);
    LOOK(sigaltstack, 0, AT(&stack), 0, 0);
    LOOK(kill, (uint64_t)getpid(), 0, 0, 0);
    LOOK(kill, (uint64_t)getpid(), SIGUSR1, 0, 0);
    LOOK(tkill, (uint64_t)getpid(), SIGUSR1, 0, 0);
    printf("handled %u, with the direction flag: %s\n", handled, flags_in_handler & DF ? "yes" : "no");
    printf("frames with other flags: %u\n", odd_frames);
    LOOK(close, (uint64_t)-1, 0, 0, 0);
    LOOK(close, 900, 0, 0, 0);
    LOOK(dup2, 1, 1, 0, 0);
    LOOK(ppoll, 0, 0, AT(&moment), 0);
    LOOK(wait4, 0, 0, 1, 0);
    LOOK(getdents64, (uint64_t)folder, AT(buffer), 1, 0);
    LOOK(readlink, AT("/proc/self/no"), AT(buffer), sizeof buffer, 0);
    LOOK(mprotect, AT(buffer) & ~4095ull, 0, 3, 0);
    LOOK(munmap, 1, 1, 0, 0);
    LOOK(brk, 0, 0, 0, 0);
    LOOK(futex, AT(&mask), 1, 1, 0);
    LOOK(execve, AT("/nonesuch/program"), 0, 0, 0);
    LOOK(arch_prctl, 0x1003, AT(buffer), 0, 0);
    look("number 511", 511, 1, 2, 3, 4);
    look("number 600", 600, 1, 2, 3, 4);
    look("number -1", -1, 1, 2, 3, 4);
    return 0;
}
