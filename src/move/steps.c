#include "move/steps.h"

#include "base/leb.h"

enum { DELTA = 15, PLACE = 16, SNIPPETS = 32 }; /* of the head */

static int64_t old_step(const move_map *m, const move_map *from)
{
    return from ? (int64_t)(m->old_addr - from->old_addr) : 0;
}

unsigned move_step_head(const move_map *m, const move_map *from)
{
    int64_t old = old_step(m, from);
    uint32_t new = from ? m->new_off - from->new_off : 0;
    unsigned head = old > 0 && old <= DELTA ? (unsigned)old : 0;
    if (new != (uint64_t)old) head |= PLACE;
    if (m->code_off != m->new_off) head |= SNIPPETS;
    return head;
}

uint8_t *move_step_put(uint8_t *to, unsigned head, const move_map *m, const move_map *from)
{
    *to++ = (uint8_t)head;
    if (from && !(head & DELTA)) to = inl_leb_put(to, inl_zigzag(old_step(m, from)));
    if (head & PLACE) to = inl_leb_put(to, from ? m->new_off - from->new_off : 0);
    if (head & SNIPPETS) to = inl_leb_put(to, m->code_off - m->new_off);
    return to;
}

unsigned move_step_take(const uint8_t **p, move_map *m, bool first)
{
    unsigned head = *(*p)++;
    int64_t old = head & DELTA;
    if (!first && !old) old = inl_leb_take_signed(p);
    uint64_t new = head &PLACE ? inl_leb_take(p) : (uint64_t)old;
    m->old_addr += (uint64_t)old;
    m->new_off += (uint32_t) new;
    m->code_off = m->new_off + (head & SNIPPETS ? (uint32_t)inl_leb_take(p) : 0);
    return head;
}
