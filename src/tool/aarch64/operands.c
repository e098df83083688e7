/* AArch64's registers, as operands have them, by their full names. */
#include "tool/operands.h"

bool tool_operand_reg(const isa_operand *o, inlay_reg *reg)
{
    static const inlay_reg vectors[] = {
        [1] = INLAY_B0, [2] = INLAY_H0, [4] = INLAY_S0, [8] = INLAY_D0, [16] = INLAY_V0};
    if (o->kind == ISA_OPERAND_REG) {
        *reg = (o->size == 4 ? INLAY_W0 : INLAY_X0) + o->reg;
        return o->reg <= INLAY_XSP; /* not the one that is always 0 */
    }
    bool known = o->size < sizeof vectors / sizeof *vectors && vectors[o->size];
    *reg = (known ? vectors[o->size] : INLAY_V0) + o->reg;
    return o->kind == ISA_OPERAND_VEC;
}

bool tool_operands_lock(const isa_insn *in)
{
    (void)in;
    return false;
}
