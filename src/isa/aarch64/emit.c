/* Moves, arithmetic, system registers. */
#include "isa/aarch64/emit.h"

#include "isa/aarch64/fields.h"

void a64_put(isa_code *c, uint32_t word)
{
    uint8_t bytes[4] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16), (uint8_t)(word >> 24)};
    isa_put(c, bytes, 4);
}

void a64_nop(isa_code *c, unsigned bytes)
{
    if (bytes % 4) c->unreachable = true;
    else if (bytes > c->size - c->at) c->full = true;
    else
        for (; bytes; bytes -= 4) a64_put(c, a64_rows[A64_NOP].value);
}

/* --- moves --- */

void a64_mov_rr(isa_code *c, unsigned w, unsigned dst, unsigned src)
{
    if (dst == A64_SP || src == A64_SP) a64_arith_ri(c, A64_ARITH_ADD, w, dst, src, 0);
    else a64_logic_rr(c, A64_LOGIC_ORR, w, dst, A64_ZR, src, 0);
}

static void wide(isa_code *c, unsigned row, unsigned dst, uint64_t imm, unsigned half)
{
    a64_emit(c, row, 1u << 31 | half << 21 | (uint32_t)(imm >> 16 * half & 0xffff) << 5 | a64_zr(c, dst));
}

void a64_mov_ri(isa_code *c, unsigned dst, uint64_t imm)
{
    unsigned zeros = 0, ones = 0, field;
    for (unsigned i = 0; i < 4; i++) {
        zeros += (imm >> 16 * i & 0xffff) == 0;
        ones += (imm >> 16 * i & 0xffff) == 0xffff;
    }
    if (zeros < 3 && ones < 3 && a64_mask_encode(imm, 8, &field)) {
        a64_emit(c, A64_ORR_IMM, 1u << 31 | field << 10 | 31 << 5 | a64_zr(c, dst));
        return;
    }
    bool inverted = ones > zeros, begun = false;
    uint64_t skip = inverted ? 0xffff : 0;
    for (unsigned i = 0; i < 4; i++) {
        if ((imm >> 16 * i & 0xffff) == skip) continue;
        if (begun) wide(c, A64_MOVK, dst, imm, i);
        else wide(c, inverted ? A64_MOVN : A64_MOVZ, dst, inverted ? ~imm : imm, i);
        begun = true;
    }
    if (!begun) wide(c, inverted ? A64_MOVN : A64_MOVZ, dst, inverted ? ~imm : imm, 0);
}

void a64_mov_fixed(isa_code *c, unsigned dst, uint64_t imm)
{
    for (unsigned i = 0; i < 4; i++) wide(c, i ? A64_MOVK : A64_MOVZ, dst, imm, i);
}

void a64_address(isa_code *c, unsigned dst, uint64_t target)
{
    int64_t near = (int64_t)(target - isa_here(c)), pages = (int64_t)(target >> 12) - (int64_t)(isa_here(c) >> 12);
    bool page = !a64_fits(near, 21);
    int64_t distance = page ? pages : near;
    if (!a64_fits(distance, 21)) {
        c->unreachable = true;
        return;
    }
    uint32_t fields = ((uint32_t)distance & 3) << 29 | ((uint32_t)(distance >> 2) & 0x7ffff) << 5 | a64_zr(c, dst);
    a64_emit(c, page ? A64_ADRP : A64_ADR, fields);
    if (page && target & 4095) a64_arith_ri(c, A64_ARITH_ADD, 8, dst, dst, (int64_t)(target & 4095));
}

/* --- arithmetic --- */

void a64_arith_rr(isa_code *c, a64_arith op, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned shift)
{
    a64_emit(c, A64_ADD_SHIFT + op, a64_sf(c, w) | shift << 10 | a64_3(c, dst, a, b));
}

void a64_arith_ext(isa_code *c, a64_arith op, unsigned dst, unsigned a, unsigned b, isa_modify how, unsigned shift)
{
    bool flags = op == A64_ARITH_ADDS || op == A64_ARITH_SUBS;
    unsigned d = flags ? a64_zr(c, dst) : a64_sp(c, dst), option = how == ISA_MODIFY_LSL ? 3 : how - ISA_MODIFY_UXTB;
    if (option > 7 || shift > 4) c->unreachable = true;
    else
        a64_emit(c, A64_ADD_EXT + op,
                 1u << 31 | a64_zr(c, b) << 16 | option << 13 | shift << 10 | a64_sp(c, a) << 5 | d);
}

bool a64_arith_ri(isa_code *c, a64_arith op, unsigned w, unsigned dst, unsigned a, int64_t imm)
{
    bool flags = op == A64_ARITH_ADDS || op == A64_ARITH_SUBS;
    if (imm < 0 && imm > -(1 << 24)) imm = -imm, op ^= A64_ARITH_SUB;
    bool high = imm > 4095;
    if (imm < 0 || (high && (imm & 4095 || imm >> 24))) return false;
    unsigned d = flags ? a64_zr(c, dst) : a64_sp(c, dst);
    a64_emit(c, A64_ADD_IMM + op,
             a64_sf(c, w) | (uint32_t)high << 22 | (uint32_t)(high ? imm >> 12 : imm) << 10 | a64_sp(c, a) << 5 | d);
    return true;
}

bool a64_add_ri(isa_code *c, unsigned dst, unsigned a, int64_t imm)
{
    int64_t size = imm < 0 ? -imm : imm;
    if (size >> 24 || imm == INT64_MIN) return false;
    if (a64_arith_ri(c, A64_ARITH_ADD, 8, dst, a, imm)) return true;
    a64_arith op = imm < 0 ? A64_ARITH_SUB : A64_ARITH_ADD;
    a64_arith_ri(c, op, 8, dst, a, size & ~4095);
    return a64_arith_ri(c, op, 8, dst, dst, size & 4095);
}

void a64_logic_rr(isa_code *c, a64_logic op, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned shift)
{
    a64_emit(c, A64_AND_SHIFT + op, a64_sf(c, w) | shift << 10 | a64_3(c, dst, a, b));
}

bool a64_logic_ri(isa_code *c, a64_logic op, unsigned w, unsigned dst, unsigned a, uint64_t imm)
{
    static const uint16_t rows[] = {A64_AND_IMM, A64_AND_IMM, A64_ORR_IMM,  A64_ORR_IMM,
                                    A64_EOR_IMM, A64_EOR_IMM, A64_ANDS_IMM, A64_ANDS_IMM};
    unsigned field;
    if (!a64_mask_encode(op & 1 ? ~imm : imm, w, &field)) return false;
    unsigned d = op >= A64_LOGIC_ANDS ? a64_zr(c, dst) : a64_sp(c, dst);
    a64_emit(c, rows[op], a64_sf(c, w) | field << 10 | a64_zr(c, a) << 5 | d);
    return true;
}

void a64_shift_rr(isa_code *c, a64_shift op, unsigned w, unsigned dst, unsigned a, unsigned count)
{
    a64_emit(c, A64_LSLV + op, a64_sf(c, w) | a64_3(c, dst, a, count));
}

void a64_shift_ri(isa_code *c, a64_shift op, unsigned w, unsigned dst, unsigned a, unsigned count)
{
    unsigned bits = 8 * w, registers = a64_zr(c, a) << 5 | a64_zr(c, dst);
    bool wide_one = w == 8;
    count &= bits - 1;
    if (op == A64_SHIFT_ROR) {
        a64_emit(c, wide_one ? A64_EXTR_X : A64_EXTR_W, a64_zr(c, a) << 16 | count << 10 | registers);
        return;
    }
    unsigned first = op == A64_SHIFT_LSL ? (bits - count) & (bits - 1) : count;
    unsigned last = op == A64_SHIFT_LSL ? bits - 1 - count : bits - 1;
    unsigned row = op == A64_SHIFT_ASR ? (wide_one ? A64_SBFM_X : A64_SBFM_W) : wide_one ? A64_UBFM_X : A64_UBFM_W;
    a64_emit(c, row, first << 16 | last << 10 | registers);
}

void a64_extend(isa_code *c, unsigned from, bool is_signed, unsigned dst, unsigned src)
{
    uint32_t fields = (8 * from - 1) << 10 | a64_zr(c, src) << 5 | a64_zr(c, dst);
    a64_emit(c, is_signed ? A64_SBFM_X : A64_UBFM_X, fields);
}

void a64_madd(isa_code *c, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned plus)
{
    a64_emit(c, A64_MADD, a64_sf(c, w) | a64_zr(c, plus) << 10 | a64_3(c, dst, a, b));
}

void a64_msub(isa_code *c, unsigned w, unsigned dst, unsigned a, unsigned b, unsigned from)
{
    a64_emit(c, A64_MSUB, a64_sf(c, w) | a64_zr(c, from) << 10 | a64_3(c, dst, a, b));
}

void a64_mulh(isa_code *c, bool is_signed, unsigned dst, unsigned a, unsigned b)
{
    a64_emit(c, is_signed ? A64_SMULH : A64_UMULH, 31 << 10 | a64_3(c, dst, a, b));
}

void a64_div(isa_code *c, bool is_signed, unsigned w, unsigned dst, unsigned a, unsigned b)
{
    a64_emit(c, is_signed ? A64_SDIV : A64_UDIV, a64_sf(c, w) | a64_3(c, dst, a, b));
}

void a64_csel(isa_code *c, unsigned w, unsigned dst, unsigned a, unsigned b, enum a64_cond cond)
{
    a64_emit(c, A64_CSEL, a64_sf(c, w) | (uint32_t)cond << 12 | a64_3(c, dst, a, b));
}

void a64_cset(isa_code *c, unsigned dst, enum a64_cond cond)
{
    a64_emit(c, A64_CSINC, 1u << 31 | ((uint32_t)cond ^ 1) << 12 | a64_3(c, dst, A64_ZR, A64_ZR));
}

void a64_clz(isa_code *c, unsigned w, unsigned dst, unsigned src)
{
    a64_emit(c, A64_CLZ, a64_sf(c, w) | a64_zr(c, src) << 5 | a64_zr(c, dst));
}

void a64_rbit(isa_code *c, unsigned w, unsigned dst, unsigned src)
{
    a64_emit(c, A64_RBIT, a64_sf(c, w) | a64_zr(c, src) << 5 | a64_zr(c, dst));
}

void a64_rev(isa_code *c, unsigned w, unsigned dst, unsigned src)
{
    a64_emit(c, w == 8 ? A64_REV_X : A64_REV_W, a64_zr(c, src) << 5 | a64_zr(c, dst));
}

/* --- system --- */

void a64_read_flags(isa_code *c, unsigned dst) { a64_emit(c, A64_MRS_NZCV, a64_zr(c, dst)); }
void a64_write_flags(isa_code *c, unsigned src) { a64_emit(c, A64_MSR_NZCV, a64_zr(c, src)); }
void a64_read_tls(isa_code *c, unsigned dst) { a64_emit(c, A64_MRS_TPIDR_EL0, a64_zr(c, dst)); }
void a64_write_tls(isa_code *c, unsigned src) { a64_emit(c, A64_MSR_TPIDR_EL0, a64_zr(c, src)); }
void a64_read_fp_status(isa_code *c, unsigned dst) { a64_emit(c, A64_MRS_FPSR, a64_zr(c, dst)); }
void a64_write_fp_status(isa_code *c, unsigned src) { a64_emit(c, A64_MSR_FPSR, a64_zr(c, src)); }
void a64_read_fp_control(isa_code *c, unsigned dst) { a64_emit(c, A64_MRS_FPCR, a64_zr(c, dst)); }
void a64_write_fp_control(isa_code *c, unsigned src) { a64_emit(c, A64_MSR_FPCR, a64_zr(c, src)); }
void a64_svc(isa_code *c, unsigned number) { a64_emit(c, A64_SVC, (number & 0xffff) << 5); }
void a64_brk(isa_code *c, unsigned number) { a64_emit(c, A64_BRK, (number & 0xffff) << 5); }
void a64_landing(isa_code *c) { a64_emit(c, A64_BTI, 3 << 6); }
void a64_barrier(isa_code *c) { a64_emit(c, A64_DMB, 11 << 8); }
