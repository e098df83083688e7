/* What an instruction works on: registers, memory and constants, one by one. Who follows data through a program (where
 * does this value come from, what does that input reach) asks here; who only wants the sets of registers or the
 * accesses to memory asks insn.h.
 *
 *     for (unsigned k = 0; k < inlay_insn_operand_count(insn); k++) {
 *         inlay_operand o = inlay_insn_operand(insn, k);
 *         if (o.kind == INLAY_OPERAND_REGISTER && o.write)
 *             inlay_insert(inlay_before(insn), inlay_call(overwritten, inlay_const(inlay_reg_whole(o.reg, NULL))));
 *     }
 *
 * First come the operands that the text names, in its order, then those that it does not: what push does to the stack
 * pointer, mul to rdx, a string instruction to rsi. Flags are no operands (inlay_insn_flags_read, _written), nor
 * is the program counter; the registers of an address are told by inlay_insn_address_of (code.h).
 */
#ifndef INLAY_OPERAND_H
#define INLAY_OPERAND_H

#include <inlay/reg.h>
#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum inlay_operand_kind {
    INLAY_OPERAND_NONE, /* there is none of this number */
    INLAY_OPERAND_REGISTER,
    INLAY_OPERAND_MEMORY,
    INLAY_OPERAND_IMMEDIATE,
    INLAY_OPERAND_TARGET, /* of a direct branch */
    INLAY_OPERAND_OTHER,  /* what has no name in reg.h: a system register, a condition, a register that is always 0 */
} inlay_operand_kind;

typedef struct inlay_operand {
    inlay_operand_kind kind;
    bool read, write; /* both false: only named, as the memory of lea is; constants are read */
    bool implicit;    /* the text does not name it */
    unsigned size;    /* bytes of it, those that a mask leaves out included; 0: depends on state (xsave), or unknown */
    inlay_reg reg;    /* REGISTER: by its full name (INLAY_AH, INLAY_YMM3) */
    unsigned count;   /* ... and so many, numbered one behind the other: 1, but for lists (AArch64) */
    unsigned memory;  /* MEMORY: the operand's number in inlay_insn_memory, inlay_effective_address, ... */
    int64_t value;    /* IMMEDIATE: as the instruction extends it; TARGET: the address */
} inlay_operand;

unsigned inlay_insn_operand_count(const inlay_insn *);
inlay_operand inlay_insn_operand(const inlay_insn *, unsigned k);

#ifdef __cplusplus
}
#endif

#endif
