/* How a procedure of AArch64 makes its frame, as far as its first block goes.
 *
 *     stp x29, x30, [sp, #-n]!    or sub sp, sp, #n: the frame
 *     mov x29, sp                 the base
 *     stp x19, x20, [sp, #16]     saved */
#include "atom/isa.h"

#include <string.h>

enum { FIRST_SAVED = 19, LINK = 30 };

static long field(uint32_t word, unsigned low, unsigned bits) { return (long)(word >> low & ((1u << bits) - 1)); }

static long signed_field(uint32_t word, unsigned low, unsigned bits)
{
    long n = field(word, low, bits);
    return n >> (bits - 1) ? n - (1L << bits) : n;
}

/* Registers that the word stores to the stack, as bits; *at: how far above the stack pointer before it, *less: what it
 * takes off that. */
static uint64_t stores(uint32_t w, long *at, long *less)
{
    uint64_t one = 1ull << (w & 31), two = one | 1ull << field(w, 10, 5);
    *at = *less = 0;
    if ((w & 0xffc003e0) == 0xa98003e0) return *at = 8 * signed_field(w, 15, 7), *less = -*at, two; /* stp, [sp, #n]! */
    if ((w & 0xffc003e0) == 0xa90003e0) return *at = 8 * signed_field(w, 15, 7), two;               /* stp, [sp, #n] */
    if ((w & 0xffe00fe0) == 0xf8000fe0) return *at = signed_field(w, 12, 9), *less = -*at, one;     /* str, [sp, #n]! */
    if ((w & 0xffc003e0) == 0xf90003e0) return *at = 8 * field(w, 10, 12), one;                     /* str, [sp, #n] */
    return 0;
}

static long taken_off(uint32_t w) /* sub sp, sp, #n */
{
    if ((w & 0xff8003ff) != 0xd10003ff) return 0;
    return field(w, 10, 12) << (w >> 22 & 1 ? 12 : 0);
}

static uint64_t preserved(uint64_t regs) { return regs >> FIRST_SAVED << FIRST_SAVED & ((2ull << LINK) - 1); }

atom_frame atom_isa_frame(inlay_proc *p)
{
    atom_frame f = {.base = REG_SP};
    inlay_block *b = inlay_proc_block_first(p);
    for (inlay_insn *i = b ? inlay_block_first(b) : NULL; i; i = inlay_insn_next(i)) {
        long behind = (long)(inlay_insn_address(i) + inlay_insn_size(i) - inlay_proc_address(p)), at, less;
        uint32_t w;
        memcpy(&w, inlay_insn_bytes(i), sizeof w);
        uint64_t saved = preserved(stores(w, &at, &less));
        if (saved && f.size - at > f.saved_bytes) f.saved_bytes = f.size - at;
        f.saved |= saved;
        if (!less) less = taken_off(w);
        f.size += less;
        if ((w & 0xff8003ff) == 0x910003fd) { /* add x29, sp, #n */
            f.base = REG_29;
            f.base_set = behind;
        }
        if (less && !f.set) f.set = behind;
        if (less || saved || f.base_set == behind) f.ready = behind;
    }
    f.in_register = !(f.saved >> LINK & 1);
    return f;
}

unsigned atom_isa_return_bytes(void) { return 0; }
