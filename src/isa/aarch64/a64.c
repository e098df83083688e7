/* The instruction set's table of functions, and questions about single instructions. */
#include <elf.h>
#include "isa/aarch64/tables.h"
#include "isa/a64_tables.h"

static const char *mnemonic(uint16_t op) { return a64_mnemonics[op < A64_OP_COUNT ? op : 0]; }

/* By the row that has the mnemonic first: its top-level encoding and what is known of it. */
static const char *category_of(const a64_row *r)
{
    if (r->flow == ISA_FLOW_CALL || r->flow == ISA_FLOW_CALL_IND) return "call";
    if (r->flow == ISA_FLOW_RETURN) return "return";
    if (r->flow == ISA_FLOW_COND || r->flow == ISA_FLOW_COND_REG) return "conditional branch";
    if (r->flow == ISA_FLOW_JUMP || r->flow == ISA_FLOW_JUMP_IND) return "branch";
    switch (r->value >> 25 & 15) {
    case 8:
    case 9: return "immediate";
    case 10:
    case 11: return "system";
    case 4:
    case 12: return r->bits & ISA_BIT_LOCK ? "atomic" : r->bits & ISA_BIT_FP ? "vector load or store" : "load or store";
    case 6:
    case 14: return r->bits & ISA_BIT_FP ? "vector load or store" : "load or store";
    case 5:
    case 13: return "register";
    case 7:
    case 15: return (r->value >> 28 & 5) == 1 ? "floating point" : "vector";
    default: return "unknown";
    }
}

static const char *category(uint16_t op)
{
    for (unsigned i = 1; i < A64_ROW_COUNT; i++)
        if (a64_rows[i].op == op) return category_of(&a64_rows[i]);
    return "unknown";
}

bool a64_is_landing(const isa_insn *in)
{
    return in->row == A64_BTI || in->row == A64_PACIASP || in->row == A64_PACIBSP;
}

bool a64_is_page(const isa_insn *in) { return in->row == A64_ADRP; }

bool a64_wide_constant(const isa_insn *in, uint64_t *value, uint64_t *mask)
{
    if (in->row != A64_MOVN && in->row != A64_MOVZ && in->row != A64_MOVK) return false;
    uint32_t word = a64_word(in);
    uint64_t whole = word >> 31 ? ~0ull : 0xffffffff;
    unsigned shift = 16 * a64_field(word, 21, 2);
    *value = (uint64_t)a64_field(word, 5, 16) << shift;
    if (in->row == A64_MOVN) *value = ~*value & whole;
    *mask = in->row == A64_MOVK ? 0xffffull << shift : whole;
    return true;
}

/* N:imms, with the bits that are all one taken off, say how large the repeated element is. */
bool a64_mask_value(unsigned field, unsigned size, uint64_t *value)
{
    unsigned n = field >> 12 & 1, rotate = field >> 6 & 63, ones = field & 63;
    unsigned levels = n << 6 | (~ones & 63);
    if (levels < 2 || (n && size == 4)) return false;
    unsigned element = 1u << (31 - __builtin_clz(levels));
    ones &= element - 1;
    rotate &= element - 1;
    if (ones == element - 1) return false;
    uint64_t bits = (1ull << (ones + 1)) - 1, all = element == 64 ? ~0ull : (1ull << element) - 1;
    if (rotate) bits = (bits >> rotate | bits << (element - rotate)) & all;
    for (unsigned at = element; at < 64; at *= 2) bits |= bits << at;
    *value = size == 4 ? (uint32_t)bits : bits;
    return true;
}

bool a64_mask_encode(uint64_t value, unsigned size, unsigned *field)
{
    if (size == 4) value = (uint32_t)value | value << 32;
    if (value == 0 || value == ~0ull) return false;
    unsigned element = 64;
    while (element > 2) {
        unsigned half = element / 2;
        uint64_t low = (1ull << half) - 1;
        if ((value & low) != (value >> half & low)) break;
        element = half;
    }
    uint64_t all = element == 64 ? ~0ull : (1ull << element) - 1, bits = value & all;
    unsigned count = (unsigned)__builtin_popcountll(bits);
    for (unsigned rotate = 0; rotate < element; rotate++) {
        uint64_t run = (1ull << count) - 1;
        uint64_t turned = rotate ? (run >> rotate | run << (element - rotate)) & all : run;
        if (turned != bits) continue;
        unsigned n = element == 64, high = n ? 0 : ~(2 * element - 1) & 63;
        *field = n << 12 | rotate << 6 | high | (count - 1);
        return true;
    }
    return false;
}

const isa isa_aarch64 = {
    .name = "aarch64",
    .elf_machine = EM_AARCH64,
    .max_insn = 4,
    .stack_reg = A64_SP,
    .link_reg = A64_LR,
    .op_count = A64_OP_COUNT,
    .decode = a64_decode,
    .effects = a64_effects,
    .memory = a64_memory,
    .operands = a64_operands,
    .mnemonic = mnemonic,
    .category = category,
    .reg_name = a64_reg_name,
    .format = a64_format,
    .relocate = a64_relocate,
    .rebase = a64_rebase,
};
