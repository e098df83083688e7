/* The instructions of emit.h that are not branches: which opcode, and which of several encodings is
 * the shortest. How operands become bytes is encode.c's business.
 *
 * Most integer opcodes come in pairs, the even one for bytes and the odd one for 2, 4 and 8 bytes;
 * pair() makes the form of such an instruction.
 */
#include "isa/x86_64/emit.h"

#include <string.h>

#include "isa/x86_64/encode.h"

static x86_form pair(unsigned w, uint8_t opcode, uint8_t bits)
{
    if (w == 1) return (x86_form){w, opcode, bits | X86_BYTE_REG | X86_BYTE_RM};
    return (x86_form){w, opcode | 1, bits};
}

/* A pair whose ModRM.reg extends the opcode. */
static x86_form group(unsigned w, uint8_t opcode) { return (x86_form){w, opcode | (w != 1), w == 1 ? X86_BYTE_RM : 0}; }

/* `imm` as the instruction of size `w` sees it; false when it has no such immediate. */
static bool reduce(unsigned w, int64_t *imm)
{
    if (w == 8) return x86_fits32(*imm);
    if (*imm < INT32_MIN || *imm > (int64_t)UINT32_MAX) return false;
    *imm = w == 1 ? (int8_t)*imm : w == 2 ? (int16_t)*imm : (int32_t)*imm;
    return true;
}

static x86_imm full_imm(unsigned w, int64_t imm) { return (x86_imm){w < 4 ? w : 4, (uint64_t)imm}; }

/* Bytes and padding. */

void x86_byte(x86_code *c, uint8_t b) { x86_bytes(c, &b, 1); }

/* The sequences that both vendors' optimisation manuals recommend; the last two with one more
 * prefix, as AMD allows. */
static const uint8_t nops[][11] = {
    {0x90},
    {0x66, 0x90},
    {0x0f, 0x1f, 0x00},
    {0x0f, 0x1f, 0x40, 0},
    {0x0f, 0x1f, 0x44, 0, 0},
    {0x66, 0x0f, 0x1f, 0x44, 0, 0},
    {0x0f, 0x1f, 0x80, 0, 0, 0, 0},
    {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
    {0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
    {0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
    {0x66, 0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
};

void x86_nop(x86_code *c, unsigned bytes)
{
    if (c->full || bytes > c->size - c->at) {
        c->full = true;
        return;
    }
    enum { LONGEST = sizeof nops / sizeof nops[0] };
    while (bytes) {
        unsigned n = bytes < LONGEST ? bytes : LONGEST;
        x86_bytes(c, nops[n - 1], n);
        bytes -= n;
    }
}

void x86_align(x86_code *c, unsigned to)
{
    if (to > 1) x86_nop(c, (unsigned)(-x86_here(c) & (to - 1)));
}

/* Moves. */

void x86_mov_rr(x86_code *c, unsigned w, unsigned dst, unsigned src)
{
    x86_encode_reg(c, pair(w, 0x88, 0), src, dst, x86_no_imm);
}

void x86_mov_ri(x86_code *c, unsigned dst, uint64_t imm)
{
    if (imm <= UINT32_MAX) /* zero-extends */
        x86_encode_plus(c, (x86_form){4, 0xb8, 0}, dst, (x86_imm){4, imm});
    else if (x86_fits32((int64_t)imm)) x86_encode_reg(c, (x86_form){8, 0xc7, 0}, 0, dst, (x86_imm){4, imm});
    else x86_encode_plus(c, (x86_form){8, 0xb8, 0}, dst, (x86_imm){8, imm});
}

/* Width 0, which the encoder refuses, answers what is no size. */
static x86_form zero_extending(unsigned from, uint8_t byte_bits)
{
    switch (from) {
    case 1: return (x86_form){4, 0xb6, X86_MAP_0F | byte_bits};
    case 2: return (x86_form){4, 0xb7, X86_MAP_0F};
    case 4: return (x86_form){4, 0x8b, 0};
    case 8: return (x86_form){8, 0x8b, 0};
    default: return (x86_form){0, 0, 0};
    }
}

static x86_form sign_extending(unsigned from, uint8_t byte_bits)
{
    switch (from) {
    case 1: return (x86_form){8, 0xbe, X86_MAP_0F | byte_bits};
    case 2: return (x86_form){8, 0xbf, X86_MAP_0F};
    case 4: return (x86_form){8, 0x63, 0};
    case 8: return (x86_form){8, 0x8b, 0};
    default: return (x86_form){0, 0, 0};
    }
}

void x86_load(x86_code *c, unsigned w, unsigned dst, x86_addr a)
{
    x86_encode_mem(c, zero_extending(w, 0), dst, a, x86_no_imm);
}

void x86_load_sx(x86_code *c, unsigned w, unsigned dst, x86_addr a)
{
    x86_encode_mem(c, sign_extending(w, 0), dst, a, x86_no_imm);
}

void x86_movzx_rr(x86_code *c, unsigned from, unsigned dst, unsigned src)
{
    x86_encode_reg(c, zero_extending(from, X86_BYTE_RM), dst, src, x86_no_imm);
}

void x86_movsx_rr(x86_code *c, unsigned from, unsigned dst, unsigned src)
{
    x86_encode_reg(c, sign_extending(from, X86_BYTE_RM), dst, src, x86_no_imm);
}

void x86_store(x86_code *c, unsigned w, x86_addr a, unsigned src)
{
    x86_encode_mem(c, pair(w, 0x88, 0), src, a, x86_no_imm);
}

bool x86_store_imm(x86_code *c, unsigned w, x86_addr a, int64_t imm)
{
    if (!reduce(w, &imm)) return false;
    x86_encode_mem(c, group(w, 0xc6), 0, a, full_imm(w, imm));
    return true;
}

void x86_lea(x86_code *c, unsigned dst, x86_addr a)
{
    a.segment = X86_SEG_NONE; /* has no part in it */
    x86_encode_mem(c, (x86_form){8, 0x8d, 0}, dst, a, x86_no_imm);
}

void x86_xchg_rr(x86_code *c, unsigned w, unsigned a, unsigned b)
{
    /* 90 with eax twice would be a nop, which does not clear the upper half. */
    bool nop = w == 4 && a == X86_RAX && b == X86_RAX;
    if (w == 1 || nop || (a != X86_RAX && b != X86_RAX)) x86_encode_reg(c, pair(w, 0x86, 0), b, a, x86_no_imm);
    else x86_encode_plus(c, (x86_form){w, 0x90, 0}, a == X86_RAX ? b : a, x86_no_imm);
}

void x86_bswap(x86_code *c, unsigned w, unsigned reg)
{
    if (w == 4 || w == 8) x86_encode_plus(c, (x86_form){w, 0xc8, X86_MAP_0F}, reg, x86_no_imm);
    else x86_refuse(c); /* the 16-bit form is undefined */
}

/* Arithmetic. */

void x86_alu_rr(x86_code *c, x86_alu op, unsigned w, unsigned dst, unsigned src)
{
    x86_encode_reg(c, pair(w, (uint8_t)(op << 3), 0), src, dst, x86_no_imm);
}

bool x86_alu_ri(x86_code *c, x86_alu op, unsigned w, unsigned dst, int64_t imm)
{
    if (!reduce(w, &imm)) return false;
    if (op == X86_AND && w == 8 && imm >= 0) w = 4; /* clears the upper half too, same flags */
    if (w != 1 && x86_fits8(imm)) x86_encode_reg(c, (x86_form){w, 0x83, 0}, op, dst, (x86_imm){1, (uint64_t)imm});
    else if (dst == X86_RAX)
        x86_encode_plus(c, (x86_form){w, (uint8_t)(op << 3 | 4 | (w != 1)), 0}, 0, full_imm(w, imm));
    else x86_encode_reg(c, group(w, 0x80), op, dst, full_imm(w, imm));
    return true;
}

void x86_alu_rm(x86_code *c, x86_alu op, unsigned w, unsigned dst, x86_addr src)
{
    x86_encode_mem(c, pair(w, (uint8_t)(op << 3 | 2), 0), dst, src, x86_no_imm);
}

void x86_alu_mr(x86_code *c, x86_alu op, unsigned w, x86_addr dst, unsigned src)
{
    x86_encode_mem(c, pair(w, (uint8_t)(op << 3), 0), src, dst, x86_no_imm);
}

bool x86_alu_mi(x86_code *c, x86_alu op, unsigned w, x86_addr dst, int64_t imm)
{
    if (!reduce(w, &imm)) return false;
    if (w != 1 && x86_fits8(imm)) x86_encode_mem(c, (x86_form){w, 0x83, 0}, op, dst, (x86_imm){1, (uint64_t)imm});
    else x86_encode_mem(c, group(w, 0x80), op, dst, full_imm(w, imm));
    return true;
}

void x86_test_rr(x86_code *c, unsigned w, unsigned a, unsigned b)
{
    x86_encode_reg(c, pair(w, 0x84, 0), b, a, x86_no_imm);
}

void x86_test_ri(x86_code *c, unsigned w, unsigned reg, int32_t imm)
{
    int64_t value = imm;
    if ((w != 1 && w != 2 && w != 4 && w != 8) || !reduce(w, &value)) {
        x86_refuse(c);
        return;
    }
    /* With a mask whose sign bit is clear the result is not negative in any size that holds it, and
     * zero and parity do not depend on the size either. */
    if (value >= 0 && value <= INT8_MAX) w = 1;
    else if (value >= 0 && w == 8) w = 4;
    if (reg == X86_RAX) x86_encode_plus(c, (x86_form){w, (uint8_t)(0xa8 | (w != 1)), 0}, 0, full_imm(w, value));
    else x86_encode_reg(c, group(w, 0xf6), 0, reg, full_imm(w, value));
}

void x86_inc_m(x86_code *c, unsigned w, x86_addr a) { x86_encode_mem(c, group(w, 0xfe), 0, a, x86_no_imm); }

void x86_lock_xadd(x86_code *c, unsigned w, x86_addr a, unsigned reg)
{
    x86_encode_mem(c, pair(w, 0xc0, X86_MAP_0F | X86_LOCK), reg, a, x86_no_imm);
}

void x86_imul_rr(x86_code *c, unsigned w, unsigned dst, unsigned src)
{
    if (w == 1) x86_refuse(c);
    else x86_encode_reg(c, (x86_form){w, 0xaf, X86_MAP_0F}, dst, src, x86_no_imm);
}

void x86_popcnt(x86_code *c, unsigned w, unsigned dst, unsigned src)
{
    if (w == 1) x86_refuse(c);
    else x86_encode_reg(c, (x86_form){w, 0xb8, X86_MAP_0F | X86_F3}, dst, src, x86_no_imm);
}

void x86_not(x86_code *c, unsigned w, unsigned reg) { x86_encode_reg(c, group(w, 0xf6), 2, reg, x86_no_imm); }

void x86_neg(x86_code *c, unsigned w, unsigned reg) { x86_encode_reg(c, group(w, 0xf6), 3, reg, x86_no_imm); }

void x86_mul_r(x86_code *c, unsigned w, unsigned src) { x86_encode_reg(c, group(w, 0xf6), 4, src, x86_no_imm); }

void x86_div_r(x86_code *c, unsigned w, unsigned src, bool is_signed)
{
    x86_encode_reg(c, group(w, 0xf6), is_signed ? 7 : 6, src, x86_no_imm);
}

void x86_shift_ri(x86_code *c, x86_shift op, unsigned w, unsigned reg, unsigned count)
{
    if (count == 1) x86_encode_reg(c, group(w, 0xd0), op, reg, x86_no_imm);
    else x86_encode_reg(c, group(w, 0xc0), op, reg, (x86_imm){1, count});
}

void x86_shift_cl(x86_code *c, x86_shift op, unsigned w, unsigned reg)
{
    x86_encode_reg(c, group(w, 0xd2), op, reg, x86_no_imm);
}

void x86_bt_mi(x86_code *c, unsigned w, x86_addr a, unsigned bit)
{
    if (w == 1 || bit >= 8 * w) x86_refuse(c);
    else x86_encode_mem(c, (x86_form){w, 0xba, X86_MAP_0F}, 4, a, (x86_imm){1, bit});
}

static x86_form on_condition(unsigned w, uint8_t opcode, unsigned cond)
{
    return (x86_form){w, (uint8_t)(opcode | (cond & 15)), X86_MAP_0F};
}

void x86_setcc(x86_code *c, unsigned cond, unsigned reg)
{
    x86_form f = on_condition(1, 0x90, cond);
    f.bits |= X86_BYTE_RM;
    x86_encode_reg(c, f, 0, reg, x86_no_imm);
}

void x86_setcc_m(x86_code *c, unsigned cond, x86_addr a)
{
    x86_encode_mem(c, on_condition(1, 0x90, cond), 0, a, x86_no_imm);
}

void x86_cmov(x86_code *c, unsigned cond, unsigned w, unsigned dst, unsigned src)
{
    if (w == 1) x86_refuse(c);
    else x86_encode_reg(c, on_condition(w, 0x40, cond), dst, src, x86_no_imm);
}

/* The stack. These are 64-bit without REX.W. */

void x86_push(x86_code *c, unsigned reg) { x86_encode_plus(c, (x86_form){4, 0x50, 0}, reg, x86_no_imm); }

void x86_pop(x86_code *c, unsigned reg) { x86_encode_plus(c, (x86_form){4, 0x58, 0}, reg, x86_no_imm); }

bool x86_push_i(x86_code *c, int64_t imm)
{
    if (!x86_fits32(imm)) return false;
    if (x86_fits8(imm)) x86_encode_op(c, (x86_form){4, 0x6a, 0}, (x86_imm){1, (uint64_t)imm});
    else x86_encode_op(c, (x86_form){4, 0x68, 0}, (x86_imm){4, (uint64_t)imm});
    return true;
}

void x86_push_m(x86_code *c, x86_addr a) { x86_encode_mem(c, (x86_form){4, 0xff, 0}, 6, a, x86_no_imm); }

void x86_pop_m(x86_code *c, x86_addr a) { x86_encode_mem(c, (x86_form){4, 0x8f, 0}, 0, a, x86_no_imm); }

/* Instructions of fixed bytes. */

static void plain(x86_code *c, uint8_t opcode) { x86_bytes(c, &opcode, 1); }

static void plain_0f(x86_code *c, uint8_t opcode) { x86_bytes(c, (const uint8_t[]){0x0f, opcode}, 2); }

void x86_pushf(x86_code *c) { plain(c, 0x9c); }
void x86_popf(x86_code *c) { plain(c, 0x9d); }
void x86_sahf(x86_code *c) { plain(c, 0x9e); }
void x86_lahf(x86_code *c) { plain(c, 0x9f); }
void x86_ret(x86_code *c) { plain(c, 0xc3); }
void x86_int3(x86_code *c) { plain(c, 0xcc); }
void x86_syscall(x86_code *c) { plain_0f(c, 0x05); }
void x86_ud2(x86_code *c) { plain_0f(c, 0x0b); }
void x86_rdtsc(x86_code *c) { plain_0f(c, 0x31); }

/* Segment bases: F3 REX.W 0F AE /0 rdfsbase, /1 rdgsbase, /2 wrfsbase. */

static void base_move(x86_code *c, unsigned extension, unsigned reg)
{
    x86_encode_reg(c, (x86_form){8, 0xae, X86_MAP_0F | X86_F3}, extension, reg, x86_no_imm);
}

void x86_rdfsbase(x86_code *c, unsigned reg) { base_move(c, 0, reg); }
void x86_rdgsbase(x86_code *c, unsigned reg) { base_move(c, 1, reg); }
void x86_wrfsbase(x86_code *c, unsigned reg) { base_move(c, 2, reg); }

/* Vector state. */

static void move_vec(x86_code *c, uint8_t opcode, unsigned vec_bytes, unsigned vec, x86_addr a)
{
    if (vec_bytes == 16 && vec < 16) x86_encode_mem(c, (x86_form){4, opcode, X86_MAP_0F}, vec, a, x86_no_imm);
    else x86_encode_vec(c, opcode, vec_bytes, vec, a);
}

void x86_vec_load(x86_code *c, unsigned vec_bytes, unsigned vec, x86_addr a) { move_vec(c, 0x10, vec_bytes, vec, a); }

void x86_vec_store(x86_code *c, unsigned vec_bytes, x86_addr a, unsigned vec) { move_vec(c, 0x11, vec_bytes, vec, a); }
