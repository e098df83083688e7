/* An operand as the public header has it. */
#include "tool/operands.h"

static void name_register(const isa_operand *from, inlay_operand *to)
{
    to->kind = tool_operand_reg(from, &to->reg) ? INLAY_OPERAND_REGISTER : INLAY_OPERAND_OTHER;
    to->count = to->kind == INLAY_OPERAND_REGISTER ? from->count : 0;
    if (!to->size) to->size = inlay_reg_bits(to->reg) / 8;
}

inlay_operand tool_operand(const isa_operand *from)
{
    inlay_operand to = {.read = from->access & ISA_READ,
                        .write = from->access & ISA_WRITE,
                        .implicit = from->implicit,
                        .size = from->size};
    switch (from->kind) {
    case ISA_OPERAND_MEM:
        to.kind = INLAY_OPERAND_MEMORY;
        to.memory = from->mem;
        break;
    case ISA_OPERAND_IMM:
        to.kind = INLAY_OPERAND_IMMEDIATE;
        to.value = from->modify == ISA_MODIFY_LSL ? (int64_t)((uint64_t)from->imm << from->amount) : from->imm;
        break;
    case ISA_OPERAND_TARGET:
        to.kind = INLAY_OPERAND_TARGET;
        to.value = from->imm;
        break;
    case ISA_OPERAND_OTHER:
        if (from->reg == ISA_NO_REG) {
            to.kind = INLAY_OPERAND_OTHER;
            to.value = from->imm;
            break;
        }
        name_register(from, &to);
        break;
    default: name_register(from, &to);
    }
    return to;
}
