/* Decoding: the rows that a word may be are listed by eleven of its bits; the first that fits is it.
 *
 * A word that no row knows is copied as it is when the top level of the encoding shows that it neither
 * transfers control nor looks at the program counter: there all of both is known. */
#include <string.h>
#include "isa/aarch64/tables.h"

static bool fits(const a64_row *r, uint32_t word)
{
    return (word & r->mask) == r->value && (word & r->reject[0].mask) != r->reject[0].value &&
           (word & r->reject[1].mask) != r->reject[1].value;
}

/* A mask of bits that has no value makes a logical instruction none. */
static bool has_mask(const a64_row *r, uint32_t word)
{
    uint64_t value;
    const a64_slot *s = &a64_slots[r->slots];
    for (unsigned i = 0; i < r->slot_count; i++)
        if (s[i].kind == A64_SLOT_IMM_MASK) return a64_mask_value(word >> 10 & 0x1fff, word >> 31 ? 8 : 4, &value);
    return true;
}

static unsigned find(uint32_t word)
{
    unsigned key = (word >> 21 & 0x1ff) << 2 | (word >> 10 & 3);
    const uint16_t *list = &a64_bucket_rows[a64_buckets[key]];
    while (*list && !fits(&a64_rows[*list], word)) list++;
    return *list && has_mask(&a64_rows[*list], word) ? *list : 0;
}

/* The top level, bits 25 to 28; what may access memory is said. */
static bool is_plain(uint32_t word, uint16_t *bits)
{
    unsigned top = word >> 25 & 15;
    if (top == 0 && !(word >> 31)) return false;            /* reserved */
    if (top == 1 || top == 3) return false;                 /* not allocated */
    if (top == 10 || top == 11) return word >> 23 == 0x1aa; /* branches; system instructions (also of pairs) are none */
    if (top == 8) return (word >> 24 & 31) != 16;           /* adr is known */
    bool vector = top == 0 || top == 2;                     /* SME and SVE: their upper half accesses memory */
    if ((vector && word >> 31) || (top & 5) == 4) *bits |= ISA_BIT_MEM;
    return true;
}

static isa_result unknown(uint32_t word, isa_insn *out)
{
    if (!is_plain(word, &out->bits)) return ISA_INVALID;
    out->bits |= ISA_BIT_UNKNOWN;
    return ISA_UNKNOWN;
}

static uint64_t target_of(const a64_slot *s, uint32_t word, uint64_t addr)
{
    if (s->kind == A64_SLOT_TARGET)
        return addr + (uint64_t)(a64_signed(a64_field(word, s->at, s->width), s->width) * 4);
    if (s->at == A64_MEM_LIT) return addr + (uint64_t)(a64_signed(a64_field(word, 5, 19), 19) * 4);
    int64_t distance = a64_signed((uint64_t)a64_field(word, 5, 19) << 2 | a64_field(word, 29, 2), 21);
    return word >> 31 ? (addr & ~4095ull) + (uint64_t)(distance * 4096) : addr + (uint64_t)distance;
}

isa_result a64_decode(const uint8_t *bytes, size_t avail, uint64_t addr, isa_insn *out)
{
    *out = (isa_insn){.addr = addr, .len = 4};
    if (addr & 3) {
        out->len = 4 - (addr & 3);
        return ISA_INVALID;
    }
    if (avail < 4) {
        out->len = avail ? (uint8_t)avail : 1;
        return ISA_TRUNCATED;
    }
    memcpy(out->raw, bytes, 4);
    uint32_t word = a64_word(out);
    out->row = (uint16_t)find(word);
    if (!out->row) return unknown(word, out);
    const a64_row *r = a64_row_of(out);
    out->op = r->op;
    out->flow = r->flow;
    out->bits = r->bits;
    for (unsigned i = 0; i < r->slot_count; i++) {
        const a64_slot *s = &a64_slots[r->slots + i];
        bool pcrel = s->kind == A64_SLOT_MEM && (s->at == A64_MEM_LIT || s->at == A64_MEM_ADR);
        if (s->kind == A64_SLOT_TARGET || pcrel) out->target = target_of(s, word, addr);
    }
    if (out->flow == ISA_FLOW_COND) {
        out->cond = word & 15;
        if (out->cond >= A64_AL) out->flow = ISA_FLOW_JUMP;
    }
    return ISA_OK;
}
