/* AArch64: register and flag numbers, for the parts that emit or inspect its machine code. */
#ifndef INL_ISA_AARCH64_A64_H
#define INL_ISA_AARCH64_A64_H

#include "isa/isa.h"

enum a64_reg {
    A64_X0 = 0,
    A64_X8 = 8,
    A64_IP0 = 16, /* free between a call and its target: linkers put veneers there */
    A64_IP1 = 17,
    A64_PLATFORM = 18,
    A64_FP = 29,
    A64_LR = 30,
    A64_SP = 31,
    A64_REGS = 32,
    A64_ZR = 32, /* of an operand: always zero, and in no set of registers */
};

enum a64_flag { /* as in PSTATE and in the system register NZCV */
                A64_V = 1u << 28,
                A64_C = 1u << 29,
                A64_Z = 1u << 30,
                A64_N = 1u << 31,
                A64_NZCV = 0xfu << 28,
};

/* clang-format off */
enum a64_cond { A64_EQ, A64_NE, A64_HS, A64_LO, A64_MI, A64_PL, A64_VS, A64_VC,
                A64_HI, A64_LS, A64_GE, A64_LT, A64_GT, A64_LE, A64_AL, A64_NV };
/* clang-format on */
/* Flags a condition reads. */
uint32_t a64_cond_flags(unsigned cond);

static inline uint32_t a64_word(const isa_insn *in)
{
    return in->raw[0] | (uint32_t)in->raw[1] << 8 | (uint32_t)in->raw[2] << 16 | (uint32_t)in->raw[3] << 24;
}

/* What some callers must tell apart. */
bool a64_is_landing(const isa_insn *); /* bti, paciasp, pacibsp: where indirect branches may land */
bool a64_is_page(const isa_insn *);    /* adrp */
/* The constant that a move-wide instruction moves, or (movk) inserts under *mask. */
bool a64_wide_constant(const isa_insn *, uint64_t *value, uint64_t *mask);
/* A bit mask as the logical instructions encode them (N:immr:imms, 13 bits), size 4 or 8; false: none. */
bool a64_mask_value(unsigned field, unsigned size, uint64_t *value);
bool a64_mask_encode(uint64_t value, unsigned size, unsigned *field);

#endif
