/* An instruction with other registers: for code that is copied from where a compiler put its values in
 * certain registers to where others are free.
 *
 * Only what is certain is done: legacy encodings of general registers. What comes out is decoded again
 * and compared, operand for operand. */
#ifndef INL_ISA_X86_64_RENAME_H
#define INL_ISA_X86_64_RENAME_H

#include "isa/x86_64/emit.h"

/* Registers that the instruction uses without naming them in a field that could name another: the count
 * of a shift, both halves of a product. False: the instruction cannot be renamed at all. */
bool x86_fixed_registers(const isa_insn *, uint16_t *fixed);

/* Writes `in` with register map[r] in place of each r, and, where that is not NULL, with `mem` (of the new
 * registers) in place of its ModRM memory operand. False, and nothing written: it cannot be. */
bool x86_rename(x86_code *, const isa_insn *in, const uint8_t map[X86_REGS], const x86_addr *mem);

#endif
