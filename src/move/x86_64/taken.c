/* Code that takes the address behind its call off the stack to look at what lies there: strings and tables in the midst
 * of code, as packers (UPX) and hand-written code have them.
 *
 *     call main ; .ascii "..."         main: pop %rsi ; mov (%rsi),%al
 *
 * What only keeps the address for as long as it needs the stack gives it back: a push of it, a jump to it (vfork), a
 * store into a context or a variable (OCaml, coroutines). What writes over it has dropped a frame. */
#include "isa/x86_64/x86.h"
#include "move/x86_64/machine.h"

enum { LONGEST = 24, REX = 0x40, REX_B = 1, POP = 0x58, PUSH = 0x50, NONE = -1 };

/* The register of an instruction of one byte, and perhaps REX, which has it there. */
static int register_of(const isa_insn *in, uint8_t opcode)
{
    unsigned rex = in->len == 2 && (in->raw[0] & 0xf0) == REX ? in->raw[0] : 0;
    uint8_t last = in->raw[in->len - 1];
    if (in->len != 1 + (rex != 0) || (last & 0xf8) != opcode) return NONE;
    return (int)((last & 7) + (rex & REX_B) * 8);
}

static bool gives_back(const isa_insn *in, int reg)
{
    isa_operand o[ISA_MAX_OPERANDS];
    int n = isa_x86_64.operands(in, o);
    bool jumps = in->flow == ISA_FLOW_JUMP_IND && n && o[0].kind == ISA_OPERAND_REG && o[0].reg == reg;
    bool stores = in->flow == ISA_FLOW_NEXT && n == 2 && o[0].kind == ISA_OPERAND_MEM && o[0].access == ISA_WRITE &&
                  o[1].kind == ISA_OPERAND_REG && o[1].reg == reg && o[1].size == 8;
    return jumps || stores || register_of(in, PUSH) == reg;
}

bool move_x86_takes_return(const uint8_t *bytes, size_t size)
{
    size_t at = move_x86_mark_size(bytes, size);
    int reg = NONE;
    for (unsigned i = 0; i < LONGEST; i++) {
        isa_insn in;
        isa_effects fx;
        if (isa_x86_64.decode(bytes + at, size - at, 0, &in) > ISA_UNKNOWN) return reg != NONE;
        at += in.len;
        if (reg == NONE) {
            reg = register_of(&in, POP);
            if (reg == NONE || reg == X86_RSP) return false;
            continue;
        }
        if (in.flow == ISA_FLOW_SYSCALL) continue; /* its number says which registers it reads */
        if (gives_back(&in, reg) || in.flow == ISA_FLOW_RETURN) return false;
        isa_x86_64.effects(&in, &fx);
        if (fx.reads >> reg & 1) return true;
        if (fx.writes >> reg & 1) return false;
        if (in.flow != ISA_FLOW_NEXT && in.flow != ISA_FLOW_COND) return true; /* nobody knows */
    }
    return true;
}
