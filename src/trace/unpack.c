/* Packed records to whole ones: the opposite of tools/trace_pack.c. */
#include "trace/reader.h"

#include <stdlib.h>
#include <string.h>

typedef struct unpacking {
    uint64_t time, sp; /* of the record before */
    uint64_t counted[INLAY_TRACE_EVENTS_MOST];
} unpacking;

/* How many words a record has, by the first of them. */
static size_t words_of(uint32_t first)
{
    if (!(first & INLAY_TRACE_IS_LONG)) return 1;
    if ((first & INLAY_TRACE_IS_WHOLE) != INLAY_TRACE_IS_WHOLE) return 2;
    if ((first & INLAY_TRACE_IS_MUCH) != INLAY_TRACE_IS_MUCH) return 5;
    return (first & INLAY_TRACE_IS_MORE) == INLAY_TRACE_IS_MORE ? 1 : 2;
}

static void take_whole(unpacking *u, const uint32_t *word, inlay_trace_record *out)
{
    memcpy(out, word + 1, sizeof *out);
    if (out->what == (uint32_t)INLAY_TRACE_VALUE) return;
    u->time = out->when >> 16;
    u->sp = (out->when & 0xffff) << 32 | out->stack;
}

static void take_more(unpacking *u, const uint32_t *word, size_t words, inlay_trace_record *out)
{
    uint32_t event = word[0] >> 24 & (INLAY_TRACE_EVENTS_MOST - 1), high = word[0] & (INLAY_TRACE_SHORT_MORE - 1);
    u->counted[event] += words == 1 ? high : (uint64_t)high << 32 | word[1];
    *out = (inlay_trace_record){u->counted[event], event | 'e' << 8 | sizeof(uint64_t) << 16,
                                (uint32_t)INLAY_TRACE_VALUE};
}

static void take_step(unpacking *u, const uint32_t *word, size_t words, inlay_trace_record *out)
{
    if (words == 1) {
        out->what = word[0] >> 21;
        u->sp += (uint64_t)(word[0] >> 15 & 63) * 16 - INLAY_TRACE_SHORT_SP / 2;
        u->time += word[0] & (INLAY_TRACE_SHORT_TIME - 1);
    } else {
        out->what = word[0] >> 10 & (INLAY_TRACE_LONG_WHAT - 1);
        u->sp += (uint64_t)((word[1] >> 26) << 10 | (word[0] & 1023)) * 8 - INLAY_TRACE_LONG_SP / 2;
        u->time += word[1] & (INLAY_TRACE_LONG_TIME - 1);
    }
    out->when = u->time << 16 | (u->sp >> 32 & 0xffff);
    out->stack = (uint32_t)u->sp;
}

/* One; the answer is what is behind it, NULL: it is cut off. */
static const uint8_t *take(const uint8_t *at, const uint8_t *end, unpacking *u, inlay_trace_record *out)
{
    uint32_t word[5] = {0};
    if (end - at < 4) return NULL;
    memcpy(word, at, 4);
    size_t words = words_of(word[0]);
    if ((size_t)(end - at) < words * 4) return NULL;
    memcpy(word, at, words * 4);
    if (words == 5) take_whole(u, word, out);
    else if ((word[0] & INLAY_TRACE_IS_MUCH) == INLAY_TRACE_IS_MUCH) take_more(u, word, words, out);
    else take_step(u, word, words, out);
    return at + words * 4;
}

size_t trace_unpack(const void *from, size_t bytes, inlay_trace_record *out)
{
    const uint8_t *at = from, *end = at + bytes;
    unpacking u = {0};
    size_t n = 0;
    inlay_trace_record one;
    while ((at = take(at, end, &u, &one))) {
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
    size_t size = p->packed_bytes;
    void *inflated = p->is_compressed ? trace_inflate(p->packed, p->packed_bytes, &size) : NULL;
    if (p->is_compressed && !inflated) return NULL;
    trace_unpack(inflated ? inflated : p->packed, size, to->items);
    free(inflated);
    return to->items;
}
