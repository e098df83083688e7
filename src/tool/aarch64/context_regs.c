/* Registers of a context on AArch64: v0 to v31 of 16 bytes each, then status and control of 4. What is longer is not
 * in a context. */
#include "tool/context_regs.h"
#include "tool/regs.h"

#include <string.h>

enum { COUNT = 32, VECTOR = 16, AT_FPSR = COUNT * VECTOR, AT_FPCR = AT_FPSR + 4 };

uint64_t *tool_context_word(inlay_context *c, inlay_reg whole)
{
    if (whole <= INLAY_XSP) return &c->gpr[whole];
    switch (whole) {
    case INLAY_A64_PC: return &c->pc;
    case INLAY_NZCV: return &c->flags;
    case INLAY_TPIDR: return &c->tls_base;
    default: return NULL;
    }
}

/* Where it lies; NULL: not here. */
static uint8_t *place_of(const inlay_context *c, inlay_reg reg)
{
    uint8_t *state = c->vectors;
    if (!state) return NULL;
    if (reg - INLAY_V0 < INLAY_Z0 - INLAY_V0) return state + VECTOR * ((reg - INLAY_V0) % COUNT);
    return reg == INLAY_FPSR ? state + AT_FPSR : reg == INLAY_FPCR ? state + AT_FPCR : NULL;
}

bool tool_context_vector_get(const inlay_context *c, inlay_reg reg, void *out)
{
    const uint8_t *from = place_of(c, reg);
    if (from) memcpy(out, from, inlay_reg_bits(reg) / 8);
    return from;
}

/* Of a vector the rest becomes 0, as instructions have it. */
bool tool_context_vector_set(inlay_context *c, inlay_reg reg, const void *value)
{
    uint8_t *to = place_of(c, reg);
    if (!to) return false;
    if (inlay_reg_kind_of(reg) == INLAY_REG_VECTOR) memset(to, 0, VECTOR);
    memcpy(to, value, inlay_reg_bits(reg) / 8);
    return true;
}
