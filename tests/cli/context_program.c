/* Loads vectors, the x87 stack and settings with what is known, calls `hook`, and tells what they are then; raises a
 * signal at which they are likewise. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint8_t given[16][32], found[16][32];
static long double tops[2];
static uint32_t mxcsr;
static uint16_t control;

__attribute__((noinline)) void hook(void) { __asm__ volatile("nop"); }

#define EACH(x)      x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15)
#define LOAD(n)      "vmovdqu " #n "*32(%0), %%ymm" #n "\n\t"
#define STORE(n)     "vmovdqu %%ymm" #n ", " #n "*32(%0)\n\t"
#define LOAD_SSE(n)  "movdqu " #n "*32(%0), %%xmm" #n "\n\t"
#define STORE_SSE(n) "movdqu %%xmm" #n ", " #n "*32(%0)\n\t"

static uint64_t mask;
static uint8_t wide[64], wider[64];

__attribute__((target("avx512f"))) static void load_512(void)
{
    __asm__ volatile("kmovw %0, %%k3\n\tvinserti64x4 $1, 5*32(%1), %%zmm3, %%zmm3\n\tvmovdqu64 6*32(%1), %%zmm20"
                     :
                     : "r"(0x5a5a), "r"(given)
                     : "memory");
}

__attribute__((target("avx512f"))) static void store_512(void)
{
    __asm__ volatile("kmovw %%k3, %k0\n\tvmovdqu64 %%zmm3, (%1)\n\tvmovdqu64 %%zmm20, (%2)"
                     : "=&r"(mask)
                     : "r"(wide), "r"(wider)
                     : "memory");
}

static void hooked(int avx, int avx512)
{
    const uint32_t flushes = 0x9f80, plain = 0x1f80;
    const uint16_t rounds = 0x67f;
    __asm__ volatile("fninit\n\tfldcw %0\n\tfldpi\n\tfld1\n\tldmxcsr %1" : : "m"(rounds), "m"(flushes) : "memory");
    if (avx) __asm__ volatile(EACH(LOAD) : : "r"(given));
    else __asm__ volatile(EACH(LOAD_SSE) : : "r"(given));
    if (avx512) load_512();
    __asm__ volatile("sub $128, %%rsp\n\tcall hook\n\tadd $128, %%rsp"
                     :
                     :
                     : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
    if (avx512) store_512();
    if (avx) __asm__ volatile(EACH(STORE) "vzeroupper" : : "r"(found) : "memory");
    else __asm__ volatile(EACH(STORE_SSE) : : "r"(found) : "memory");
    __asm__ volatile("fstpt %0\n\tfstpt %1\n\tfnstcw %2\n\tstmxcsr %3\n\tfninit\n\tldmxcsr %4"
                     : "=m"(tops[0]), "=m"(tops[1]), "=m"(control), "=m"(mxcsr)
                     : "m"(plain));
}

static void on_signal(int signo) { (void)signo; }

/* Flags that are the program's, and that it does not look at: at an entry, behind a call. */
void sets_flags(void);
__asm__(".type sets_flags, @function\n"
        "sets_flags: mov $3, %eax\n"
        "       cmp $3, %eax\n"
        "       call makes_flags\n"
        "       nop\n"
        "       ret\n"
        "       .size sets_flags, . - sets_flags\n"
        "       .type makes_flags, @function\n"
        "makes_flags: nop\n"
        "       cmp $4, %eax\n"
        "       ret\n"
        "       .size makes_flags, . - makes_flags\n");

int main(void)
{
    int avx = __builtin_cpu_supports("avx2"), avx512 = __builtin_cpu_supports("avx512f");
    for (unsigned n = 0; n < 16; n++)
        for (unsigned i = 0; i < 32; i++) given[n][i] = (uint8_t)(n * 16 + i);
    hooked(avx, avx512);
    for (unsigned n = 0; n < 16; n++) {
        int same = !memcmp(given[n], found[n], 16), high = avx && memcmp(given[n] + 16, found[n] + 16, 16);
        printf("%u: %s %d, %s\n", n, same ? "same" : "other", found[n][1], high ? "other" : "same");
    }
    printf("%.3Lf %.3Lf %#x %#x\n", tops[0], tops[1], control, mxcsr);
    if (avx512) printf("%#lx %d %d %d %d\n", (long)mask, wide[1], wide[33], wider[1], wider[63]);
    sets_flags();
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    return 0;
}
