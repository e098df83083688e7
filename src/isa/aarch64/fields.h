/* What the emitter's files share: fields that are checked as they are put together. */
#ifndef INL_ISA_AARCH64_FIELDS_H
#define INL_ISA_AARCH64_FIELDS_H

#include "isa/aarch64/emit.h"
#include "isa/aarch64/tables.h"
#include "isa/a64_tables.h"

static inline void a64_emit(isa_code *c, unsigned row, uint32_t fields)
{
    if (!c->unreachable) a64_put(c, a64_rows[row].value | fields);
}

static inline bool a64_fits(int64_t value, unsigned bits) { return a64_signed((uint64_t)value, bits) == value; }

/* A register where 31 is zero; where it is the stack pointer. */
static inline uint32_t a64_zr(isa_code *c, unsigned reg)
{
    if (reg == A64_SP || reg > A64_ZR) c->unreachable = true;
    return reg == A64_ZR ? 31 : reg & 31;
}
static inline uint32_t a64_sp(isa_code *c, unsigned reg)
{
    if (reg > A64_SP) c->unreachable = true;
    return reg & 31;
}
static inline uint32_t a64_3(isa_code *c, unsigned dst, unsigned a, unsigned b)
{
    return a64_zr(c, b) << 16 | a64_zr(c, a) << 5 | a64_zr(c, dst);
}
static inline uint32_t a64_sf(isa_code *c, unsigned w)
{
    if (w != 4 && w != 8) c->unreachable = true;
    return w == 8 ? 1u << 31 : 0;
}

#endif
