#include "rewrite/steps.h"

enum { DELTA = 15, PLACE = 16, SNIPPETS = 32 }; /* of the head */

static uint64_t zigzag(int64_t v) { return (uint64_t)v << 1 ^ (uint64_t)(v >> 63); }
static int64_t unzigzag(uint64_t v) { return (int64_t)(v >> 1) ^ -(int64_t)(v & 1); }

static uint8_t *put_uleb(uint8_t *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

static uint64_t take_uleb(const uint8_t **p)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
}

static int64_t old_step(const rewrite_map *m, const rewrite_map *from)
{
    return from ? (int64_t)(m->old_addr - from->old_addr) : 0;
}

unsigned rewrite_step_head(const rewrite_map *m, const rewrite_map *from)
{
    int64_t old = old_step(m, from);
    uint32_t new = from ? m->new_off - from->new_off : 0;
    unsigned head = old > 0 && old <= DELTA ? (unsigned)old : 0;
    if (new != (uint64_t)old) head |= PLACE;
    if (m->code_off != m->new_off) head |= SNIPPETS;
    return head;
}

uint8_t *rewrite_step_put(uint8_t *to, unsigned head, const rewrite_map *m, const rewrite_map *from)
{
    *to++ = (uint8_t)head;
    if (from && !(head & DELTA)) to = put_uleb(to, zigzag(old_step(m, from)));
    if (head & PLACE) to = put_uleb(to, from ? m->new_off - from->new_off : 0);
    if (head & SNIPPETS) to = put_uleb(to, m->code_off - m->new_off);
    return to;
}

unsigned rewrite_step_take(const uint8_t **p, rewrite_map *m, bool first)
{
    unsigned head = *(*p)++;
    int64_t old = head & DELTA;
    if (!first && !old) old = unzigzag(take_uleb(p));
    uint64_t new = head & PLACE ? take_uleb(p) : (uint64_t)old;
    m->old_addr += (uint64_t)old;
    m->new_off += (uint32_t)new;
    m->code_off = m->new_off + (head & SNIPPETS ? (uint32_t)take_uleb(p) : 0);
    return head;
}
