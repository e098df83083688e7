/* From Zydis' operands to the memory and operand lists of a row. */
#include <string.h>
#include "gen.h"

static bool named(const answer *a, const char *part)
{
    return strstr(ZydisMnemonicGetString(a->in.mnemonic), part) != NULL;
}

static bool is_far(const answer *a)
{
    return a->in.meta.category == ZYDIS_CATEGORY_CALL || a->in.meta.category == ZYDIS_CATEGORY_RET
               ? a->in.mnemonic != ZYDIS_MNEMONIC_IRETD && a->in.mnemonic != ZYDIS_MNEMONIC_IRET &&
                     a->in.mnemonic != ZYDIS_MNEMONIC_IRETQ && a->in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR
               : false;
}

static unsigned access_of(const answer *a, const ZydisDecodedOperand *o)
{
    switch (a->in.meta.category) {
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLDEMOTE: return ISA_PREFETCH;
    default: break;
    }
    if (named(a, "gatherpf") || named(a, "scatterpf")) return ISA_PREFETCH;
    if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || o->mem.type == ZYDIS_MEMOP_TYPE_MIB || answer_is_nop(a) ||
        a->in.mnemonic == ZYDIS_MNEMONIC_INVLPG || !o->actions)
        return ISA_ADDRESS_ONLY;
    return (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? ISA_READ : 0) |
           (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ISA_WRITE : 0);
}

/* Gathers and scatters come in pairs: with an even opcode the index elements have 32 bits, with an
 * odd one 64. */
static unsigned index_bits(const answer *a) { return a->form.opcode & 1 ? 64 : 32; }
static unsigned gather_count(const answer *a, unsigned element)
{
    unsigned index = index_bits(a);
    return a->in.avx.vector_length / (element > index ? element : index);
}

/* Exception classes whose masked-out elements raise no fault: they are not accessed. */
static bool suppresses_faults(const answer *a)
{
    switch (a->in.meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_E1:
    case ZYDIS_EXCEPTION_CLASS_E2:
    case ZYDIS_EXCEPTION_CLASS_E3:
    case ZYDIS_EXCEPTION_CLASS_E4:
    case ZYDIS_EXCEPTION_CLASS_E5:
    case ZYDIS_EXCEPTION_CLASS_E6:
    case ZYDIS_EXCEPTION_CLASS_E10:
    case ZYDIS_EXCEPTION_CLASS_E11:
    case ZYDIS_EXCEPTION_CLASS_E12:
        /* Multiplications with four memory values for each sum: bits and values do not pair up. */
        return !named(a, "v4f") && !named(a, "vp4dp");
    default: return false;
    }
}

static const uint8_t broadcast_targets[] = {0, 2, 4, 8, 16, 32, 64, 4, 8, 16, 8, 16, 16};

static bool is_masked(const answer *a, const x86_mem *m)
{
    if (named(a, "maskmov") || m->bits & ISA_MEM_VECTOR_INDEX) return true;
    if (!form_is_evex(&a->form) || !(a->form.context & 0x80)) return false;
    return m->access & ISA_WRITE || suppresses_faults(a);
}

/* The mask: an opmask, or the sign bits of what VEX.vvvv names, or of the second operand. */
static void add_mask(const answer *a, const ZydisDecodedOperand *o, x86_mem *m)
{
    if (!is_masked(a, m)) return;
    bool mmx = a->in.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ;
    m->bits |= ISA_MEM_MASKED;
    m->mask = mmx ? ISA_MASK_SIGNS_MMX : form_is_evex(&a->form) ? ISA_MASK_BITS : ISA_MASK_SIGNS;
    m->mask_slot = form_is_evex(&a->form)                       ? X86_SLOT_MASK
                   : o->encoding == ZYDIS_OPERAND_ENCODING_NONE ? X86_SLOT_RM
                                                                : X86_SLOT_V;
    if (named(a, "expand") || named(a, "compress")) m->mask = ISA_MASK_PACKED;
    bool bytes = mmx || a->in.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU; /* Zydis has larger elements */
    m->element = bytes ? 1 : o->element_size / 8;
    m->elements = m->bits & ISA_MEM_VECTOR_INDEX ? m->count : m->size / m->element;
    m->lanes = m->elements;
    if (a->in.avx.broadcast.mode) m->lanes = broadcast_targets[a->in.avx.broadcast.mode];
    if (m->bits & ISA_MEM_VECTOR_INDEX) m->index_size = index_bits(a) / 8;
}

static bool bit_offset(const answer *a)
{
    return (a->in.mnemonic == ZYDIS_MNEMONIC_BT || a->in.mnemonic == ZYDIS_MNEMONIC_BTS ||
            a->in.mnemonic == ZYDIS_MNEMONIC_BTR || a->in.mnemonic == ZYDIS_MNEMONIC_BTC) &&
           a->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static void place_modrm(const answer *a, const ZydisDecodedOperand *o, x86_mem *m)
{
    m->place = X86_PLACE_MODRM;
    m->flags = o->mem.type == ZYDIS_MEMOP_TYPE_AGEN ? 0 : X86_MEM_SEGMENT;
    if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        m->bits |= ISA_MEM_VECTOR_INDEX;
        m->size = o->element_size / 8;
        m->count = gather_count(a, o->element_size);
    }
    if (bit_offset(a)) m->bits |= ISA_MEM_BIT_OFFSET;
    if (a->in.mnemonic == ZYDIS_MNEMONIC_POP) m->flags |= X86_MEM_POPPED;
}

static void place_fixed(const answer *a, const ZydisDecodedOperand *o, x86_mem *m)
{
    reg_id base;
    m->bits |= ISA_MEM_IMPLICIT;
    m->place = X86_PLACE_FIXED;
    if (reg_of(o->mem.base, &base)) m->base = base.number;
    if (o->mem.segment == ZYDIS_REGISTER_DS) m->flags |= X86_MEM_SEGMENT;
    if (answer_repeats(a)) m->bits |= ISA_MEM_REPEATED;
    if (a->in.mnemonic == ZYDIS_MNEMONIC_XLAT) m->flags |= X86_MEM_INDEX8;
    if (o->mem.base == ZYDIS_REGISTER_RSP) {
        m->bits |= ISA_MEM_STACK;
        if (is_far(a)) m->size = 2 * a->in.operand_width / 8; /* CS too */
        if (m->access & ISA_WRITE) m->disp = -(int)m->size;
    }
    if (answer_stores_at_reg(a)) m->place = X86_PLACE_REG;
}

static void mem_of(const answer *a, const ZydisDecodedOperand *o, x86_mem *m)
{
    *m = (x86_mem){.access = access_of(a, o), .size = o->size / 8, .count = 1};
    if (o->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
        place_modrm(a, o, m);
    } else if (o->encoding == ZYDIS_OPERAND_ENCODING_NONE) {
        place_fixed(a, o, m);
    } else {
        m->place = X86_PLACE_MOFFS;
        m->flags = X86_MEM_SEGMENT;
    }
    if (a->in.meta.category == ZYDIS_CATEGORY_XSAVE || a->in.meta.category == ZYDIS_CATEGORY_XSAVEOPT ||
        (a->in.meta.category == ZYDIS_CATEGORY_AMX_TILE && !o->size)) {
        m->bits |= ISA_MEM_VARIABLE;
        m->size = 0;
    }
    add_mask(a, o, m);
}

size_t mems_of(const answer *a, bool *touches)
{
    x86_mem list[ISA_MAX_MEM];
    size_t n = 0;
    *touches = false;
    memset(list, 0, sizeof list);
    for (int i = 0; i < a->in.operand_count && n < ISA_MAX_MEM; i++) {
        if (a->op[i].type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
        mem_of(a, &a->op[i], &list[n]);
        if (list[n++].access & ISA_READ_WRITE) *touches = true;
    }
    if (!n) return 0;
    list[n - 1].flags |= X86_MEM_LAST;
    return lists_add(&gen_mems, list, n);
}

static bool register_operand(const answer *a, const ZydisDecodedOperand *o, x86_operand *p)
{
    reg_id r;
    if (!reg_of(o->reg.value, &r)) return false;
    p->slot = slot_of(o->encoding);
    if (p->slot == X86_SLOT_MASK && !(a->form.context & 0x80)) return false;
    p->class = r.class;
    p->number = p->slot == X86_SLOT_FIXED ? r.number + (r.high ? 4 : 0) : 0;
    switch (r.class) {
    case X86_CLASS_GPR:
        p->kind = ISA_OPERAND_REG;
        p->size = r.bytes;
        break;
    case X86_CLASS_XMM:
    case X86_CLASS_YMM:
    case X86_CLASS_ZMM: p->kind = ISA_OPERAND_VEC; break;
    case X86_CLASS_MASK: p->kind = ISA_OPERAND_MASK; break;
    default: p->kind = ISA_OPERAND_OTHER;
    }
    return true;
}

static void immediate_operand(const answer *a, const ZydisDecodedOperand *o, unsigned which, x86_operand *p)
{
    p->kind = o->imm.is_relative ? ISA_OPERAND_TARGET : ISA_OPERAND_IMM;
    p->size = a->in.raw.imm[which].size / 8;
    p->number = which ? a->in.raw.imm[0].size / 8 : 0;
    if (o->imm.is_signed) p->flags |= X86_OPERAND_SIGNED;
    for (int i = 0; i < a->in.operand_count; i++)
        if (a->op[i].encoding == ZYDIS_OPERAND_ENCODING_IS4) p->flags |= X86_OPERAND_NIBBLE;
    if (o->encoding == ZYDIS_OPERAND_ENCODING_NONE) {
        p->flags |= X86_OPERAND_VALUE;
        p->number = o->imm.value.u;
        p->size = 1;
    }
}

size_t operands_of(const answer *a)
{
    x86_operand list[ISA_MAX_OPERANDS];
    size_t n = 0;
    unsigned mems = 0, imms = 0;
    memset(list, 0, sizeof list);
    for (int i = 0; i < a->in.operand_count && n < ISA_MAX_OPERANDS; i++) {
        const ZydisDecodedOperand *o = &a->op[i];
        x86_operand *p = &list[n];
        *p = (x86_operand){.size = o->size / 8};
        p->access = (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? ISA_READ : 0) |
                    (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ISA_WRITE : 0);
        if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) p->flags |= X86_OPERAND_IMPLICIT;
        if (n == 0 && form_is_evex(&a->form) && a->form.context & 0x40) p->flags |= X86_OPERAND_ZEROING;
        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            if (!register_operand(a, o, p)) continue;
        } else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            p->kind = ISA_OPERAND_MEM;
            p->number = mems++;
            if (form_is_evex(&a->form) && a->form.context & 0x20)
                p->broadcast = broadcast_targets[a->in.avx.broadcast.mode];
        } else {
            immediate_operand(a, o, imms++, p);
        }
        n++;
    }
    if (!n) return 0;
    list[n - 1].flags |= X86_OPERAND_LAST;
    return lists_add(&gen_operands, list, n);
}
