/* x86-64 machine code, one instruction a call, for the weaver and the engines.
 *
 * The code (isa/code.h) becomes `unreachable` by a RIP-relative address or branch target out of +-2 GB, a
 * displacement beyond 32 bits, rsp as a scaled index, a register number of 16 or more (32 for a vector), a size
 * that the instruction does not have. The shortest encoding is chosen.
 *
 * Memory operands are built with x86_at, x86_gs, x86_abs, x86_rip. All sizes are in bytes; `w` is
 * the operand size 1, 2, 4 or 8. Byte registers 4 to 7 are spl, bpl, sil, dil. Where an immediate
 * is allowed it is reduced to `w` bytes (the operation's own arithmetic); "false" functions write
 * nothing when it needs more than 32 bits, or, with w = 8, is not a sign-extended 32-bit value.
 */
#ifndef INL_ISA_X86_64_EMIT_H
#define INL_ISA_X86_64_EMIT_H

#include "isa/code.h"
#include "isa/x86_64/x86.h"

typedef isa_code x86_code;

static inline uint64_t x86_here(const x86_code *c) { return isa_here(c); }

typedef struct x86_addr {
    uint8_t base, index, scale, segment; /* registers or ISA_NO_REG; scale 1,2,4,8 */
    bool rip;                            /* disp is an absolute address to be reached RIP-relative */
    int64_t disp;
} x86_addr;

static inline x86_addr x86_at(unsigned base, int32_t disp)
{
    return (x86_addr){(uint8_t)base, ISA_NO_REG, 1, 0, false, disp};
}
static inline x86_addr x86_indexed(unsigned base, unsigned index, unsigned scale, int32_t disp)
{
    return (x86_addr){(uint8_t)base, (uint8_t)index, (uint8_t)scale, 0, false, disp};
}
/* gs:[disp32], the thread's own data */
static inline x86_addr x86_gs(int32_t disp) { return (x86_addr){ISA_NO_REG, ISA_NO_REG, 1, X86_SEG_GS, false, disp}; }
/* [disp32], sign-extended, absolute */
static inline x86_addr x86_abs(int32_t disp) { return (x86_addr){ISA_NO_REG, ISA_NO_REG, 1, 0, false, disp}; }
static inline x86_addr x86_rip(uint64_t address)
{
    return (x86_addr){ISA_NO_REG, ISA_NO_REG, 1, 0, true, (int64_t)address};
}

static inline void x86_bytes(x86_code *c, const void *bytes, size_t n) { isa_put(c, bytes, n); }
void x86_byte(x86_code *, uint8_t);
void x86_nop(x86_code *, unsigned bytes); /* best multi-byte nops; all or nothing */
void x86_align(x86_code *, unsigned to);  /* with nops, of the exec address; a power of 2 */

void x86_mov_rr(x86_code *, unsigned w, unsigned dst, unsigned src);
void x86_mov_ri(x86_code *, unsigned dst, uint64_t imm);          /* shortest form; never touches flags */
void x86_load(x86_code *, unsigned w, unsigned dst, x86_addr);    /* w<4: zero-extends (movzx) */
void x86_load_sx(x86_code *, unsigned w, unsigned dst, x86_addr); /* sign-extends to 64 bits */
void x86_store(x86_code *, unsigned w, x86_addr, unsigned src);
bool x86_store_imm(x86_code *, unsigned w, x86_addr, int64_t imm);        /* false: imm needs > 32 bits */
void x86_lea(x86_code *, unsigned dst, x86_addr);                         /* 64-bit */
void x86_movzx_rr(x86_code *, unsigned from, unsigned dst, unsigned src); /* from = 1, 2 or 4 */
void x86_movsx_rr(x86_code *, unsigned from, unsigned dst, unsigned src);
void x86_xchg_rr(x86_code *, unsigned w, unsigned a, unsigned b);
void x86_bswap(x86_code *, unsigned w, unsigned reg); /* 4 or 8 */

typedef enum x86_alu { X86_ADD, X86_OR, X86_ADC, X86_SBB, X86_AND, X86_SUB, X86_XOR, X86_CMP } x86_alu;
void x86_alu_rr(x86_code *, x86_alu, unsigned w, unsigned dst, unsigned src);
bool x86_alu_ri(x86_code *, x86_alu, unsigned w, unsigned dst, int64_t imm); /* false: > 32 bits */
void x86_alu_rm(x86_code *, x86_alu, unsigned w, unsigned dst, x86_addr src);
void x86_alu_mr(x86_code *, x86_alu, unsigned w, x86_addr dst, unsigned src);
bool x86_alu_mi(x86_code *, x86_alu, unsigned w, x86_addr dst, int64_t imm);
void x86_test_rr(x86_code *, unsigned w, unsigned a, unsigned b);
void x86_test_ri(x86_code *, unsigned w, unsigned reg, int32_t imm); /* may test fewer bytes, to
                                                                        the same flags */
void x86_inc_m(x86_code *, unsigned w, x86_addr);
void x86_lock_xadd(x86_code *, unsigned w, x86_addr, unsigned reg);
void x86_imul_rr(x86_code *, unsigned w, unsigned dst, unsigned src); /* 2, 4 or 8 */
void x86_popcnt(x86_code *, unsigned w, unsigned dst, unsigned src);  /* 2, 4 or 8 */
void x86_mul_r(x86_code *, unsigned w, unsigned src);                 /* rdx:rax; ax with w = 1 */
void x86_div_r(x86_code *, unsigned w, unsigned src, bool is_signed);
void x86_neg(x86_code *, unsigned w, unsigned reg);
void x86_not(x86_code *, unsigned w, unsigned reg); /* no flags */
typedef enum x86_shift { X86_ROL, X86_ROR, X86_SHL = 4, X86_SHR = 5, X86_SAR = 7 } x86_shift;
void x86_shift_ri(x86_code *, x86_shift, unsigned w, unsigned reg, unsigned count);
void x86_shift_cl(x86_code *, x86_shift, unsigned w, unsigned reg);
void x86_bt_mi(x86_code *, unsigned w, x86_addr, unsigned bit); /* w 2, 4 or 8; bit < 8 * w */
void x86_setcc(x86_code *, unsigned cond, unsigned reg);        /* low byte only */
void x86_setcc_m(x86_code *, unsigned cond, x86_addr);
void x86_cmov(x86_code *, unsigned cond, unsigned w, unsigned dst, unsigned src);
/* w 2, 4 or 8; 4 clears the upper half always */

void x86_push(x86_code *, unsigned reg);
void x86_pop(x86_code *, unsigned reg);
bool x86_push_i(x86_code *, int64_t imm); /* sign-extended imm32; false when it does not fit */
void x86_push_m(x86_code *, x86_addr);
void x86_pop_m(x86_code *, x86_addr); /* an rsp base counts after the pop */
void x86_pushf(x86_code *);
void x86_popf(x86_code *);
void x86_lahf(x86_code *);
void x86_sahf(x86_code *);
void x86_rdfsbase(x86_code *, unsigned reg);
void x86_wrfsbase(x86_code *, unsigned reg);
void x86_rdgsbase(x86_code *, unsigned reg);
void x86_rdtsc(x86_code *);
void x86_syscall(x86_code *);
void x86_ret(x86_code *);
void x86_int3(x86_code *);
void x86_ud2(x86_code *);
void x86_vec_store(x86_code *, unsigned vec_bytes, x86_addr, unsigned vec);
/* 16: movups, 32: vmovups ymm, 64: zmm; EVEX for vec >= 16 */
void x86_vec_load(x86_code *, unsigned vec_bytes, unsigned vec, x86_addr);

/* Branches. The _to forms go to an absolute address, by the shortest displacement; they return false
 * and write nothing when it is out of reach. The label forms are resolved by x86_bind. Direct rel32
 * forms always have a 4-byte displacement and return its offset (a value of c->at), which
 * x86_patch_rel32 rewrites; `aligned` pads so that those four bytes do not cross an 8-byte line and
 * may be patched while other threads run through them (the write view must be aligned like the
 * execute view). The offset means nothing when `full` or `unreachable` came to be set. */
bool x86_jmp_to(x86_code *, uint64_t target);
bool x86_jcc_to(x86_code *, unsigned cond, uint64_t target);
bool x86_call_to(x86_code *, uint64_t target);
size_t x86_jmp_rel32(x86_code *, uint64_t target, bool aligned);
size_t x86_jcc_rel32(x86_code *, unsigned cond, uint64_t target, bool aligned);
void x86_jmp_r(x86_code *, unsigned reg);
void x86_jmp_m(x86_code *, x86_addr);
void x86_call_r(x86_code *, unsigned reg);
void x86_call_m(x86_code *, x86_addr);
/* Stores a displacement with one store, after all earlier ones. `exec_at` is the address at which
 * the four displacement bytes run. False, and nothing stored, when the target is out of reach. */
bool x86_patch_rel32(uint8_t *write_at, uint64_t exec_at, uint64_t target);

/* Fix-ups (isa/code.h). Of the instruction that relocate() has just copied; and all of them set for code that runs at
 * `exec`, except those that lead to low..high (where they did when it was written), which moves along. False: one is
 * out of reach from there, and the code is not to be used. */
void x86_fix_relocated(x86_code *, const isa_insn *);
bool x86_place(const isa_fixups *, uint8_t *write, uint64_t exec, uint64_t low, uint64_t high);

/* Forward jumps with an 8-bit (or 32-bit) displacement to be bound later; a label's kind is its bytes. */
typedef isa_label x86_label;
x86_label x86_jcc_label(x86_code *, unsigned cond, unsigned width /* 1 or 4 */);
x86_label x86_jmp_label(x86_code *, unsigned width);
x86_label x86_jrcxz_label(x86_code *); /* width 1; reads rcx, no flags */
bool x86_bind(x86_code *, x86_label);  /* to here; false: does not reach */

#endif
