/* Operands as the public header has them. */
#ifndef INL_TOOL_OPERANDS_H
#define INL_TOOL_OPERANDS_H

#include "isa/isa.h"

#include <inlay/operand.h>

inlay_operand tool_operand(const isa_operand *);

/* <isa>/operands.c: the register by its full name; false: reg.h has none for it. */
bool tool_operand_reg(const isa_operand *, inlay_reg *);
/* In one step, though nothing in front of the instruction says so. */
bool tool_operands_lock(const isa_insn *);

#endif
