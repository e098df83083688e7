/* The vector state of whatever processor this runs on: registers of every width stay what they are over code that
 * is instrumented, system calls and signals, and XSAVE's instructions, where there are any, write and read images
 * of many masks. What there is is asked of the processor, so what is printed depends on it. */
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SSE = 16, AVX = 32, AVX512 = 64, REGISTERS = 16, IMAGE = 12 << 10 };

static uint8_t in[REGISTERS][64] __attribute__((aligned(64))), out[REGISTERS][64] __attribute__((aligned(64)));
static uint64_t image[IMAGE / 8] __attribute__((aligned(64))), back[IMAGE / 8] __attribute__((aligned(64)));
static volatile uint64_t rounds;

static unsigned long features(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a | (unsigned long)d << 32;
}

static unsigned width(void)
{
    unsigned long f = features();
    return (f & 0xe6) == 0xe6 ? AVX512 : (f & 6) == 6 ? AVX : SSE;
}

/* Code with blocks, calls and a division, for snippets to be put into; no vector instruction. */
#define WORK                                                                                                           \
    "mov $200, %%ecx; 1: test $3, %%cl; jnz 2f; lea 3f(%%rip), %%rax; push %%rax; jmp 4f; 2: nop\n"                    \
    "3: dec %%ecx; jnz 1b; mov $39, %%eax; syscall; mov %%eax, %%edi\n"                                                \
    "mov $10, %%esi; mov $62, %%eax; syscall; jmp 5f\n" /* SIGUSR1 */                                                  \
    "4: mov $7, %%eax; xor %%edx, %%edx; mov $2, %%esi; div %%esi; ret; 5:\n"
#define CLOBBERS "rax", "rcx", "rdx", "rsi", "rdi", "r11", "cc", "memory"

#define KEEP(NAME, MOVE, REGISTER)                                                                                     \
    __attribute__((noinline)) static void NAME(void)                                                                   \
    {                                                                                                                  \
        __asm__ volatile("sub $128, %%rsp\n"                                                                           \
                         ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"                                              \
                         " " MOVE " 64*\\r(%0), %%" REGISTER "\\r\n .endr\n" WORK                                      \
                         ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"                                              \
                         " " MOVE " %%" REGISTER "\\r, 64*\\r(%1)\n .endr\n add $128, %%rsp"                           \
                         :                                                                                             \
                         : "r"(in), "r"(out)                                                                           \
                         : CLOBBERS);                                                                                  \
    }
KEEP(keep_xmm, "movups", "xmm")
KEEP(keep_ymm, "vmovdqu", "ymm")
KEEP(keep_zmm, "vmovdqu64", "zmm")

static void handler(int signo)
{
    (void)signo;
    rounds++;
    if (width() == AVX512) __asm__ volatile("vpternlogd $255, %zmm0, %zmm0, %zmm3; kxnorw %k1, %k1, %k1");
    else if (width() == AVX) __asm__ volatile("vxorps %ymm3, %ymm3, %ymm3");
    else __asm__ volatile("xorps %xmm3, %xmm3");
}

static void registers_are_kept(void)
{
    unsigned w = width(), wrong = 0;
    for (unsigned r = 0; r < REGISTERS; r++) memset(in[r], (int)(r + 17), 64);
    if (w == AVX512) keep_zmm();
    else if (w == AVX) keep_ymm();
    else keep_xmm();
    for (unsigned r = 0; r < REGISTERS; r++) wrong += memcmp(in[r], out[r], w) != 0;
    printf("%u bytes wide: %u registers lost, %lu signals\n", w, wrong, (long)rounds);
    if (w >= AVX) __asm__ volatile("vzeroupper");
}

/* What follows is also executed one step at a time: words, not bytes. */
enum { UNTOUCHED = 0xaa };
static const uint64_t untouched = UNTOUCHED * 0x0101010101010101u;

/* How far the instruction has written. */
static unsigned extent(void)
{
    const uint8_t *bytes = (const uint8_t *)image;
    unsigned n = IMAGE;
    while (n && image[n / 8 - 1] == untouched) n -= 8;
    while (n && bytes[n - 1] == UNTOUCHED) n--;
    return n;
}

static void fill(uint64_t *to, uint64_t word, unsigned long words)
{
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(word) : "memory");
}

static void copy(uint64_t *to, const uint64_t *from, unsigned long words)
{
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

enum form { STANDARD, OPTIMISED, COMPACTED };

static void save(enum form form, unsigned long mask)
{
    unsigned low = (unsigned)mask, high = (unsigned)(mask >> 32);
    fill(image, untouched, IMAGE / 8);
    fill(image + 512 / 8, 0, 64 / 8);
    if (form == STANDARD) __asm__ volatile("xsave64 (%0)" : : "r"(image), "a"(low), "d"(high) : "memory");
    if (form == OPTIMISED) __asm__ volatile("xsaveopt64 (%0)" : : "r"(image), "a"(low), "d"(high) : "memory");
    if (form == COMPACTED) __asm__ volatile("xsavec64 (%0)" : : "r"(image), "a"(low), "d"(high) : "memory");
    copy(back, image, IMAGE / 8);
    __asm__ volatile("xrstor64 (%0)" : : "r"(back), "a"(low), "d"(high) : "memory");
}

static void images_are_written(void)
{
    static const unsigned long masks[] = {1, 2, 3, 4, 7, 0xe0, 0xe7, 0xee, 0x200, 0x2ff, ~0ul};
    unsigned a, b, c, d;
    __cpuid_count(0xd, 1, a, b, c, d);
    for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++) {
        save(STANDARD, masks[i]);
        printf("%#lx: %u", masks[i], extent());
        if (a & 1) save(OPTIMISED, masks[i]);
        if (a & 2) save(COMPACTED, masks[i]);
        printf(" %lx\n", (unsigned long)(image[520 / 8] >> 56) << 56);
    }
}

int main(void)
{
    signal(SIGUSR1, handler);
    registers_are_kept();
    if (features()) images_are_written();
    return 0;
}
