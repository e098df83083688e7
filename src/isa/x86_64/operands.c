/* Memory operands and operand lists, put together from a row's lists and the decoded fields. */
#include <string.h>
#include "isa/x86_64/tables.h"

static int64_t field(const isa_insn *in, unsigned at, unsigned size, bool is_signed)
{
    uint64_t v = 0;
    if (at + size > sizeof in->raw) return 0;
    memcpy(&v, in->raw + at, size);
    if (is_signed && size < 8) {
        unsigned shift = 64 - 8 * size;
        return (int64_t)(v << shift) >> shift;
    }
    return (int64_t)v;
}

int64_t x86_displacement(const isa_insn *in)
{
    if (!in->disp_len) return 0;
    int64_t d = field(in, in->disp_at, in->disp_len, in->modrm_at != 0);
    return in->disp_len == 1 ? d * (1 << x86_row_of(in)->disp_shift) : d;
}

unsigned x86_slot_number(const isa_insn *in, unsigned slot)
{
    switch (slot) {
    case X86_SLOT_REG: return in->x[X86_X_REG];
    case X86_SLOT_RM: return in->x[X86_X_RM];
    case X86_SLOT_V: return in->x[X86_X_V];
    case X86_SLOT_IS4: return in->raw[in->imm_at] >> 4;
    case X86_SLOT_MASK: return in->x[X86_X_VECTOR] & 7;
    default: return 0;
    }
}

static uint8_t reg_or_none(unsigned n) { return n == X86_NONE ? ISA_NO_REG : n; }

static void modrm_address(const isa_insn *in, const x86_mem *m, isa_mem *out)
{
    out->base = reg_or_none(in->x[X86_X_BASE]);
    out->index = reg_or_none(in->x[X86_X_INDEX]);
    if (out->index != ISA_NO_REG) out->scale = 1 << in->x[X86_X_SCALE];
    out->disp = x86_displacement(in);
    if (in->bits & ISA_BIT_PCREL_MEM) {
        out->bits |= ISA_MEM_PCREL;
        out->disp = (int64_t)in->target;
    }
    /* pop computes its address after adding to the stack pointer */
    if (m->flags & X86_MEM_POPPED && out->base == X86_RSP) out->disp += m->size;
}

static void address(const isa_insn *in, const x86_mem *m, isa_mem *out)
{
    bool a32 = in->x[X86_X_PREFIX] & X86_PREFIX_A32;
    *out = (isa_mem){.base = ISA_NO_REG,
                     .index = ISA_NO_REG,
                     .scale = 1,
                     .access = m->access,
                     .bits = m->bits,
                     .size = m->size,
                     .count = m->count,
                     .disp = m->disp};
    switch (m->place) {
    case X86_PLACE_MODRM: modrm_address(in, m, out); break;
    case X86_PLACE_MOFFS: out->disp = x86_displacement(in); break;
    case X86_PLACE_REG: out->base = in->x[X86_X_REG]; break;
    default:
        out->base = m->base;
        if (m->flags & X86_MEM_INDEX8) {
            out->index = X86_RAX;
            out->bits |= ISA_MEM_INDEX8;
        }
    }
    if (m->flags & X86_MEM_SEGMENT) out->segment = in->x[X86_X_SEGMENT];
    if (a32 && !(m->bits & ISA_MEM_STACK)) out->bits |= ISA_MEM_ADDR32;
    if (!m->mask) return;
    out->mask = m->mask;
    out->mask_reg = (uint8_t)x86_slot_number(in, m->mask_slot);
    if (m->mask == ISA_MASK_SIGNS_MMX) out->mask_reg &= 7;
    out->element = m->element;
    out->elements = m->elements;
    out->lanes = m->lanes;
    out->index_size = m->index_size;
}

/* enter with a level of nesting: frames around its own whose pointers it copies, behind the old frame pointer, and its
 * own comes last. 0: anything else. */
static unsigned frames_of_enter(const isa_insn *in)
{
    enum { ENTER = 0xc8, LEVELS = 31 };
    bool enter = in->raw[in->opcode_at] == ENTER && in->imm_len == 3; /* as no other instruction has it */
    return enter ? in->raw[in->imm_at + 2] & LEVELS : 0;
}

static int nest(isa_mem *out, unsigned frames)
{
    const uint16_t word = out->size, copied = (uint16_t)((frames - 1) * word);
    out->size = (uint16_t)((frames + 1) * word);
    out->disp -= (int64_t)frames * word;
    if (!copied) return 1;
    out[1] = (isa_mem){.base = X86_RBP,
                       .index = ISA_NO_REG,
                       .scale = 1,
                       .access = ISA_READ,
                       .bits = ISA_MEM_IMPLICIT,
                       .size = copied,
                       .count = 1,
                       .disp = -(int64_t)copied};
    return 2;
}

int x86_memory(const isa_insn *in, isa_mem out[ISA_MAX_MEM])
{
    if (in->bits & ISA_BIT_UNKNOWN) { /* where is known, what is not */
        x86_mem any = {.place = X86_PLACE_MODRM,
                       .access = ISA_READ_WRITE,
                       .flags = X86_MEM_SEGMENT,
                       .bits = ISA_MEM_VARIABLE,
                       .count = 1};
        if (!(in->x[X86_X_PREFIX] & X86_PREFIX_MEM)) return 0;
        address(in, &any, out);
        return 1;
    }
    const x86_row *row = x86_row_of(in);
    if (!row->mem) return 0;
    int n = 0;
    for (const x86_mem *m = &x86_mems[row->mem];; m++) {
        address(in, m, &out[n++]);
        if (m->flags & X86_MEM_LAST) break;
    }
    const unsigned frames = frames_of_enter(in);
    return frames ? nest(out, frames) : n;
}

static void register_operand(const isa_insn *in, const x86_operand *p, isa_operand *o)
{
    unsigned n = p->slot == X86_SLOT_FIXED ? p->number : x86_slot_number(in, p->slot);
    bool fixed = p->slot == X86_SLOT_FIXED;
    o->set = p->class;
    o->count = 1;
    switch (p->class) {
    case X86_CLASS_GPR:
        if (in->x[X86_X_PREFIX] & X86_PREFIX_EVEX) n &= 15; /* EVEX.X extends vectors only */
        /* A fixed byte register above 3 is ah..bh: nothing names spl..dil without REX. */
        if (p->size == 1 && n >= 4 && n < 8 && (fixed || in->x[X86_X_PREFIX] & X86_PREFIX_NOREX)) {
            o->high_byte = 1;
            n -= 4;
        }
        break;
    case X86_CLASS_MASK:
    case X86_CLASS_MMX:
    case X86_CLASS_ST:
    case X86_CLASS_SEGMENT: n &= 7; break;
    default: break;
    }
    o->reg = n;
}

/* Memory of enter is as large as its frames are many. */
static int nest_operands(const isa_insn *in, isa_operand *out, int n)
{
    isa_mem m[ISA_MAX_MEM];
    int count = x86_memory(in, m);
    for (int i = 0; i < n; i++)
        if (out[i].kind == ISA_OPERAND_MEM) out[i].size = m[out[i].mem].size;
    if (count == 2)
        out[n++] = (isa_operand){
            .kind = ISA_OPERAND_MEM, .access = ISA_READ, .size = m[1].size, .reg = ISA_NO_REG, .mem = 1, .implicit = 1};
    return n;
}

int x86_operand_list(const isa_insn *in, isa_operand out[ISA_MAX_OPERANDS])
{
    const x86_row *row = x86_row_of(in);
    if (!row->operands) return 0;
    int n = 0;
    for (const x86_operand *p = &x86_operands[row->operands];; p++) {
        isa_operand *o = &out[n++];
        *o = (isa_operand){.kind = p->kind,
                           .access = p->access,
                           .size = p->size,
                           .reg = ISA_NO_REG,
                           .implicit = p->flags & X86_OPERAND_IMPLICIT ? 1 : 0};
        switch (p->kind) {
        case ISA_OPERAND_MEM: o->mem = p->number; break;
        case ISA_OPERAND_TARGET: o->imm = (int64_t)in->target; break;
        case ISA_OPERAND_IMM:
            o->imm = p->flags & X86_OPERAND_VALUE
                         ? p->number
                         : field(in, in->imm_at + p->number, p->size, p->flags & X86_OPERAND_SIGNED);
            if (p->flags & X86_OPERAND_NIBBLE) o->imm &= 15;
            break;
        default: register_operand(in, p, o);
        }
        if (p->flags & X86_OPERAND_LAST) break;
    }
    return frames_of_enter(in) ? nest_operands(in, out, n) : n;
}
