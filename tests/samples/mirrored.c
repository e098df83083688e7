/* Accesses of many kinds to a piece of memory that a tool puts elsewhere (tests/cli/mirror_tool.c): it prints what they
 * find, how registers and flags are afterwards, and what a handler sees of those that fault. Around each piece is a
 * page that cannot be accessed. With the argument "ticks" signals come all the time, whose handler does likewise; with
 * "own" the code that writes lies where the tool puts what it writes.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

enum { HERE = 0x20001000, THERE = 0x30001000, SIZE = 4096 }; /* the tool knows these */

static uint8_t out[SIZE];
static uint64_t seed = 1;

static void *piece(uint64_t at)
{
    char *p = mmap((void *)(at - SIZE), 3 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED || mprotect(p + SIZE, SIZE, PROT_READ | PROT_WRITE)) return NULL;
    return p + SIZE;
}

__attribute__((noinline)) static void fill(uint64_t *p)
{
    for (unsigned i = 0; i < SIZE / 8; i++) p[i] = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
}

__attribute__((noinline)) static uint64_t sum(const uint64_t *p)
{
    uint64_t s = 0;
    for (unsigned i = 0; i < SIZE / 8; i++) s = (s ^ p[i]) * 0x100000001b3ull;
    return s;
}

__attribute__((noinline)) static void integers(char *p)
{
    uint64_t a = 5, b = 7, flags;
    __asm__ volatile(
        "add %0, 8(%3)\n\tadc 16(%3,%1,8), %0\n\txadd %1, 24(%3)\n\tlock cmpxchg %0, 32(%3)\n\t"
        "notb 41(%3)\n\tshll $3, 44(%3)\n\tcmpw $77, 48(%3)\n\tsetc 50(%3)\n\tbtsl $5, 52(%3)\n\t"
        "imul $1000003, 56(%3), %%r8\n\tmovzbl 60(%3), %%r9d\n\tlea 1(%3), %%r10\n\tcmovnz 64(%3), %%r8\n\t"
        "xchg %%r8, 72(%3)\n\tpushq 80(%3)\n\tpopq 88(%3)\n\tmovq $-3, 96(%3)\n\tdivl 104(%3)\n\t"
        "pushfq\n\tpop %2"
        : "+r"(a), "+r"(b), "=r"(flags)
        : "r"(p), "a"(1234567), "d"(0)
        : "memory", "cc", "r8", "r9", "r10");
    printf("integers %#lx %#lx %#lx %#lx\n", (long)a, (long)b, (long)(flags & 0x8c5), (long)sum((uint64_t *)p));
}

/* Addresses that are written in other ways. */
__attribute__((noinline)) static void ways(char *p)
{
    uint64_t a, b, c, d, e, there = (uint64_t)__builtin_thread_pointer();
    __asm__ volatile("movabs 0x20001008, %%rax\n\tmov %%rax, %0\n\tmov %%fs:16(%6), %1\n\tmov %%gs:24(%5), %2\n\t"
                     "addr32 mov 32(%%ebx), %3\n\tmov $9, %%eax\n\txlat\n\tmovzbl %%al, %%eax\n\tmov %%rax, %4\n\t"
                     "movabs %%al, 0x20001040"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d), "=&r"(e)
                     : "b"(p), "r"((uint64_t)p - there)
                     : "rax", "memory");
    printf("ways %#lx %#lx %#lx %#lx %#lx %#lx\n", (long)a, (long)b, (long)c, (long)d, (long)e,
           (long)sum((uint64_t *)p));
}

__attribute__((noinline)) static void vectors(char *p)
{
    double x = 0;
    uint64_t bits;
    __asm__ volatile(
        "movdqu 3(%1), %%xmm1\n\tpaddb 16(%1), %%xmm1\n\tpshufd $0x1b, 32(%1), %%xmm2\n\tmovaps %%xmm1, 48(%1)\n\t"
        "cvtsi2sdl 64(%1), %0\n\tmovups %%xmm2, 65(%1)\n\tmovntdq %%xmm2, 96(%1)\n\tpextrw $3, %%xmm2, %%eax\n\t"
        "fildl 112(%1)\n\tfistpll 120(%1)\n\tfnstcw 130(%1)\n\tpcmpeqd %%xmm3, %%xmm3\n\tpsrlw $1, %%xmm3\n\t"
        "punpcklqdq %%xmm2, %%xmm3\n\tlea 144(%1), %%rdi\n\tmaskmovdqu %%xmm2, %%xmm1\n\tmov %%rdi, %%rcx"
        : "+x"(x), "+r"(p)
        :
        : "xmm1", "xmm2", "xmm3", "rax", "rcx", "rdi", "memory", "st");
    memcpy(&bits, &x, 8);
    printf("vectors %#lx %#lx\n", (long)bits, (long)sum((uint64_t *)p));
}

__attribute__((target("avx2"), noinline)) static void wide(char *p)
{
    uint64_t a;
    __asm__ volatile(
        "vmovdqu 5(%1), %%ymm1\n\tvpaddd 32(%1,%2,4), %%ymm1, %%ymm8\n\tvmovdqu %%ymm8, 96(%1)\n\t"
        "vpcmpeqd %%ymm9, %%ymm9, %%ymm9\n\tvpsrldq $9, %%ymm9, %%ymm9\n\tvpmaskmovd %%ymm8, %%ymm9, 160(%1)\n\t"
        "vpbroadcastb 7(%1), %%xmm10\n\tvpextrq $1, %%xmm10, %0\n\tandn 200(%1), %0, %0\n\tvzeroupper"
        : "=&r"(a)
        : "r"(p), "r"(2ul)
        : "xmm1", "xmm8", "xmm9", "xmm10", "memory", "cc");
    printf("wide %#lx %#lx\n", (long)a, (long)sum((uint64_t *)p));
}

#define STRING(text, di, si, count, a)                                                                                 \
    do {                                                                                                               \
        char *to = (di), *from = (si);                                                                                 \
        uint64_t n = (count), v = (a), flags;                                                                          \
        __asm__ volatile("cmp %%rcx, %%rcx\n\t" text "\n\tpushfq\n\tpop %4\n\tcld"                                     \
                         : "+D"(to), "+S"(from), "+c"(n), "+a"(v), "=r"(flags)                                         \
                         :                                                                                             \
                         : "memory", "cc");                                                                            \
        printf("%s: %ld %ld %lu %#lx %#lx %#lx %#lx\n", text, (long)(to - (di)), (long)(from - (si)), (long)n,         \
               (long)v, (long)(flags & 0x8c5), (long)sum((uint64_t *)p), (long)sum((uint64_t *)out));                  \
    } while (0)

__attribute__((noinline)) static void strings(char *p)
{
    char *o = (char *)out;
    STRING("rep movsb", o + 3, p + 5, 999, 0);
    STRING("rep movsq", p + 2000, o + 16, 50, 0);
    STRING("rep movsl", p + 1000, p + 96, 60, 0);
    STRING("std\n\trep movsw", p + 3000, p + 1500, 100, 0);
    STRING("movsb", p + 9, o + 9, 4, 0);
    STRING("movsl", o + 11, p + 80, 4, 0);
    STRING("std\n\tmovsq", p + 160, p + 80, 4, 0);
    STRING("rep stosw", p + 400, o, 33, 0x4142);
    STRING("stosq", p + 600, o, 33, 0x4142434445464748);
    STRING("lodsb", o, p + 601, 33, 0);
    STRING("rep lodsl", o, p + 800, 7, 0);
    STRING("repe cmpsb", p + 2000, o + 16, 500, 0);
    STRING("repne cmpsw", o + 100, p + 700, 200, 0);
    STRING("cmpsq", p + 700, p + 700, 200, 0);
    STRING("repne scasb", p + 590, o, 100, 0x43);
    STRING("scasl", p + 600, o, 100, 0x45464748);
    STRING("rep movsb", p + 8, o, 0, 0);
    STRING("rep movsb %%gs:(%%rsi), (%%rdi)", o + 64, p + 64, 77, 0);
    STRING("lodsw %%gs:(%%rsi), %%ax", o + 64, p + 66, 77, 0);
}

/* --- faults --- */

static sigjmp_buf back;
static uint64_t regs[16];

static void on_fault(int signo, siginfo_t *info, void *context)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const ucontext_t *u = context;
    for (unsigned i = 0; i < 16; i++) regs[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
    siglongjmp(back, signo + (info->si_code > 0 ? 0 : 100));
}

__attribute__((noinline)) static void store_behind(char *p)
{
    __asm__ volatile("mov $1, %%eax\n\tmov $2, %%ecx\n\tmov $3, %%edx\n\tmov $5, %%esi\n\tmov $8, %%r8d\n\t"
                     "mov $9, %%r9d\n\tmov $10, %%r10d\n\tmov $11, %%r11d\n\tmovq %%rsi, 4093(%0)"
                     :
                     : "D"(p)
                     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");
}

__attribute__((noinline)) static void copy_behind(char *p, char *from, uint64_t n)
{
    __asm__ volatile("rep movsb" : "+D"(p), "+S"(from), "+c"(n) : : "memory");
}

__attribute__((noinline)) static void copy_from_behind(char *to, char *p)
{
    __asm__ volatile("movsq" : "+D"(to), "+S"(p) : : "memory");
}

static void faults(char *p)
{
    char *o = (char *)out;
    int signo;
    if (!(signo = sigsetjmp(back, 1))) store_behind(p);
    printf("store: %d, %lu %lu %lu %lu, %ld, %lu %lu %lu %lu\n", signo, (long)regs[0], (long)regs[1], (long)regs[2],
           (long)regs[6], (long)(regs[7] - (uint64_t)p), (long)regs[8], (long)regs[9], (long)regs[10], (long)regs[11]);
    if (!(signo = sigsetjmp(back, 1))) copy_behind(p + 4000, o, 200);
    printf("copy: %d, %ld %ld %lu\n", signo, (long)(regs[7] - (uint64_t)p), (long)(regs[6] - (uint64_t)o),
           (long)regs[1]);
    if (!(signo = sigsetjmp(back, 1))) copy_behind(o, p + 4090, 200);
    printf("copy: %d, %ld %ld %lu\n", signo, (long)(regs[7] - (uint64_t)o), (long)(regs[6] - (uint64_t)p),
           (long)regs[1]);
    if (!(signo = sigsetjmp(back, 1))) copy_behind(p + 4000, p + 3999, 200);
    printf("copy: %d, %ld %ld %lu\n", signo, (long)(regs[7] - (uint64_t)p), (long)(regs[6] - (uint64_t)p),
           (long)regs[1]);
    if (!(signo = sigsetjmp(back, 1))) copy_from_behind(o, p + 4091);
    printf("word: %d, %ld %ld\n", signo, (long)(regs[7] - (uint64_t)o), (long)(regs[6] - (uint64_t)p));
    printf("%#lx %#lx\n", (long)sum((uint64_t *)p), (long)sum((uint64_t *)out));
}

/* Code that stores where it was told, at the address that it gets, and then runs on behind it in the same page. */
static void own(char *p)
{
    static const uint8_t code[] = {0x89, 0x37,       /* mov %esi, (%rdi) */
                                   0x8d, 0x46, 0x01, /* lea 1(%rsi), %eax */
                                   0xf3, 0xa4,       /* rep movsb */
                                   0x48, 0x83, 0xc0, 0x02, 0xc3,
                                   /* add $2, %rax; ret */};
    int (*run)(char *, long) = (int (*)(char *, long))(uintptr_t)(THERE + 0x800);
    mprotect((void *)THERE, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy((void *)(THERE + 0x800), code, sizeof code);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t n = 0, at = (uint64_t)p + 8 * i, answer;
        __asm__ volatile("call *%3" : "=a"(answer), "+c"(n), "+D"(at) : "r"(run), "S"(100 + i) : "memory", "cc");
        if (i % 20 == 0) printf("%ld\n", (long)answer);
    }
    uint64_t s = 0;
    for (unsigned i = 0; i < 100; i++) s = s * 31 + ((uint32_t *)p)[2 * i];
    printf("%#lx\n", (long)s);
}

static volatile long ticks;

/* Leaves everything as it was. */
static void on_tick(int signo)
{
    char *to = (char *)HERE + 4000, *from = to;
    uint64_t n = 20;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    __asm__ volatile("notq -8(%0)\n\tnotq -8(%0)" : : "r"(from) : "memory");
    ticks += signo != 0;
}

static void tick(long microseconds)
{
    struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, microseconds}, {0, microseconds}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    bool ticking = argc > 1 && !strcmp(argv[1], "ticks");
    char *p = piece(HERE);
    if (!p || !piece(THERE)) return 1;
    if (argc > 1 && !ticking) {
        own(p);
        return 0;
    }
    sigaction(SIGSEGV, &act, NULL);
    fill((uint64_t *)p);
    integers(p);
    ways(p);
    vectors(p);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) wide(p);
    if (ticking) tick(150);
    for (unsigned round = 0; round < (ticking ? 100 : 1); round++) {
        if (round) integers(p);
        strings(p);
    }
    if (ticking) tick(0);
    faults(p);
    return 0;
}
