#include "base/region.h"

enum { PAGE = 4096, GAP = 16 * PAGE };

inl_region inl_region_now __attribute__((section(".data"))) = {0};

void inl_region_set(uint64_t low, uint64_t high)
{
    inl_region_now = (inl_region){low, high, low};
}

/* Places are handed out upwards, with gaps between them, and from the start again at the end: by
 * then what lay there is gone, or the hint is not taken. */
uint64_t inl_region_take(size_t size)
{
    inl_region *r = &inl_region_now;
    if (r->high == 0 || size > (r->high - r->low) / 4) return 0;
    uint64_t step = ((size + PAGE - 1) & ~(uint64_t)(PAGE - 1)) + GAP;
    uint64_t at = __atomic_fetch_add(&r->next, step, __ATOMIC_RELAXED);
    if (at + step <= r->high) return at;
    __atomic_store_n(&r->next, r->low + step, __ATOMIC_RELAXED);
    return r->low;
}
