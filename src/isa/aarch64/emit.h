/* AArch64 machine code, one instruction a call where not said otherwise, for the weaver and what lays code out.
 *
 * Code goes into an isa_code (isa/code.h): an instruction is written whole or not at all, and what has no encoding
 * (an offset that is too large, a branch that does not reach) leaves `unreachable` behind. "false" functions write
 * nothing then and leave the choice to the caller. `w` is the operand size in bytes: 4 or 8, of loads and stores 1,
 * 2, 4 or 8, of vectors 16 at most. Registers are numbered as in a64.h: A64_ZR where zero is meant, A64_SP where the
 * stack pointer is; what an instruction cannot take is refused. Opcodes are the rows' (table/). */
#ifndef INL_ISA_AARCH64_EMIT_H
#define INL_ISA_AARCH64_EMIT_H

#include "isa/aarch64/a64.h"
#include "isa/code.h"

void a64_put(isa_code *, uint32_t word);
void a64_nop(isa_code *, unsigned bytes); /* a multiple of 4, all or nothing */

/* --- moves and arithmetic --- */
void a64_mov_rr(isa_code *, unsigned w, unsigned dst, unsigned src); /* also to and from sp */
void a64_mov_ri(isa_code *, unsigned dst, uint64_t imm);             /* 1 to 4 instructions, no flags */
void a64_mov_fixed(isa_code *, unsigned dst, uint64_t imm);          /* always 4: to be changed later */
/* The address of `target`: adr, or adrp and add; 4 GB either way. */
void a64_address(isa_code *, unsigned dst, uint64_t target);

typedef enum a64_arith { A64_ARITH_ADD, A64_ARITH_ADDS, A64_ARITH_SUB, A64_ARITH_SUBS } a64_arith;
/* b is shifted to the left by `shift`. No stack pointer; a64_arith_ext takes it as dst and a. */
void a64_arith_rr(isa_code *, a64_arith, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned shift);
void a64_arith_ext(isa_code *, a64_arith, unsigned dst, unsigned a, unsigned b, isa_modify how, unsigned shift);
bool a64_arith_ri(isa_code *, a64_arith, unsigned w, unsigned dst, unsigned a, int64_t imm); /* 12 bits, or <<12 */
/* Adds any number of up to 24 bits without flags, in one or two instructions; false: more. */
bool a64_add_ri(isa_code *, unsigned dst, unsigned a, int64_t imm);

typedef enum a64_logic {
    A64_LOGIC_AND,
    A64_LOGIC_BIC,
    A64_LOGIC_ORR,
    A64_LOGIC_ORN,
    A64_LOGIC_EOR,
    A64_LOGIC_EON,
    A64_LOGIC_ANDS,
    A64_LOGIC_BICS
} a64_logic;
void a64_logic_rr(isa_code *, a64_logic, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned shift);
bool a64_logic_ri(isa_code *, a64_logic, unsigned w, unsigned dst, unsigned a, uint64_t imm); /* false: no mask */

typedef enum a64_shift { A64_SHIFT_LSL, A64_SHIFT_LSR, A64_SHIFT_ASR, A64_SHIFT_ROR } a64_shift;
void a64_shift_rr(isa_code *, a64_shift, unsigned w, unsigned dst, unsigned a, unsigned count);
void a64_shift_ri(isa_code *, a64_shift, unsigned w, unsigned dst, unsigned a, unsigned count);
void a64_extend(isa_code *, unsigned from, bool is_signed, unsigned dst, unsigned src); /* 1, 2, 4 to 8 bytes */
void a64_madd(isa_code *, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned plus);
void a64_msub(isa_code *, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned from); /* from - a * b */
void a64_mulh(isa_code *, bool is_signed, unsigned dst, unsigned a, unsigned b);
void a64_div(isa_code *, bool is_signed, unsigned w, unsigned dst, unsigned a, unsigned b); /* by 0 gives 0 */
void a64_csel(isa_code *, unsigned w, unsigned dst, unsigned a, unsigned b, enum a64_cond);
void a64_cset(isa_code *, unsigned dst, enum a64_cond); /* 1 or 0 */
void a64_clz(isa_code *, unsigned w, unsigned dst, unsigned src);
void a64_rbit(isa_code *, unsigned w, unsigned dst, unsigned src);
void a64_rev(isa_code *, unsigned w, unsigned dst, unsigned src);

/* --- memory --- */
typedef struct a64_addr {
    uint8_t base, index; /* index: ISA_NO_REG, or a register that is scaled by the size when `scaled` */
    bool scaled, post, pre;
    int32_t disp;
} a64_addr;
static inline a64_addr a64_at(unsigned base, int32_t disp)
{
    return (a64_addr){(uint8_t)base, ISA_NO_REG, false, false, false, disp};
}
static inline a64_addr a64_indexed(unsigned base, unsigned index, bool scaled)
{
    return (a64_addr){(uint8_t)base, (uint8_t)index, scaled, false, false, 0};
}
static inline a64_addr a64_pre(unsigned base, int32_t disp)
{
    return (a64_addr){(uint8_t)base, ISA_NO_REG, false, false, true, disp};
}
static inline a64_addr a64_post(unsigned base, int32_t disp)
{
    return (a64_addr){(uint8_t)base, ISA_NO_REG, false, true, false, disp};
}
bool a64_reaches(unsigned w, a64_addr);                           /* a load or store of this size can be encoded */
void a64_load(isa_code *, unsigned w, unsigned dst, a64_addr);    /* zero-extends */
void a64_load_sx(isa_code *, unsigned w, unsigned dst, a64_addr); /* sign-extends to 8 bytes */
void a64_store(isa_code *, unsigned w, a64_addr, unsigned src);
void a64_load_vec(isa_code *, unsigned w, unsigned vec, a64_addr);
void a64_store_vec(isa_code *, unsigned w, a64_addr, unsigned vec);
void a64_load_pair(isa_code *, unsigned w, unsigned a, unsigned b, a64_addr); /* of 4 or 8 bytes each; no index */
void a64_store_pair(isa_code *, unsigned w, a64_addr, unsigned a, unsigned b);
void a64_load_vec_pair(isa_code *, unsigned a, unsigned b, a64_addr); /* of 16 bytes each */
void a64_store_vec_pair(isa_code *, a64_addr, unsigned a, unsigned b);
/* Exclusive access, with acquire and release; *status is 0 when the store was done. Or, where the processor has
 * them (LSE), one instruction: old = [base], [base] += value. */
void a64_load_exclusive(isa_code *, unsigned w, unsigned dst, unsigned base);
void a64_store_exclusive(isa_code *, unsigned w, unsigned status, unsigned base, unsigned src);
void a64_atomic_add(isa_code *, unsigned w, unsigned old, unsigned base, unsigned value);

/* --- system --- */
void a64_read_flags(isa_code *, unsigned dst);
void a64_write_flags(isa_code *, unsigned src);
void a64_read_tls(isa_code *, unsigned dst); /* tpidr_el0 */
void a64_write_tls(isa_code *, unsigned src);
void a64_read_fp_status(isa_code *, unsigned dst); /* fpsr */
void a64_write_fp_status(isa_code *, unsigned src);
void a64_read_fp_control(isa_code *, unsigned dst); /* fpcr */
void a64_write_fp_control(isa_code *, unsigned src);
void a64_svc(isa_code *, unsigned number);
void a64_brk(isa_code *, unsigned number);
void a64_landing(isa_code *); /* bti jc: a nop where the processor does not know it */
void a64_barrier(isa_code *); /* dmb ish */

/* --- branches --- */
void a64_b(isa_code *, uint64_t target); /* 128 MB */
void a64_bl(isa_code *, uint64_t target);
void a64_br(isa_code *, unsigned reg);
void a64_blr(isa_code *, unsigned reg);
void a64_ret(isa_code *, unsigned reg);
void a64_bcond(isa_code *, enum a64_cond, uint64_t target); /* 1 MB */
void a64_cbz(isa_code *, bool nonzero, unsigned w, unsigned reg, uint64_t target);
void a64_tbz(isa_code *, bool nonzero, unsigned reg, unsigned bit, uint64_t target); /* 32 KB */
/* Forward: the target is where a64_bind is called. */
isa_label a64_b_label(isa_code *);
isa_label a64_bcond_label(isa_code *, enum a64_cond);
isa_label a64_cbz_label(isa_code *, bool nonzero, unsigned w, unsigned reg);
isa_label a64_tbz_label(isa_code *, bool nonzero, unsigned reg, unsigned bit);
void a64_bind(isa_code *, isa_label);

#endif
