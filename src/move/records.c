#include "move/records.h"
#include "base/leb.h"
#include "base/search.h"

static void take_weights(const uint8_t **p, move_record *r)
{
    int64_t sum = 0;
    r->weights = *p;
    r->each = r->flags & MOVE_COUNT_ONES ? 1 : 0;
    r->extra = 0;
    if (r->flags & MOVE_COUNT_WEIGHTS) {
        for (uint64_t k = r->first; k <= r->last; k++) sum += inl_leb_take_signed(p);
    } else {
        if (!(r->flags & MOVE_COUNT_ONES)) r->each = inl_leb_take_signed(p), r->extra = inl_leb_take_signed(p);
        sum = r->each * (int64_t)(r->last - r->first + 1) + r->extra;
    }
    if (r->flags & MOVE_COUNT_SUM) r->total = sum;
}

void move_take_record(const uint8_t **p, move_counts_last *last, move_record *r)
{
    r->flags = *(*p)++;
    uint32_t *counter = &last->counter[(r->flags & MOVE_COUNT_DERIVED) != 0];
    if (!(r->flags & MOVE_COUNT_SAME_COUNTER)) *counter += (uint32_t)inl_leb_take_signed(p);
    r->counter = *counter;
    r->first = r->position = r->from = (uint32_t)inl_leb_take(p);
    r->last = r->to = r->first + (r->flags & MOVE_COUNT_ALONE ? 0 : (uint32_t)inl_leb_take(p));
    if (!(r->flags & MOVE_COUNT_DERIVED)) r->position += (uint32_t)inl_leb_take_signed(p);
    if (!(r->flags & MOVE_COUNT_WHOLE)) {
        r->from += (uint32_t)inl_leb_take_signed(p);
        r->to += (uint32_t)inl_leb_take_signed(p);
    }
    if (!(r->flags & MOVE_COUNT_SUM)) r->total = inl_leb_take_signed(p);
    take_weights(p, r);
}

void move_take_run(const uint8_t **p, move_counts_last *last, uint32_t *insns, uint32_t *records)
{
    last->first += (uint32_t)inl_leb_take(p);
    last->runs++;
    *insns = (uint32_t)inl_leb_take(p);
    *records = (uint32_t)inl_leb_take(p);
}

int64_t move_record_sum(const move_record *r, uint32_t count)
{
    const uint8_t *p = r->weights;
    int64_t sum = 0;
    for (uint32_t k = 0; k <= r->last - r->first && k < count; k++)
        sum += r->flags & MOVE_COUNT_WEIGHTS ? inl_leb_take_signed(&p) : r->each + (k == 0 ? r->extra : 0);
    return sum;
}

uint32_t move_run_group(const move_run_counts *groups, uint32_t count, uint32_t index)
{
    uint32_t behind = (uint32_t)INL_FIRST(count, k, groups[k].first > index);
    return behind;
}
