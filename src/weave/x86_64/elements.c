/* The masks and index vectors of masked operands, stored to the frame and asked there (weave/elements.c):
 *
 *     element_mask    an opmask as 64 bits, or the vector (or MMX) register with the sign bits
 *     element_index   the index vector
 *
 * Storing takes neither flags nor general registers, and leaves the vector state as it is. */
#include "weave/x86_64/machine.h"

static x86_addr mask_addr(unsigned offset) { return x86_gs(WEAVE_OFF(element_mask) + (int32_t)offset); }

/* One of the moves to memory that the emitter has not: opcode bytes, and a register's low three bits. */
static void store_special(x86_code *c, const uint8_t *op, unsigned n, unsigned reg)
{
    uint8_t b[16] = {0x65};
    uint32_t at = (uint32_t)mask_addr(0).disp;
    for (unsigned i = 0; i < n; i++) b[1 + i] = op[i];
    b[++n] = (uint8_t)(reg << 3 | 4); /* no base, no index, disp32 */
    b[++n] = 0x25;
    for (unsigned i = 0; i < 4; i++) b[++n] = (uint8_t)(at >> 8 * i);
    x86_bytes(c, b, n + 1);
}

/* More than 16 lanes are those of bytes and words, whose instructions come with wide masks. */
static void store_opmask(x86_code *c, unsigned lanes, unsigned reg)
{
    static const uint8_t kmovw[] = {0xc5, 0xf8, 0x91}, kmovq[] = {0xc4, 0xe1, 0xf8, 0x91};
    if (lanes > 16) store_special(c, kmovq, sizeof kmovq, reg);
    else store_special(c, kmovw, sizeof kmovw, reg);
}

/* Bytes of a vector register that can be stored wherever the instruction can run: EVEX forms shorter
 * than 64 bytes have an extension of their own, as the instruction has if it is itself so short. */
static unsigned store_bytes(const isa_insn *in)
{
    switch (x86_encoding_of(in)) {
    case X86_EVEX: return 16u << (in->raw[in->opcode_at - 1] >> 5 & 3);
    case X86_LEGACY: return 16;
    default: return 32;
    }
}

void weave_x86_save_masks(weaver *w, const isa_insn *in, const isa_mem *m)
{
    static const uint8_t movq[] = {0x0f, 0x7f};
    switch (m->mask) {
    case ISA_MASK_SIGNS: x86_vec_store(w->c, store_bytes(in), mask_addr(0), m->mask_reg); break;
    case ISA_MASK_SIGNS_MMX: store_special(w->c, movq, sizeof movq, m->mask_reg); break;
    default: store_opmask(w->c, m->lanes, m->mask_reg);
    }
    if (m->index_size) x86_vec_store(w->c, store_bytes(in), x86_gs(WEAVE_OFF(element_index)), m->index);
}

weave_val weave_x86_element_index(weaver *w, const isa_mem *m, unsigned element)
{
    x86_addr at = x86_gs(WEAVE_OFF(element_index) + (int32_t)element * m->index_size);
    weave_val index = weave_owned(weave_take(w, 0, ISA_NO_REG));
    x86_load_sx(w->c, m->index_size, index.reg, at);
    return index;
}

/* The mask's lanes that belong to element e. */
static uint64_t lanes_of(const isa_mem *m, unsigned e)
{
    uint64_t set = 0;
    for (unsigned i = e; i < m->lanes; i += m->elements) set |= 1ull << i;
    return set;
}

/* Loads the opmask, only the bits of `set`. */
static unsigned load_lanes(weaver *w, uint64_t set)
{
    unsigned reg = weave_take(w, 0, ISA_NO_REG), width = set >> 32 ? 8 : set >> 16 ? 4 : 2;
    x86_load(w->c, width, reg, mask_addr(0));
    if (set != UINT64_MAX >> (64 - 8 * width)) x86_alu_ri(w->c, X86_AND, 4, reg, (int64_t)set);
    return reg;
}

int weave_x86_element_condition(weaver *w, const isa_mem *m, unsigned e)
{
    weave_flags_clobber(w);
    if (m->mask == ISA_MASK_PACKED) {
        unsigned reg = load_lanes(w, UINT64_MAX >> (64 - m->lanes));
        x86_popcnt(w->c, 8, reg, reg);
        x86_alu_ri(w->c, X86_CMP, 4, reg, (int64_t)e);
        weave_unlock(w, reg);
        return X86_A;
    }
    if (m->lanes > m->elements) { /* and of 4 bytes, or all 8: what is left is the answer */
        unsigned reg = load_lanes(w, lanes_of(m, e));
        x86_test_rr(w->c, 8, reg, reg);
        weave_unlock(w, reg);
        return X86_NE;
    }
    unsigned bit = m->mask == ISA_MASK_BITS ? e : 8 * m->element * (e + 1) - 1;
    if (m->mask == ISA_MASK_BITS && bit < 16) x86_bt_mi(w->c, 2, mask_addr(0), bit);
    else x86_bt_mi(w->c, 4, mask_addr(bit / 32 * 4), bit % 32);
    return X86_B;
}
