/* Packed records to whole ones: the opposite of tools/trace_pack.c. */
#include "trace/reader.h"

#include <string.h>

/* One; the answer is what is behind it, NULL: it is cut off. *time and *sp are those of the one before. */
static const uint8_t *take(const uint8_t *at, const uint8_t *end, uint64_t *time, uint64_t *sp, inlay_trace_record *out)
{
    uint32_t word[5] = {0};
    if (end - at < 4) return NULL;
    memcpy(word, at, 4);
    size_t words = !(word[0] & INLAY_TRACE_IS_LONG) ? 1 : word[0] & INLAY_TRACE_IS_WHOLE & ~INLAY_TRACE_IS_LONG ? 5 : 2;
    if ((size_t)(end - at) < words * 4) return NULL;
    memcpy(word, at, words * 4);
    if (words == 5) {
        memcpy(out, word + 1, sizeof *out);
        if (out->what == (uint32_t)INLAY_TRACE_VALUE) return at + words * 4;
        *time = out->when >> 16;
        *sp = (out->when & 0xffff) << 32 | out->stack;
        return at + words * 4;
    }
    if (words == 1) {
        out->what = word[0] >> 21;
        *sp += (uint64_t)(word[0] >> 15 & 63) * 16 - INLAY_TRACE_SHORT_SP / 2;
        *time += word[0] & (INLAY_TRACE_SHORT_TIME - 1);
    } else {
        out->what = word[0] >> 10 & (INLAY_TRACE_LONG_WHAT - 1);
        *sp += (uint64_t)((word[1] >> 26) << 10 | (word[0] & 1023)) * 8 - INLAY_TRACE_LONG_SP / 2;
        *time += word[1] & (INLAY_TRACE_LONG_TIME - 1);
    }
    out->when = *time << 16 | (*sp >> 32 & 0xffff);
    out->stack = (uint32_t)*sp;
    return at + words * 4;
}

size_t trace_unpack(const void *from, size_t bytes, inlay_trace_record *out)
{
    const uint8_t *at = from, *end = at + bytes;
    uint64_t time = 0, sp = 0;
    size_t n = 0;
    inlay_trace_record one;
    while ((at = take(at, end, &time, &sp, &one))) {
        if (out) out[n] = one;
        n++;
    }
    return n;
}

const inlay_trace_record *trace_piece_records(const trace_piece *p, trace_unpacked *to)
{
    if (!p->packed) return p->records;
    to->count = 0;
    if (!inl_vec_reserve(to, p->count + 1)) return NULL;
    trace_unpack(p->packed, p->packed_bytes, to->items);
    return to->items;
}
