/* Memory operands and operand lists, slot by slot. */
#include "isa/aarch64/tables.h"

unsigned a64_slot_size(const a64_row *row, const a64_slot *s, uint32_t word)
{
    static const uint8_t float_sizes[4] = {4, 8, 0, 2};
    switch (s->rule) {
    case A64_RULE_F: return s->size * (word >> row->f & 1 ? 8 : 4);
    case A64_RULE_FTYPE: return s->size * float_sizes[word >> 22 & 3];
    case A64_RULE_Q: return s->size * (word >> 30 & 1 ? 16 : 8);
    case A64_RULE_Z10: return s->size << (word >> 10 & 3);
    case A64_RULE_Z22: return s->size << (word >> 22 & 3);
    case A64_RULE_BIT22: return s->size << (word >> 22 & 1);
    case A64_RULE_IMMH: return s->size << (31 - __builtin_clz((word >> 19 & 15) | 1));
    case A64_RULE_UNKNOWN: return 0;
    default: return s->size;
    }
}

unsigned a64_scale(const a64_slot *s, unsigned size)
{
    switch (s->at) {
    case A64_MEM_U12: return size ? size : 8; /* prefetch */
    case A64_MEM_P7:
    case A64_MEM_P7POST:
    case A64_MEM_P7PRE: return size / 2;
    case A64_MEM_P7G:
    case A64_MEM_P7GPOST:
    case A64_MEM_P7GPRE:
    case A64_MEM_G9:
    case A64_MEM_G9POST:
    case A64_MEM_G9PRE: return 16;
    case A64_MEM_PAC:
    case A64_MEM_PACPRE: return 8;
    default: return 1;
    }
}

static int64_t offset_of(const a64_slot *s, uint32_t word, unsigned size)
{
    int64_t scale = a64_scale(s, size);
    switch (s->at) {
    case A64_MEM_U12: return a64_field(word, 10, 12) * scale;
    case A64_MEM_P7:
    case A64_MEM_P7POST:
    case A64_MEM_P7PRE:
    case A64_MEM_P7G:
    case A64_MEM_P7GPOST:
    case A64_MEM_P7GPRE: return a64_signed(a64_field(word, 15, 7), 7) * scale;
    case A64_MEM_PAC:
    case A64_MEM_PACPRE: return a64_signed(a64_field(word, 22, 1) << 9 | a64_field(word, 12, 9), 10) * scale;
    case A64_MEM_B:
    case A64_MEM_T:
    case A64_MEM_R:
    case A64_MEM_VPOST: return 0;
    default: return a64_signed(a64_field(word, 12, 9), 9) * scale;
    }
}

bool a64_is_post(unsigned form)
{
    return form == A64_MEM_S9POST || form == A64_MEM_P7POST || form == A64_MEM_P7GPOST || form == A64_MEM_G9POST ||
           form == A64_MEM_VPOST;
}

bool a64_is_pre(unsigned form)
{
    return form == A64_MEM_S9PRE || form == A64_MEM_P7PRE || form == A64_MEM_P7GPRE || form == A64_MEM_G9PRE ||
           form == A64_MEM_PACPRE;
}

/* The register offset of a load: its low half extended or all of it, and scaled or not. */
static void add_index(uint32_t word, unsigned size, isa_mem *m)
{
    unsigned option = a64_field(word, 13, 3);
    m->index = (uint8_t)a64_field(word, 16, 5);
    if (m->index == 31) m->index = A64_ZR;
    m->scale = word >> 12 & 1 ? (uint8_t)(size ? size : 8) : 1;
    m->index_low = option & 1 ? 0 : 4;
    m->index_signed = option >> 2 & 1 && m->index_low;
}

/* *change: what the base register is changed by besides. */
static void address(const isa_insn *in, const a64_slot *s, isa_mem *m, int64_t *change)
{
    const a64_row *r = a64_row_of(in);
    uint32_t word = a64_word(in);
    unsigned size = a64_slot_size(r, s, word), base = a64_field(word, s->at == A64_MEM_T ? 0 : 5, 5);
    *m = (isa_mem){.base = (uint8_t)base,
                   .index = ISA_NO_REG,
                   .scale = 1,
                   .access = s->access,
                   .size = (uint16_t)size,
                   .count = 1};
    *change = 0;
    if (s->rule == A64_RULE_UNKNOWN) m->bits |= ISA_MEM_VARIABLE;
    if (s->at == A64_MEM_LIT || s->at == A64_MEM_ADR) {
        m->base = ISA_NO_REG;
        m->bits |= ISA_MEM_PCREL;
        m->disp = (int64_t)in->target;
        return;
    }
    if (s->at == A64_MEM_T && base == 31) m->base = A64_ZR;
    int64_t offset = offset_of(s, word, size);
    if (s->at == A64_MEM_R) add_index(word, size, m);
    if (s->at == A64_MEM_VPOST) offset = a64_field(word, 16, 5) == 31 ? (int64_t)size : 0;
    if (!a64_is_post(s->at)) m->disp = offset;
    if (a64_is_post(s->at) || a64_is_pre(s->at)) {
        m->bits |= ISA_MEM_WRITEBACK;
        *change = offset;
    }
}

int a64_memory(const isa_insn *in, isa_mem out[ISA_MAX_MEM])
{
    const a64_row *r = a64_row_of(in);
    int n = 0;
    int64_t change;
    for (unsigned i = 0; i < r->slot_count; i++)
        if (a64_slots[r->slots + i].kind == A64_SLOT_MEM) address(in, &a64_slots[r->slots + i], &out[n++], &change);
    return n;
}

static void modified(const a64_slot *s, uint32_t word, isa_operand *o)
{
    static const uint8_t shifts[] = {ISA_MODIFY_LSL, ISA_MODIFY_LSR, ISA_MODIFY_ASR, ISA_MODIFY_ROR};
    if (s->kind == A64_SLOT_REG_SHIFTED) {
        o->modify = shifts[a64_field(word, 22, 2)];
        o->amount = (uint8_t)a64_field(word, 10, 6);
    } else if (s->kind == A64_SLOT_REG_EXTENDED) {
        unsigned option = a64_field(word, 13, 3);
        o->modify = (uint8_t)(ISA_MODIFY_UXTB + option);
        o->amount = (uint8_t)a64_field(word, 10, 3);
        if ((option & 3) != 3) o->size = 4;
    }
}

/* Of movi and its like: the byte in the instruction; what it stands for hangs on the row. */
static int64_t vector_byte(uint32_t word) { return a64_field(word, 16, 3) << 5 | a64_field(word, 5, 5); }

static int64_t immediate(const a64_row *r, const a64_slot *s, uint32_t word)
{
    uint64_t mask;
    int64_t raw = a64_field(word, s->at, s->width);
    switch (s->kind) {
    case A64_SLOT_IMM: return raw * s->count;
    case A64_SLOT_IMM_SIGNED: return a64_signed((uint64_t)raw, s->width) * s->count;
    case A64_SLOT_IMM_ADD: return (int64_t)a64_field(word, 10, 12) << (word >> 22 & 1 ? 12 : 0);
    case A64_SLOT_IMM_MASK:
        return a64_mask_value(word >> 10 & 0x1fff, word >> r->f & 1 ? 8 : 4, &mask) ? (int64_t)mask : 0;
    case A64_SLOT_IMM_WIDE: return a64_field(word, 5, 16);
    case A64_SLOT_IMM_BIT: return (word >> 31 << 5) | a64_field(word, 19, 5);
    case A64_SLOT_IMM_FLOAT: return a64_field(word, 13, 8);
    case A64_SLOT_IMM_VECTOR: return vector_byte(word);
    case A64_SLOT_COND: return a64_field(word, s->at, 4);
    case A64_SLOT_CRN: return a64_field(word, 12, 4);
    case A64_SLOT_CRM: return a64_field(word, 8, 4);
    case A64_SLOT_SYSREG: return a64_field(word, 5, 15);
    default: return 0;
    }
}

static void operand(const isa_insn *in, const a64_slot *s, unsigned mem, isa_operand *o)
{
    const a64_row *r = a64_row_of(in);
    uint32_t word = a64_word(in);
    isa_mem m;
    *o = (isa_operand){.access = s->access, .reg = ISA_NO_REG, .size = (uint16_t)a64_slot_size(r, s, word)};
    switch (s->kind) {
    case A64_SLOT_REG:
    case A64_SLOT_REG_SP:
    case A64_SLOT_REG_SHIFTED:
    case A64_SLOT_REG_EXTENDED:
        o->kind = ISA_OPERAND_REG;
        o->reg = (uint8_t)a64_field(word, s->at, s->width);
        o->count = s->count;
        if (o->reg == 31 && s->kind != A64_SLOT_REG_SP) o->reg = A64_ZR;
        modified(s, word, o);
        return;
    case A64_SLOT_VEC:
    case A64_SLOT_VEC_ELEMENT:
        o->kind = ISA_OPERAND_VEC;
        o->count = s->count;
        o->reg = (uint8_t)a64_field(word, s->at, s->width);
        return;
    case A64_SLOT_MEM:
        o->kind = ISA_OPERAND_MEM;
        o->mem = (uint8_t)mem;
        address(in, s, &m, &o->imm);
        if (s->at == A64_MEM_VPOST && a64_field(word, 16, 5) != 31) o->reg = (uint8_t)a64_field(word, 16, 5);
        return;
    case A64_SLOT_TARGET:
        o->kind = ISA_OPERAND_TARGET;
        o->imm = (int64_t)in->target;
        return;
    default:
        o->kind = s->kind >= A64_SLOT_COND ? ISA_OPERAND_OTHER : ISA_OPERAND_IMM;
        o->imm = immediate(r, s, word);
        o->size = 8;
        if (s->kind != A64_SLOT_IMM_WIDE) return;
        o->modify = ISA_MODIFY_LSL;
        o->amount = (uint8_t)(16 * a64_field(word, 21, 2));
    }
}

int a64_operands(const isa_insn *in, isa_operand out[ISA_MAX_OPERANDS])
{
    const a64_row *r = a64_row_of(in);
    unsigned mem = 0;
    for (unsigned i = 0; i < r->slot_count; i++) {
        const a64_slot *s = &a64_slots[r->slots + i];
        operand(in, s, mem, &out[i]);
        if (s->kind == A64_SLOT_MEM) mem++;
    }
    return r->slot_count;
}
