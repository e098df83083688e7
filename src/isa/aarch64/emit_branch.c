/* Branches, and labels for those that lead forward. */
#include <string.h>
#include "isa/aarch64/fields.h"
#include "isa/aarch64/move.h"

/* A branch without its distance, to be told where it leads. */
static void put_branch(isa_code *c, uint32_t word, uint64_t target)
{
    if (!a64_retarget(&word, isa_here(c), target)) c->unreachable = true;
    else if (!c->unreachable) a64_put(c, word);
}

static uint32_t branch_on_register(isa_code *c, bool nonzero, unsigned w, unsigned reg)
{
    return a64_rows[nonzero ? A64_CBNZ : A64_CBZ].value | a64_sf(c, w) | a64_zr(c, reg);
}

static uint32_t branch_on_bit(isa_code *c, bool nonzero, unsigned reg, unsigned bit)
{
    return a64_rows[nonzero ? A64_TBNZ : A64_TBZ].value | (bit >> 5 & 1) << 31 | (bit & 31) << 19 | a64_zr(c, reg);
}

void a64_b(isa_code *c, uint64_t target) { put_branch(c, a64_rows[A64_B].value, target); }
void a64_bl(isa_code *c, uint64_t target) { put_branch(c, a64_rows[A64_BL].value, target); }
void a64_br(isa_code *c, unsigned reg) { a64_emit(c, A64_BR, a64_zr(c, reg) << 5); }
void a64_blr(isa_code *c, unsigned reg) { a64_emit(c, A64_BLR, a64_zr(c, reg) << 5); }
void a64_ret(isa_code *c, unsigned reg) { a64_emit(c, A64_RET, a64_zr(c, reg) << 5); }

void a64_bcond(isa_code *c, enum a64_cond cond, uint64_t target)
{
    put_branch(c, a64_rows[A64_B_COND].value | cond, target);
}

void a64_cbz(isa_code *c, bool nonzero, unsigned w, unsigned reg, uint64_t target)
{
    put_branch(c, branch_on_register(c, nonzero, w, reg), target);
}

void a64_tbz(isa_code *c, bool nonzero, unsigned reg, unsigned bit, uint64_t target)
{
    put_branch(c, branch_on_bit(c, nonzero, reg, bit), target);
}

/* --- forward --- */

static isa_label put_label(isa_code *c, uint32_t word)
{
    isa_label l = {.at = c->at};
    put_branch(c, word, isa_here(c));
    return l;
}

isa_label a64_b_label(isa_code *c) { return put_label(c, a64_rows[A64_B].value); }

isa_label a64_bcond_label(isa_code *c, enum a64_cond cond) { return put_label(c, a64_rows[A64_B_COND].value | cond); }

isa_label a64_cbz_label(isa_code *c, bool nonzero, unsigned w, unsigned reg)
{
    return put_label(c, branch_on_register(c, nonzero, w, reg));
}

isa_label a64_tbz_label(isa_code *c, bool nonzero, unsigned reg, unsigned bit)
{
    return put_label(c, branch_on_bit(c, nonzero, reg, bit));
}

void a64_bind(isa_code *c, isa_label l)
{
    uint32_t word;
    if (c->full || c->unreachable) return;
    memcpy(&word, c->write + l.at, 4);
    if (!a64_retarget(&word, c->exec + l.at, isa_here(c))) c->unreachable = true;
    else memcpy(c->write + l.at, &word, 4);
}
