/* Checks one emitted instruction against Zydis: mnemonic, operands, length.
 *
 *     x86_code c;
 *     emit_start(&c);
 *     x86_mov_rr(&c, 4, X86_RAX, X86_RBX);
 *     EMIT_CHECK(&c, ZYDIS_MNEMONIC_MOV, is_reg(4, X86_RAX), is_reg(4, X86_RBX));
 *
 * The operands are the visible ones, in Zydis' order (Intel's). A memory operand is right when it
 * has the right size and segment and when base, index and displacement give the address expected
 * for several register contents, whichever of the equal forms was chosen.
 */
#ifndef TESTS_UNIT_EMIT_CHECK_H
#define TESTS_UNIT_EMIT_CHECK_H

#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "isa/x86_64/emit.h"

typedef struct emit_operand {
    enum { IS_REG, IS_VEC, IS_MEM, IS_IMM, IS_TARGET } kind;
    unsigned width; /* bytes; of an immediate: how many of them count */
    unsigned reg;
    x86_addr addr;
    uint64_t value;
} emit_operand;

emit_operand is_reg(unsigned width, unsigned reg);
emit_operand is_vec(unsigned width, unsigned reg);
emit_operand is_mem(unsigned width, x86_addr addr); /* width 0: address only */
emit_operand is_imm(unsigned width, uint64_t value);
emit_operand is_target(uint64_t address);

typedef struct emit_decoded {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
} emit_decoded;

/* An empty window of 64 bytes that runs at EMIT_EXEC. */
enum { EMIT_EXEC = 0x40001000 };
void emit_start(x86_code *c);

/* Decodes what was emitted from offset `from` on, which must be one instruction and all there is. */
emit_decoded emit_decode(const x86_code *c, size_t from);
void emit_check(const x86_code *c, size_t from, ZydisMnemonic mnemonic, unsigned count, const emit_operand *expected,
                const char *file, int line);
/* Checks the parts of a decoded instruction on their own. */
bool emit_operand_is(const emit_decoded *d, unsigned index, const emit_operand *expected, uint64_t exec);
/* That Zydis' own encoder finds no shorter encoding of the same instruction. */
void emit_check_short(const x86_code *c, const char *file, int line);
/* Nothing was written and `unreachable` is set. */
void emit_check_refused(const x86_code *c, const char *file, int line);

#define EMIT_CHECK(c, mnemonic, ...)                                                                                   \
    emit_check((c), 0, (mnemonic), sizeof((emit_operand[]){__VA_ARGS__}) / sizeof(emit_operand),                       \
               (const emit_operand[]){__VA_ARGS__}, __FILE__, __LINE__)
#define EMIT_CHECK_PLAIN(c, mnemonic) emit_check((c), 0, (mnemonic), 0, NULL, __FILE__, __LINE__)
#define EMIT_CHECK_SHORT(c)           emit_check_short((c), __FILE__, __LINE__)
#define EMIT_CHECK_REFUSED(c)         emit_check_refused((c), __FILE__, __LINE__)

/* Some of every kind of address form; emit_addresses() lists them. */
const x86_addr *emit_addresses(unsigned *count);

#define EACH_WIDTH(w) for (unsigned w = 1; w <= 8; w *= 2)
#define EACH_WIDE(w)  for (unsigned w = 2; w <= 8; w *= 2)
#define EACH_REG(r)   for (unsigned r = 0; r < X86_REGS; r++)

#endif
