/* Registers of a context by their names: general ones and what has a word of its own here, vectors and their like in
 * <isa>/context_regs.c, which knows how they lie in memory. */
#include "tool/context_regs.h"
#include "tool/regs.h"

#include <string.h>

enum { WORD_BITS = 64 };

static uint64_t mask_of(unsigned bits) { return bits < WORD_BITS ? (1ull << bits) - 1 : ~0ull; }

size_t inlay_context_get(const inlay_context *c, inlay_reg reg, void *out, size_t room)
{
    size_t bytes = (inlay_reg_bits(reg) + 7) / 8;
    unsigned shift;
    if (!c || !out || !bytes || bytes > room) return 0;
    inlay_context copy = *c;
    const uint64_t *word = tool_context_word(&copy, inlay_reg_whole(reg, &shift));
    if (!word) return tool_context_vector_get(c, reg, out) ? bytes : 0;
    uint64_t value = *word >> shift & mask_of(inlay_reg_bits(reg));
    memcpy(out, &value, bytes);
    return bytes;
}

bool inlay_context_set(inlay_context *c, inlay_reg reg, const void *value, size_t size)
{
    unsigned shift, bits = inlay_reg_bits(reg);
    uint64_t given = 0;
    if (!c || !value || !bits || size != (bits + 7) / 8) return false;
    uint64_t *word = tool_context_word(c, inlay_reg_whole(reg, &shift));
    if (!word) return tool_context_vector_set(c, reg, value);
    memcpy(&given, value, size);
    given &= mask_of(bits);
    bool clears = bits == 32 && inlay_reg_kind_of(reg) == INLAY_REG_GENERAL; /* the rest, as instructions do */
    if (clears || bits == WORD_BITS) *word = given;
    else *word = (*word & ~(mask_of(bits) << shift)) | given << shift;
    return true;
}
