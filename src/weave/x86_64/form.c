/* What instructions compute (weave/form.h), read off their opcodes; and whether a condition holds for known values. */
#include "weave/form.h"
#include "weave/x86_64/machine.h"

static void of_group(uint8_t op, unsigned field, weave_form *f)
{
    if (op == 0xf6 || op == 0xf7) {
        f->kind = field < 2    ? WEAVE_FORM_COMPARE
                  : field == 2 ? WEAVE_FORM_NOT
                  : field == 3 ? WEAVE_FORM_NEGATE
                               : WEAVE_FORM_OTHER;
        f->op = SNIPPET_AND;
    } else if (op == 0xfe || op == 0xff) {
        f->kind = field < 2 ? WEAVE_FORM_STEP : WEAVE_FORM_OTHER;
        f->op = field ? SNIPPET_SUB : SNIPPET_ADD;
    } else { /* c0, c1, d0 to d3 */
        f->kind = field == X86_SHL || field == X86_SHR || field == X86_SAR ? WEAVE_FORM_SHIFT : WEAVE_FORM_OTHER;
        f->op = field == X86_SHL ? SNIPPET_SHL : field == X86_SHR ? SNIPPET_SHR : SNIPPET_SAR;
    }
}

static void of_alu(unsigned op, weave_form *f)
{
    static const uint8_t ops[] = {[X86_ADD] = SNIPPET_ADD, [X86_OR] = SNIPPET_OR,   [X86_AND] = SNIPPET_AND,
                                  [X86_SUB] = SNIPPET_SUB, [X86_XOR] = SNIPPET_XOR, [X86_CMP] = SNIPPET_SUB};
    f->kind = op == X86_ADC || op == X86_SBB ? WEAVE_FORM_OTHER : op == X86_CMP ? WEAVE_FORM_COMPARE : WEAVE_FORM_ALU;
    f->op = ops[op];
}

static void of_escaped(uint8_t op, weave_form *f)
{
    if ((op & 0xf8) == 0x18) f->kind = WEAVE_FORM_NOTHING; /* nop, endbr64, prefetch */
    else if (op == 0xb6 || op == 0xb7) f->kind = WEAVE_FORM_ZERO;
    else if (op == 0xbe || op == 0xbf) f->kind = WEAVE_FORM_SIGN;
    else if (op == 0xaf) f->kind = WEAVE_FORM_MULTIPLY;
}

static void of_opcode(const isa_insn *in, weave_form *f)
{
    uint8_t op = in->raw[in->opcode_at];
    unsigned field = in->modrm_at ? in->raw[in->modrm_at] >> 3 & 7 : 0;
    uint8_t escape = in->opcode_at ? in->raw[in->opcode_at - 1] : 0;
    if (escape == 0x0f) of_escaped(op, f);
    else if (escape == 0x38 || escape == 0x3a) f->kind = WEAVE_FORM_OTHER;
    else if (op < 0x40 && (op & 7) < 6) of_alu(op >> 3, f);
    else if (op >= 0x80 && op <= 0x83 && op != 0x82) of_alu(field, f);
    else if ((op & 0xfe) == 0x84 || (op & 0xfe) == 0xa8)
        *f = (weave_form){.kind = WEAVE_FORM_COMPARE, .op = SNIPPET_AND};
    else if ((op & 0xfc) == 0x88 || (op & 0xfe) == 0xc6 || (op & 0xf0) == 0xb0 || (op & 0xfc) == 0xa0)
        f->kind = WEAVE_FORM_MOVE;
    else if (op == 0x8d) f->kind = WEAVE_FORM_ADDRESS;
    else if (op == 0x63 || op == 0x98) f->kind = WEAVE_FORM_SIGN;
    else if (op == 0x69 || op == 0x6b) f->kind = WEAVE_FORM_MULTIPLY;
    else if (op == 0x90 && in->opcode_at == 0) f->kind = WEAVE_FORM_NOTHING;
    else if ((op & 0xfe) == 0xc0 || (op & 0xfc) == 0xd0 || (op & 0xfe) == 0xf6 || (op & 0xfe) == 0xfe)
        of_group(op, field, f);
}

/* Of the explicit operands, the first is the destination and the first source. */
static bool place(weave_form *f, isa_operand e[3], unsigned count)
{
    static const isa_operand one = {.kind = ISA_OPERAND_IMM, .implicit = 1, .imm = 1};
    switch (f->kind) {
    case WEAVE_FORM_MOVE:
    case WEAVE_FORM_SIGN:
    case WEAVE_FORM_ZERO:
    case WEAVE_FORM_ADDRESS: f->dst = e[0], f->a = e[1]; return count == 2;
    case WEAVE_FORM_MULTIPLY:
        f->dst = e[0], f->b = e[1];
        f->a = count == 3 ? e[2] : e[0];
        return count >= 2;
    case WEAVE_FORM_COMPARE: f->a = e[0], f->b = e[1]; return count == 2;
    case WEAVE_FORM_SHIFT: f->dst = f->a = e[0], f->b = count > 1 ? e[1] : one; return count >= 1;
    case WEAVE_FORM_ALU: f->dst = f->a = e[0], f->b = e[1]; return count == 2;
    default: f->dst = f->a = e[0]; return count >= 1;
    }
}

/* cdqe: rax, eax */
static unsigned of_cdqe(const isa_operand *o, int n, isa_operand e[3])
{
    unsigned found = 0;
    for (int i = 0; i < n; i++) {
        if (o[i].kind != ISA_OPERAND_REG || (o[i].size != 8 && o[i].size != 4)) continue;
        e[o[i].size == 4] = o[i];
        found |= o[i].size;
    }
    return found == 12 ? 2 : 0;
}

void weave_x86_form(const isa_insn *in, weave_form *f)
{
    isa_operand o[ISA_MAX_OPERANDS], e[3];
    unsigned count = 0;
    *f = (weave_form){0};
    if (x86_encoding_of(in) != X86_LEGACY) return;
    of_opcode(in, f);
    if (f->kind == WEAVE_FORM_OTHER || f->kind == WEAVE_FORM_NOTHING) return;
    int n = isa_x86_64.operands(in, o);
    for (int i = 0; i < n && count < 3; i++)
        if (!o[i].implicit) e[count++] = o[i];
    if (in->raw[in->opcode_at] == 0x98) count = of_cdqe(o, n, e);
    if (!place(f, e, count)) *f = (weave_form){0};
}

static uint64_t cut(uint64_t v, unsigned width) { return width >= 8 ? v : v & ((1ull << 8 * width) - 1); }

static uint32_t flags_of(unsigned op, unsigned width, uint64_t a, uint64_t b)
{
    bool subtracts = op == SNIPPET_SUB;
    a = cut(a, width), b = cut(b, width);
    uint64_t v = subtracts ? cut(a - b, width) : op == SNIPPET_OR ? a | b : op == SNIPPET_XOR ? a ^ b : a & b;
    uint64_t top = 1ull << (8 * width - 1);
    uint32_t flags = v ? 0 : X86_ZF;
    if (v & top) flags |= X86_SF;
    if (subtracts && a < b) flags |= X86_CF;
    if (subtracts && (a ^ b) & (a ^ v) & top) flags |= X86_OF;
    return flags;
}

bool weave_x86_holds(unsigned cond, unsigned op, unsigned width, uint64_t a, uint64_t b, bool *yes)
{
    bool is_known = op == SNIPPET_SUB || op == SNIPPET_AND || op == SNIPPET_OR || op == SNIPPET_XOR;
    if (!is_known || x86_cond_flags(cond) & X86_PF) return false;
    uint32_t f = flags_of(op, width, a, b);
    bool less = !(f & X86_SF) != !(f & X86_OF), so;
    switch (cond >> 1) {
    case 0: so = f & X86_OF; break;
    case 1: so = f & X86_CF; break;
    case 2: so = f & X86_ZF; break;
    case 3: so = f & (X86_CF | X86_ZF); break;
    case 4: so = f & X86_SF; break;
    case 6: so = less; break;
    default: so = less || f & X86_ZF;
    }
    *yes = so ^ (cond & 1);
    return true;
}
