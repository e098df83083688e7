/* The extended state of the processor that the process runs on, as XSAVE and its kin lay it out: which components
 * there are, where they lie, and which of them the kernel lets this process use.
 *
 * CPUID alone says too much: the kernel grants some components (AMX's tiles) to processes that ask for them, and
 * without that they are in no frame and in no image that XSAVE writes. Where there is no XSAVE the layout is
 * FXSAVE's, which holds x87 and SSE.
 *
 * Nothing of this may be kept in what is carried to another machine. */
#ifndef INL_ISA_X86_64_XSTATE_H
#define INL_ISA_X86_64_XSTATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    X86_XSAVE_LEGACY = 512,
    X86_XSAVE_HEADER = 64,
    X86_XSAVE_PARTS = 63,
    X86_PART_PKRU = 9,
    X86_PART_TILE_CONFIG = 17,
    X86_PART_TILE_DATA = 18,
};
#define X86_XSAVE_ALWAYS  3ull                         /* x87 and SSE */
#define X86_XSAVE_DYNAMIC (1ull << X86_PART_TILE_DATA) /* only for processes that have asked */

typedef struct x86_xstate {
    bool xsave;        /* else FXSAVE only */
    uint64_t features; /* those that the process may use */
    uint32_t room;     /* bytes that hold every component that the kernel could grant */
    struct {
        uint32_t size, offset;
        bool aligned;
    } part[X86_XSAVE_PARTS];
} x86_xstate;

/* The instruction CPUID's leaf 0xd, `sub`: eax, ebx, ecx, edx. */
typedef void x86_xstate_leaf(unsigned sub, uint32_t out[4]);
/* From XCR0 (0: no XSAVE), the kernel's answer about permissions, and the processor's leaves. */
void x86_xstate_describe(x86_xstate *, uint64_t xcr0, uint64_t permitted, x86_xstate_leaf *leaf);

/* This processor's, found out at the first call. */
const x86_xstate *x86_xstate_here(void);
/* The kernel has granted something: its answer is asked for again. */
void x86_xstate_refresh(void);

/* Bytes of an image with these components (of those that are permitted) in the standard and in the compacted form,
 * legacy part and header included. */
uint32_t x86_xstate_size(const x86_xstate *, uint64_t features);
uint32_t x86_xstate_compacted(const x86_xstate *, uint64_t features);

#endif
