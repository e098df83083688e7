/* Compares Inlay's decoder with Zydis on one instruction.
 *
 * Everything that the two both say is compared for equality: length, mnemonic, flow and target,
 * field offsets, registers read, written and overwritten, flags, memory operands, operand list. Where
 * Inlay deliberately says something else, a named exception in isa_zydis.c gives the reason.
 */
#ifndef TESTS_UNIT_ISA_ZYDIS_H
#define TESTS_UNIT_ISA_ZYDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/isa.h"

typedef struct isa_tally {
    uint64_t compared, known, unknown, rejected; /* by what Inlay answered */
    uint64_t differences;
    uint64_t shown, limit; /* differences printed so far, and at most */
} isa_tally;

void isa_zydis_init(void);

/* Decodes with both and compares; the number of bytes to go on by (at least 1). A difference is
 * printed with the bytes and counted. */
unsigned isa_zydis_compare(const uint8_t *bytes, size_t avail, uint64_t addr, isa_tally *);

/* One random instruction of at most 15 bytes and some bytes behind it, 32 in all: `structured` ones
 * begin with plausible prefixes and escapes. */
void isa_random_bytes(uint64_t *state, bool structured, uint8_t out[32]);
uint64_t isa_random(uint64_t *state);

#endif
