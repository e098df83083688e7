/* An event's page (perf_event_open(2), "MMAP layout"): `lock` changes before and behind each change of the others.
 * `index` is 0 while no counter is the event's: `offset` is all there is to know then. */
#include "tool/perf.h"

static uint64_t extend(uint64_t counter, unsigned width)
{
    unsigned unused = width && width < 64 ? 64 - width : 0;
    return (uint64_t)((int64_t)(counter << unused) >> unused);
}

bool perf_page_read(const struct perf_event_mmap_page *page, uint64_t (*pmc)(uint32_t), uint64_t *value)
{
    const volatile struct perf_event_mmap_page *p = page;
    for (;;) {
        uint32_t lock = p->lock;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool can = p->cap_user_rdpmc;
        uint32_t index = p->index;
        uint64_t sum = (uint64_t)p->offset;
        if (can && index) sum += extend(pmc(index - 1), p->pmc_width);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (p->lock != lock) continue;
        *value = sum;
        return can;
    }
}
