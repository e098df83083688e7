/* The encoder proper: prefixes, opcode, ModRM, SIB, displacement and immediate of one instruction.
 * Private to the emitter (emit*.c), which knows the opcodes.
 *
 * A form says all that does not depend on the operands. `width` is the operand size in bytes and
 * chooses between nothing (1, 4), 66 (2) and REX.W (8); instructions whose size is fixed use 4.
 * X86_BYTE_REG and X86_BYTE_RM mark operands that are byte registers, of which spl, bpl, sil and
 * dil need a REX prefix; they must not be set where the field extends the opcode.
 *
 * Each function writes one whole instruction or nothing: no room sets `full`, an operand that has
 * no encoding sets `unreachable`.
 */
#ifndef INL_ISA_X86_64_ENCODE_H
#define INL_ISA_X86_64_ENCODE_H

#include "isa/x86_64/emit.h"

enum {
    X86_MAP_0F = 1,
    X86_LOCK = 2,
    X86_F3 = 4,
    X86_BYTE_REG = 8,
    X86_BYTE_RM = 16,
};

typedef struct x86_form {
    unsigned width;
    uint8_t opcode;
    uint8_t bits;
} x86_form;

typedef struct x86_imm {
    unsigned bytes; /* 0, 1, 2, 4 or 8 */
    uint64_t value;
} x86_imm;

static const x86_imm x86_no_imm = {0, 0};

/* No operand, or only an immediate; opcode | register; ModRM with a register; with memory. */
void x86_encode_op(x86_code *, x86_form, x86_imm);
void x86_encode_plus(x86_code *, x86_form, unsigned reg, x86_imm);
void x86_encode_reg(x86_code *, x86_form, unsigned reg, unsigned rm, x86_imm);
void x86_encode_mem(x86_code *, x86_form, unsigned reg, x86_addr, x86_imm);
/* VEX or EVEX, map 0F, no vvvv, a full-vector memory operand. */
void x86_encode_vec(x86_code *, uint8_t opcode, unsigned vec_bytes, unsigned vec, x86_addr);

static inline void x86_refuse(x86_code *c) { c->unreachable = true; }

static inline bool x86_fits8(int64_t v) { return v == (int8_t)v; }
static inline bool x86_fits32(int64_t v) { return v == (int32_t)v; }

#endif
