/* Instructions at another address: distances corrected; where they do not suffice, a longer sequence.
 *
 *     adr x0, label      adrp x0, page; add x0, x0, #low       4 GB either way
 *     ldr x0, label      adrp x0, page; ldr x0, [x0, #low]     general registers: the target is the scratch register
 *     ldr q0, label      ISA_MOVE_FAR: rebase() with a register of the caller's, likewise prfm
 *     cbz x0, label      cbnz x0, .+8; b label                 128 MB
 *
 * No sequence holds an address as a number: the program may be loaded anywhere. */
#include <string.h>
#include "isa/aarch64/encode.h"
#include "isa/aarch64/move.h"

static bool fits_signed(int64_t value, unsigned bits) { return a64_signed((uint64_t)value, bits) == value; }

static void put(uint8_t *out, uint32_t word) { memcpy(out, &word, 4); }

/* --- branches --- */

/* The field of the distance in a direct branch: bits wide, *at. */
static unsigned distance_field(uint32_t word, unsigned *at)
{
    *at = 5;
    if ((word & 0x7c000000) == 0x14000000) return *at = 0, 26;
    if ((word & 0x7e000000) == 0x34000000 || (word & 0xff000000) == 0x54000000) return 19;
    return (word & 0x7e000000) == 0x36000000 ? 14 : 0;
}

bool a64_retarget(uint32_t *word, uint64_t from, uint64_t target)
{
    unsigned at, bits = distance_field(*word, &at);
    int64_t distance = (int64_t)(target - from);
    if (!bits || distance & 3 || !fits_signed(distance / 4, bits)) return false;
    uint32_t mask = ((1u << bits) - 1) << at;
    *word = (*word & ~mask) | ((uint32_t)(distance / 4) << at & mask);
    return true;
}

/* The conditional branch that is taken when this one is not. */
static uint32_t opposite(uint32_t word) { return word >> 24 == 0x54 ? word ^ 1 : word ^ 1u << 24; }

unsigned a64_move_branch(const isa_insn *in, uint64_t to, uint64_t target, uint8_t *out)
{
    uint32_t word = a64_word(in), jump = 0x14000000;
    bool conditional = in->flow == ISA_FLOW_COND || in->flow == ISA_FLOW_COND_REG;
    if (a64_retarget(&word, to, target)) {
        put(out, word);
        return 4;
    }
    if (in->row == A64_B_COND || in->row == A64_BC_COND) /* always, when it is no conditional one */
        conditional = in->flow == ISA_FLOW_COND;
    else if (!conditional) return 0;
    if (!conditional) {
        if (!a64_retarget(&jump, to, target)) return 0;
        put(out, jump);
        return 4;
    }
    word = opposite(word);
    if (!a64_retarget(&word, to, to + 8) || !a64_retarget(&jump, to + 4, target)) return 0;
    put(out, word);
    put(out + 4, jump);
    return 8;
}

/* --- addresses --- */

static bool put_adr(bool page, unsigned reg, uint64_t from, uint64_t target, uint8_t *out)
{
    isa_operand ops[2] = {{.kind = ISA_OPERAND_REG, .reg = (uint8_t)reg}, {.kind = ISA_OPERAND_MEM}};
    isa_mem mem = {.bits = ISA_MEM_PCREL, .disp = (int64_t)(page ? target & ~4095ull : target)};
    uint32_t word;
    if (!a64_encode(page ? A64_ADRP : A64_ADR, 0, ops, &mem, from, &word)) return false;
    put(out, word);
    return true;
}

static void put_add(unsigned reg, unsigned low, uint8_t *out) { put(out, 0x91000000 | low << 10 | reg << 5 | reg); }

static uint8_t move_adr(const isa_insn *in, uint64_t to, uint8_t *out)
{
    unsigned reg = a64_word(in) & 31;
    bool page = in->row == A64_ADRP;
    if (reg == 31) reg = A64_ZR;
    if (put_adr(page, reg, to, in->target, out)) return 4;
    if (page || reg == A64_ZR || !put_adr(true, reg, to, in->target, out)) return 0;
    put_add(reg, in->target & 4095, out + 4);
    return 8;
}

/* The same load from [base]. */
static uint32_t based(const isa_insn *in, unsigned base)
{
    static const struct {
        uint16_t row;
        uint32_t word;
    } forms[] = {{A64_LDR_LITW, 0xb9400000}, {A64_LDR_LITX, 0xf9400000}, {A64_LDRSW_LIT, 0xb9800000},
                 {A64_PRFM_LIT, 0xf9800000}, {A64_LDR_LITS, 0xbd400000}, {A64_LDR_LITD, 0xfd400000},
                 {A64_LDR_LITQ, 0x3dc00000}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].row == in->row) return forms[i].word | base << 5 | (a64_word(in) & 31);
    return 0;
}

static uint8_t move_literal(const isa_insn *in, uint64_t to, uint8_t *out)
{
    uint32_t word = a64_word(in);
    int64_t distance = (int64_t)(in->target - to);
    unsigned reg = word & 31, low = in->target & 4095, size = in->row == A64_LDR_LITX ? 8 : 4;
    if (!(distance & 3) && fits_signed(distance / 4, 19)) {
        put(out, (word & ~(0x7ffffu << 5)) | ((uint32_t)(distance / 4) & 0x7ffff) << 5);
        return 4;
    }
    bool general = in->row == A64_LDR_LITW || in->row == A64_LDR_LITX || in->row == A64_LDRSW_LIT;
    if (!general || reg == 31 || !put_adr(true, reg, to, in->target, out)) return 0;
    if (low % size == 0) {
        put(out + 4, based(in, reg) | low / size << 10);
        return 8;
    }
    put_add(reg, low, out + 4);
    put(out + 8, based(in, reg));
    return 12;
}

isa_move a64_relocate(const isa_insn *in, uint64_t to, uint8_t *out, uint8_t *len)
{
    *len = 0;
    switch (in->flow) {
    case ISA_FLOW_JUMP:
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG:
    case ISA_FLOW_CALL: return ISA_MOVE_BRANCH;
    default: break;
    }
    if (in->bits & ISA_BIT_PCREL_MEM) {
        bool adr = in->row == A64_ADR || in->row == A64_ADRP;
        *len = adr ? move_adr(in, to, out) : move_literal(in, to, out);
        return *len ? ISA_MOVE_COPIED : ISA_MOVE_FAR;
    }
    memcpy(out, in->raw, 4);
    *len = 4;
    bool branches = in->flow == ISA_FLOW_JUMP_IND || in->flow == ISA_FLOW_CALL_IND || in->flow == ISA_FLOW_RETURN;
    return branches ? ISA_MOVE_BRANCH : ISA_MOVE_COPIED;
}

/* adr and adrp become a move of the register. */
bool a64_rebase(const isa_insn *in, unsigned reg, uint8_t *out, uint8_t *len)
{
    if (!(in->bits & ISA_BIT_PCREL_MEM) || reg >= 31) return false;
    bool adr = in->row == A64_ADR || in->row == A64_ADRP;
    put(out, adr ? 0xaa0003e0 | reg << 16 | (a64_word(in) & 31) : based(in, reg));
    *len = 4;
    return true;
}
