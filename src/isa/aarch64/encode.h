/* Operands back into the bits of a word: the inverse of operands.c, from the same rows. */
#ifndef INL_ISA_AARCH64_ENCODE_H
#define INL_ISA_AARCH64_ENCODE_H

#include "isa/aarch64/tables.h"
#include "isa/a64_tables.h"

/* The word of a row (A64_ADD_IMM, ...) with these operands, as operands() and memory() answer them, to run at
 * `addr`. `free` gives the bits that are part of no operand: above all whether operands have 4 or 8 bytes.
 * False: there is no such encoding. */
bool a64_encode(unsigned row, uint32_t free, const isa_operand *ops, const isa_mem *mem, uint64_t addr, uint32_t *word);

#endif
