/* The instruction set's table of functions, and questions about single instructions. */
#include <elf.h>
#include "isa/x86_64/tables.h"
#include "isa/x86_tables.h"

static const char *mnemonic(uint16_t op) { return x86_mnemonics[op < X86_OP_COUNT ? op : 0]; }
static const char *category(uint16_t op) { return x86_categories[op < X86_OP_COUNT ? op : 0]; }

uint32_t x86_cond_flags(unsigned cond)
{
    static const uint16_t flags[8] = {X86_OF, X86_CF, X86_ZF,          X86_CF | X86_ZF,
                                      X86_SF, X86_PF, X86_SF | X86_OF, X86_ZF | X86_SF | X86_OF};
    return flags[cond >> 1 & 7];
}

bool x86_is_syscall(const isa_insn *in) { return in->op == X86_OP_SYSCALL; }

bool x86_is_one_byte(const isa_insn *in, uint8_t opcode)
{
    bool alone = !in->opcode_at || (in->raw[in->opcode_at - 1] != 0x0f && in->raw[0] != 0x0f);
    return in->raw[in->opcode_at] == opcode && alone && x86_encoding_of(in) == X86_LEGACY;
}

bool x86_is_popf(const isa_insn *in) { return x86_is_one_byte(in, 0x9d) && !in->modrm_at; }

bool x86_is_int80(const isa_insn *in) { return in->op == X86_OP_INT && in->raw[in->imm_at] == 0x80; }

/* F3 0F AE /0../3 with a register. */
bool x86_is_rdfsbase_family(const isa_insn *in)
{
    const x86_fx *fx = &x86_fxs[x86_row_of(in)->fx];
    enum { BASES = ISA_OTHER_TLS_BASE | ISA_OTHER_BASE_2 };
    return in->raw[in->opcode_at] == 0xae && in->modrm_at && in->raw[in->modrm_at] >= 0xc0 &&
           (fx->other_reads | fx->other_writes) & BASES;
}

enum x86_encoding x86_encoding_of(const isa_insn *in)
{
    unsigned at = in->opcode_at;
    if (at >= 4 && in->raw[at - 4] == 0x62) return X86_EVEX;
    if ((at >= 2 && in->raw[at - 2] == 0xc5) || (at >= 3 && in->raw[at - 3] == 0xc4)) return X86_VEX;
    return at >= 3 && in->raw[at - 3] == 0x8f ? X86_XOP : X86_LEGACY;
}

const isa isa_x86_64 = {
    .name = "x86_64",
    .elf_machine = EM_X86_64,
    .max_insn = ISA_MAX_INSN,
    .stack_reg = X86_RSP,
    .link_reg = ISA_NO_REG,
    .op_count = X86_OP_COUNT,
    .decode = x86_decode,
    .effects = x86_effects,
    .memory = x86_memory,
    .operands = x86_operand_list,
    .mnemonic = mnemonic,
    .category = category,
    .reg_name = x86_reg_name,
    .format = x86_format,
    .relocate = x86_relocate,
    .rebase = x86_rebase,
};
