/* x86-64's registers, as operands have them, by their full names. */
#include "tool/operands.h"
#include "isa/x86_64/x86.h"

static bool general(const isa_operand *o, inlay_reg *reg)
{
    if (o->reg >= X86_REGS) return false; /* those of APX */
    switch (o->size) {
    case 8: *reg = INLAY_RAX + o->reg; return true;
    case 4: *reg = INLAY_EAX + o->reg; return true;
    case 2: *reg = INLAY_AX + o->reg; return true;
    case 1: *reg = (o->high_byte ? INLAY_AH : INLAY_AL) + o->reg; return true;
    default: return false;
    }
}

static bool special(const isa_operand *o, inlay_reg *reg)
{
    switch (o->reg) {
    case X86_X87CONTROL: *reg = INLAY_X87_CONTROL; return true;
    case X86_X87STATUS: *reg = INLAY_X87_STATUS; return true;
    case X86_X87TAG: *reg = INLAY_X87_TAG; return true;
    case X86_MXCSR: *reg = INLAY_MXCSR; return true;
    case X86_PKRU: *reg = INLAY_PKRU; return true;
    case X86_XCR0: *reg = INLAY_XCR0; return true;
    default: return false;
    }
}

bool tool_operand_reg(const isa_operand *o, inlay_reg *reg)
{
    static const inlay_reg first[] = {
        [X86_CLASS_XMM] = INLAY_XMM0, [X86_CLASS_YMM] = INLAY_YMM0,   [X86_CLASS_ZMM] = INLAY_ZMM0,
        [X86_CLASS_MASK] = INLAY_K0,  [X86_CLASS_MMX] = INLAY_MM0,    [X86_CLASS_ST] = INLAY_ST0,
        [X86_CLASS_CR] = INLAY_CR0,   [X86_CLASS_SEGMENT] = INLAY_ES, [X86_CLASS_DR] = INLAY_DR0,
        [X86_CLASS_BND] = INLAY_BND0, [X86_CLASS_TMM] = INLAY_TMM0};
    if (o->set == X86_CLASS_GPR) return general(o, reg);
    if (o->set == X86_CLASS_SPECIAL) return special(o, reg);
    *reg = first[o->set] + o->reg;
    return inlay_reg_kind_of(*reg) != INLAY_REG_NONE;
}

bool tool_operands_lock(const isa_insn *in)
{
    const uint8_t *opcode = &in->raw[in->opcode_at];
    bool exchanges = x86_is_one_byte(in, 0x86) || x86_is_one_byte(in, 0x87);
    return exchanges && opcode[1] < 0xc0;
}
