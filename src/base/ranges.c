#include "base/ranges.h"
#include "base/check.h"
#include "base/search.h"

#include <string.h>

size_t inl_ranges_behind(const inl_ranges *v, uint64_t addr) { return INL_FIRST(v->count, i, v->items[i].high > addr); }

static bool insert_at(inl_ranges *v, size_t i, inl_range r)
{
    if (!inl_vec_push(v, r)) return false;
    memmove(&v->items[i + 1], &v->items[i], (v->count - 1 - i) * sizeof r);
    v->items[i] = r;
    return true;
}

static void erase(inl_ranges *v, size_t from, size_t to)
{
    memmove(&v->items[from], &v->items[to], (v->count - to) * sizeof *v->items);
    v->count -= to - from;
}

void inl_ranges_cut(inl_ranges *v, uint64_t low, uint64_t high)
{
    size_t i = inl_ranges_behind(v, low);
    if (i == v->count || v->items[i].low >= high) return;
    if (v->items[i].low < low) {
        inl_range rest = v->items[i];
        v->items[i].high = low;
        rest.low = low;
        if (!insert_at(v, ++i, rest)) return;
    }
    size_t end = i;
    while (end < v->count && v->items[end].high <= high) end++;
    if (end < v->count && v->items[end].low < high) v->items[end].low = high;
    erase(v, i, end);
}

void inl_ranges_put(inl_ranges *v, inl_range r)
{
    if (r.low >= r.high) return;
    inl_ranges_cut(v, r.low, r.high);
    size_t i = inl_ranges_behind(v, r.low);
    if (i && v->items[i - 1].high == r.low && v->items[i - 1].kind == r.kind) {
        v->items[i - 1].high = r.high;
        return;
    }
    insert_at(v, i, r);
}

void inl_ranges_check(const inl_ranges *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const inl_range *r = &v->items[i];
        INL_CHECK(r->low < r->high, "range %zu is [%#llx, %#llx)", i, (unsigned long long)r->low,
                  (unsigned long long)r->high);
        INL_CHECK(!i || r[-1].high <= r->low, "ranges %zu and %zu overlap at %#llx", i - 1, i,
                  (unsigned long long)r->low);
    }
}
