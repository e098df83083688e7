#include "isa/x86_64/xstate.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"

enum { GET_PERMITTED = 0x1022 /* arch_prctl, Linux 5.16 */, LEAF = 0xd };

static uint32_t aligned(uint32_t at) { return (at + 63) & ~63u; }

static uint32_t size_of(const x86_xstate *x, uint64_t features)
{
    uint32_t end = X86_XSAVE_LEGACY + X86_XSAVE_HEADER;
    for (unsigned i = 2; i < X86_XSAVE_PARTS; i++) {
        if (!(features >> i & 1)) continue;
        uint32_t here = x->part[i].offset + x->part[i].size;
        if (here > end) end = here;
    }
    return end;
}

void x86_xstate_describe(x86_xstate *x, uint64_t xcr0, uint64_t permitted, x86_xstate_leaf *leaf)
{
    memset(x, 0, sizeof *x);
    x->xsave = xcr0 != 0;
    x->features = x->xsave ? xcr0 & permitted : X86_XSAVE_ALWAYS;
    for (unsigned i = 2; i < X86_XSAVE_PARTS; i++) {
        uint32_t r[4];
        if (!(xcr0 >> i & 1)) continue;
        leaf(i, r);
        x->part[i].size = r[0];
        x->part[i].offset = r[1];
        x->part[i].aligned = r[2] >> 1 & 1;
    }
    x->room = size_of(x, xcr0);
}

uint32_t x86_xstate_size(const x86_xstate *x, uint64_t features)
{
    return x->xsave ? size_of(x, features & x->features) : X86_XSAVE_LEGACY;
}

uint32_t x86_xstate_compacted(const x86_xstate *x, uint64_t features)
{
    uint32_t end = X86_XSAVE_LEGACY + X86_XSAVE_HEADER;
    features &= x->features;
    for (unsigned i = 2; i < X86_XSAVE_PARTS; i++) {
        if (!(features >> i & 1)) continue;
        if (x->part[i].aligned) end = aligned(end);
        end += x->part[i].size;
    }
    return end;
}

/* --- this processor --- */

static uint64_t xcr0(void)
{
    unsigned a, b, c, d, low, high;
    const unsigned osxsave = 1u << 27;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave)) return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low | (uint64_t)high << 32;
}

/* Kernels that do not know the question grant everything that they have switched on. */
static uint64_t permitted(void)
{
    uint64_t mask = 0;
    if (sys_call2(SYS_arch_prctl, GET_PERMITTED, (long)&mask)) return UINT64_MAX;
    return mask | X86_XSAVE_ALWAYS;
}

static void leaf(unsigned sub, uint32_t out[4]) { __cpuid_count(LEAF, sub, out[0], out[1], out[2], out[3]); }

static x86_xstate here;
static bool known; /* threads that find out at the same time find the same */

const x86_xstate *x86_xstate_here(void)
{
    x86_xstate found;
    if (__atomic_load_n(&known, __ATOMIC_ACQUIRE)) return &here;
    x86_xstate_describe(&found, xcr0(), permitted(), leaf);
    here = found;
    __atomic_store_n(&known, true, __ATOMIC_RELEASE);
    return &here;
}

void x86_xstate_refresh(void)
{
    x86_xstate_here();
    if (here.xsave) __atomic_store_n(&here.features, xcr0() & permitted(), __ATOMIC_RELEASE);
}
