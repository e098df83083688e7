/* Encoding: the fields of a row's slots, each checked by reading it back. */
#include "isa/aarch64/encode.h"

typedef struct encoder {
    uint32_t word;
    uint64_t addr;
    bool fails;
} encoder;

static void put(encoder *e, unsigned at, unsigned width, uint64_t value)
{
    if (value >> width) e->fails = true;
    e->word |= (uint32_t)(value & ((1ull << width) - 1)) << at;
}

static void put_signed(encoder *e, unsigned at, unsigned width, int64_t value)
{
    if (a64_signed((uint64_t)value, width) != value) e->fails = true;
    put(e, at, width, (uint64_t)value & ((1ull << width) - 1));
}

/* A multiple of `scale`, divided. */
static int64_t divided(encoder *e, int64_t value, int64_t scale)
{
    if (scale == 0 || value % scale) {
        e->fails = true;
        return 0;
    }
    return value / scale;
}

static void put_register(encoder *e, const a64_slot *s, const isa_operand *o)
{
    unsigned zero = s->kind == A64_SLOT_REG_SP ? A64_SP : A64_ZR, number = o->reg == zero ? 31 : o->reg;
    bool other = s->kind <= A64_SLOT_REG_EXTENDED && o->reg == (zero == A64_SP ? A64_ZR : A64_SP);
    if (other) e->fails = true;
    put(e, s->at, s->width, number);
    if (s->kind == A64_SLOT_REG_SHIFTED) {
        unsigned type = o->modify == ISA_MODIFY_NONE ? 0 : o->modify - (unsigned)ISA_MODIFY_LSL;
        put(e, 22, 2, type);
        put(e, 10, 6, o->amount);
    } else if (s->kind == A64_SLOT_REG_EXTENDED) {
        put(e, 13, 3, o->modify - (unsigned)ISA_MODIFY_UXTB);
        put(e, 10, 3, o->amount);
    }
}

static void put_relative(encoder *e, const a64_slot *s, uint64_t target)
{
    if (s->kind == A64_SLOT_TARGET || s->at == A64_MEM_LIT) {
        unsigned width = s->kind == A64_SLOT_TARGET ? s->width : 19, at = s->kind == A64_SLOT_TARGET ? s->at : 5;
        put_signed(e, at, width, divided(e, (int64_t)(target - e->addr), 4));
        return;
    }
    bool page = e->word >> 31;
    int64_t distance = (int64_t)(target - (page ? e->addr & ~4095ull : e->addr));
    if (page) distance = divided(e, distance, 4096);
    if (a64_signed((uint64_t)distance, 21) != distance) e->fails = true;
    put(e, 29, 2, (uint64_t)distance & 3);
    put(e, 5, 19, (uint64_t)distance >> 2 & 0x7ffff);
}

static void put_index(encoder *e, const isa_mem *m, unsigned size)
{
    bool low = m->index_low != 0;
    put(e, 16, 5, m->index == A64_ZR ? 31 : m->index);
    put(e, 13, 3, (m->index_signed ? 4u : 0) | 2 | !low);
    unsigned unit = size ? size : 8;
    if (m->scale == unit && (unit > 1 || e->word >> 12 & 1)) put(e, 12, 1, 1);
    else if (m->scale != 1) e->fails = true;
}

static void put_offset(encoder *e, const a64_slot *s, const isa_mem *m, const isa_operand *o, unsigned size)
{
    bool writes = m->bits & ISA_MEM_WRITEBACK;
    int64_t scaled = divided(e, writes ? o->imm : m->disp, a64_scale(s, size));
    switch (s->at) {
    case A64_MEM_B:
    case A64_MEM_T: break;
    case A64_MEM_U12: put(e, 10, 12, (uint64_t)scaled); break;
    case A64_MEM_R: put_index(e, m, size); break;
    case A64_MEM_P7:
    case A64_MEM_P7POST:
    case A64_MEM_P7PRE:
    case A64_MEM_P7G:
    case A64_MEM_P7GPOST:
    case A64_MEM_P7GPRE: put_signed(e, 15, 7, scaled); break;
    case A64_MEM_PAC:
    case A64_MEM_PACPRE:
        put(e, 22, 1, (uint64_t)scaled >> 9 & 1);
        put(e, 12, 9, (uint64_t)scaled & 0x1ff);
        if (a64_signed((uint64_t)scaled, 10) != scaled) e->fails = true;
        break;
    case A64_MEM_VPOST: put(e, 16, 5, o->reg == ISA_NO_REG ? 31 : o->reg); break;
    default: put_signed(e, 12, 9, scaled);
    }
}

static void put_memory(encoder *e, const a64_row *r, const a64_slot *s, const isa_operand *o, const isa_mem *m)
{
    if (s->at == A64_MEM_LIT || s->at == A64_MEM_ADR) {
        put_relative(e, s, (uint64_t)m->disp);
        return;
    }
    if (m->base == A64_ZR && s->at != A64_MEM_T) e->fails = true;
    put(e, s->at == A64_MEM_T ? 0 : 5, 5, m->base == A64_ZR ? 31 : m->base);
    put_offset(e, s, m, o, a64_slot_size(r, s, e->word));
}

static void put_immediate(encoder *e, const a64_row *r, const a64_slot *s, const isa_operand *o)
{
    unsigned field;
    uint64_t value = (uint64_t)o->imm;
    switch (s->kind) {
    case A64_SLOT_IMM: put(e, s->at, s->width, (uint64_t)divided(e, o->imm, s->count)); break;
    case A64_SLOT_IMM_SIGNED: put_signed(e, s->at, s->width, divided(e, o->imm, s->count)); break;
    case A64_SLOT_IMM_ADD: put(e, 10, 12, (uint64_t)divided(e, o->imm, e->word >> 22 & 1 ? 4096 : 1)); break;
    case A64_SLOT_IMM_MASK:
        if (a64_mask_encode(value, e->word >> r->f & 1 ? 8 : 4, &field)) put(e, 10, 13, field);
        else e->fails = true;
        break;
    case A64_SLOT_IMM_WIDE:
        put(e, 5, 16, value);
        put(e, 21, 2, (uint64_t)divided(e, o->amount, 16));
        break;
    case A64_SLOT_IMM_BIT:
        put(e, 19, 5, value & 31);
        put(e, 31, 1, value >> 5);
        break;
    case A64_SLOT_IMM_FLOAT: put(e, 13, 8, value); break;
    case A64_SLOT_IMM_VECTOR:
        put(e, 16, 3, value >> 5);
        put(e, 5, 5, value & 31);
        break;
    case A64_SLOT_COND: put(e, s->at, 4, value); break;
    case A64_SLOT_CRN: put(e, 12, 4, value); break;
    case A64_SLOT_CRM: put(e, 8, 4, value); break;
    case A64_SLOT_SYSREG: e->word |= (uint32_t)(value & 0x7fff) << 5; break;
    default: break;
    }
}

bool a64_encode(unsigned row, uint32_t free, const isa_operand *ops, const isa_mem *mem, uint64_t addr, uint32_t *word)
{
    const a64_row *r = &a64_rows[row];
    encoder e = {.word = r->value | (free & r->free), .addr = addr};
    for (unsigned i = 0; i < r->slot_count; i++) {
        const a64_slot *s = &a64_slots[r->slots + i];
        if (s->kind <= A64_SLOT_VEC_ELEMENT) put_register(&e, s, &ops[i]);
        else if (s->kind == A64_SLOT_MEM) put_memory(&e, r, s, &ops[i], &mem[ops[i].mem]);
        else if (s->kind == A64_SLOT_TARGET) put_relative(&e, s, (uint64_t)ops[i].imm);
        else put_immediate(&e, r, s, &ops[i]);
    }
    *word = e.word;
    return !e.fails && (e.word & r->mask) == r->value;
}
