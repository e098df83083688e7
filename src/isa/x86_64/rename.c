/* See rename.h. The fields that name general registers are those that the effects' lanes know; the rest of
 * the encoding (prefixes, opcode, extensions, immediates) is taken over, REX made anew. */
#include "isa/x86_64/rename.h"

#include <string.h>

#include "isa/x86_64/encode.h"
#include "isa/x86_64/tables.h"

enum { LANE = 0xffff };

static bool has_memory(const isa_insn *in) { return in->modrm_at && in->raw[in->modrm_at] < 0xc0; }

static const x86_fx *fx_of(const isa_insn *in) { return &x86_fxs[x86_row_of(in)->fx]; }

/* Every operand is a general register, memory of the ModRM byte or an immediate. */
static bool is_plain(const isa_insn *in)
{
    const x86_row *row = x86_row_of(in);
    isa_operand o[ISA_MAX_OPERANDS];
    isa_mem m[ISA_MAX_MEM];
    int n = x86_operand_list(in, o), k = x86_memory(in, m);
    for (int i = 0; i < n; i++) {
        bool flags = o[i].kind == ISA_OPERAND_OTHER && o[i].implicit;
        bool good = o[i].kind == ISA_OPERAND_REG || o[i].kind == ISA_OPERAND_MEM || o[i].kind == ISA_OPERAND_IMM;
        if ((!good && !flags) || o[i].high_byte) return false;
    }
    if (k > 1 || (k == 1 && (m[0].bits & ~(unsigned)ISA_MEM_PCREL || m[0].segment || !has_memory(in)))) return false;
    return !(row->form & (X86_FORM_RELATIVE | X86_FORM_ODD));
}

bool x86_fixed_registers(const isa_insn *in, uint16_t *fixed)
{
    enum { OTHER_STYLES = X86_PREFIX_A32 | X86_PREFIX_REX2 | X86_PREFIX_VEX | X86_PREFIX_EVEX };
    const x86_fx *f = fx_of(in);
    *fixed = (uint16_t)((f->fixed | f->fixed >> X86_LANE_WRITES) & LANE);
    if (in->bits & (ISA_BIT_UNKNOWN | ISA_BIT_REP | ISA_BIT_REPNE | ISA_BIT_PRIV)) return false;
    if (in->flow != ISA_FLOW_NEXT || in->x[X86_X_PREFIX] & OTHER_STYLES) return false;
    if (f->has_vec || f->v || f->rare || f->other_reads || f->other_writes) return false;
    if (in->opcode_at >= 2 && (in->raw[in->opcode_at - 1] == 0x38 || in->raw[in->opcode_at - 1] == 0x3a) &&
        in->raw[in->opcode_at - 2] == 0x0f)
        return false;
    return is_plain(in);
}

static bool prefixes(const isa_insn *in, x86_form *form)
{
    unsigned end = in->opcode_at;
    bool escape = end && in->raw[end - 1] == 0x0f, wide = in->x[X86_X_PREFIX] & X86_PREFIX_W;
    form->opcode = in->raw[in->opcode_at];
    form->width = wide ? 8 : 4;
    if (escape) form->bits |= X86_MAP_0F;
    for (unsigned i = 0; i < end - escape; i++) {
        switch (in->raw[i]) {
        case 0x66:
            if (!wide) form->width = 2;
            break;
        case 0xf0: form->bits |= X86_LOCK; break;
        case 0xf3: form->bits |= X86_F3; break;
        case 0xf2: return false;
        default: break; /* REX; segments that 64-bit mode ignores */
        }
    }
    return true;
}

/* Which fields are byte registers, whose numbers 4 to 7 need a REX. */
static uint8_t byte_fields(const isa_insn *in)
{
    const x86_row *row = x86_row_of(in);
    uint8_t bits = 0;
    if (!row->operands) return 0;
    for (const x86_operand *p = &x86_operands[row->operands];; p++) {
        if (p->kind == ISA_OPERAND_REG && p->size == 1 && p->slot == X86_SLOT_REG) bits |= X86_BYTE_REG;
        if (p->kind == ISA_OPERAND_REG && p->size == 1 && p->slot == X86_SLOT_RM) bits |= X86_BYTE_RM;
        if (p->flags & X86_OPERAND_LAST) return bits;
    }
}

static x86_imm immediate(const isa_insn *in)
{
    x86_imm imm = {in->imm_len, 0};
    memcpy(&imm.value, in->raw + in->imm_at, in->imm_len);
    return imm;
}

static uint8_t mapped(const uint8_t map[X86_REGS], uint8_t reg) { return reg < X86_REGS ? map[reg] : reg; }

static x86_addr address(const isa_insn *in, const uint8_t map[X86_REGS])
{
    isa_mem m[ISA_MAX_MEM];
    x86_memory(in, m);
    return (x86_addr){mapped(map, m[0].base),           mapped(map, m[0].index),
                      m[0].scale ? m[0].scale : 1,      0,
                      (m[0].bits & ISA_MEM_PCREL) != 0, m[0].disp};
}

static bool same_address(const isa_insn *out, const x86_addr *a)
{
    isa_mem m[ISA_MAX_MEM];
    if (x86_memory(out, m) != 1 || m[0].segment || m[0].disp != a->disp) return false;
    if (((m[0].bits & ISA_MEM_PCREL) != 0) != a->rip) return false;
    bool straight = m[0].base == a->base && m[0].index == a->index &&
                    (a->index == ISA_NO_REG || m[0].scale == a->scale);
    /* forms that mean the same: an unscaled index is a base */
    bool swapped = a->scale == 1 && m[0].scale == 1 && m[0].base == a->index && m[0].index == a->base;
    bool twice = a->scale == 2 && a->base == ISA_NO_REG && m[0].scale == 1 && m[0].base == a->index &&
                 m[0].index == a->index;
    return straight || swapped || twice;
}

static bool same_operands(const isa_insn *in, const isa_insn *out, const uint8_t map[X86_REGS])
{
    isa_operand a[ISA_MAX_OPERANDS], b[ISA_MAX_OPERANDS];
    int n = x86_operand_list(in, a);
    if (in->op != out->op || in->imm_len != out->imm_len || x86_operand_list(out, b) != n) return false;
    for (int i = 0; i < n; i++) {
        bool same = a[i].kind == b[i].kind && a[i].size == b[i].size && a[i].access == b[i].access &&
                    a[i].imm == b[i].imm && !b[i].high_byte;
        if (a[i].kind == ISA_OPERAND_REG) same = same && b[i].reg == mapped(map, a[i].reg);
        if (!same) return false;
    }
    return true;
}

static bool is_right(const isa_insn *in, const x86_code *c, const uint8_t map[X86_REGS], const x86_addr *mem)
{
    isa_insn out;
    if (x86_decode(c->write, c->at, c->exec, &out) != ISA_OK || out.len != c->at) return false;
    const uint16_t kept = ISA_BIT_LOCK | ISA_BIT_REP | ISA_BIT_REPNE | ISA_BIT_PREDICATED;
    if ((in->bits ^ out.bits) & kept) return false;
    return same_operands(in, &out, map) && (!mem || same_address(&out, mem));
}

bool x86_rename(x86_code *c, const isa_insn *in, const uint8_t map[X86_REGS], const x86_addr *mem)
{
    uint8_t bytes[24];
    uint16_t fixed;
    x86_code one = {.write = bytes, .exec = x86_here(c), .size = sizeof bytes};
    x86_form form = {0};
    const x86_fx *f = fx_of(in);
    if (!x86_fixed_registers(in, &fixed) || !prefixes(in, &form)) return false;
    for (unsigned r = 0; r < X86_REGS; r++)
        if (fixed >> r & 1 && map[r] != r) return false;
    form.bits |= byte_fields(in);
    x86_imm imm = immediate(in);
    unsigned extension = in->modrm_at ? in->raw[in->modrm_at] >> 3 & 7 : 0;
    unsigned reg = f->reg ? mapped(map, in->x[X86_X_REG]) : extension;
    x86_addr at;
    if (has_memory(in)) {
        at = mem ? *mem : address(in, map);
        x86_encode_mem(&one, form, reg, at, imm);
    } else if (mem) {
        return false;
    } else if (in->modrm_at) {
        if (!f->rm) return false;
        x86_encode_reg(&one, form, reg, mapped(map, in->x[X86_X_RM]), imm);
    } else if (f->rm) {
        form.opcode &= 0xf8;
        x86_encode_plus(&one, form, mapped(map, in->x[X86_X_RM]), imm);
    } else {
        x86_encode_op(&one, form, imm);
    }
    if (one.full || one.unreachable || !one.at) return false;
    if (!is_right(in, &one, map, has_memory(in) ? &at : NULL)) return false;
    x86_bytes(c, bytes, one.at);
    if (has_memory(in) && at.rip) isa_fix_later(c, c->at - imm.bytes - 4, imm.bytes, (uint64_t)at.disp);
    return true;
}
