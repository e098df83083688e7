/* Where the dynamic linker looks for libraries on this architecture. */
#include "tool/rewriter.h"

#include <cpuid.h>

/* The compiler's own way of asking brings along a constructor, which asks for a dozen of the processor's leaves at each
 * start of each tool; in a virtual machine an answer takes microseconds. */
typedef struct processor {
    unsigned basic, extended; /* leaf 1's ECX, leaf 7's EBX */
    unsigned state;           /* what the system saves of it: XCR0 */
} processor;

static processor ask(void)
{
    processor p = {0};
    unsigned a, b, c, d, high;
    if (__get_cpuid(1, &a, &b, &c, &d)) p.basic = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) p.extended = b;
    if (p.basic & bit_OSXSAVE) __asm__ volatile("xgetbv" : "=a"(p.state), "=d"(high) : "c"(0));
    return p;
}

static bool has(unsigned value, unsigned bits) { return (value & bits) == bits; }

/* Subfolders of what only some processors can run, this one among them; those that ask for least first. */
void rewriter_hwcaps(const char *found[REWRITER_LEVELS])
{
    enum { AVX_STATE = 0x6, AVX512_STATE = 0xe6 };
    const processor p = ask();
    int n = 0;
    bool v2 = has(p.basic, bit_SSE4_2 | bit_SSSE3 | bit_POPCNT);
    bool v3 = v2 && has(p.state, AVX_STATE) && has(p.basic, bit_AVX | bit_FMA) &&
              has(p.extended, bit_AVX2 | bit_BMI | bit_BMI2);
    bool v4 = v3 && has(p.state, AVX512_STATE) &&
              has(p.extended, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL);
    if (v2) found[n++] = "/glibc-hwcaps/x86-64-v2";
    if (v3) found[n++] = "/glibc-hwcaps/x86-64-v3";
    if (v4) found[n++] = "/glibc-hwcaps/x86-64-v4";
    found[n] = NULL;
}

const char rewriter_folders[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";
