#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"

#include <errno.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { GAP = 16 * INL_PAGE, TRIES = 8 };

inl_region inl_region_now __attribute__((section(".data"))) = {0};

void inl_region_set(uint64_t low, uint64_t high) { inl_region_now = (inl_region){low, high, low}; }

/* Places are handed out upwards, with gaps between them, and from the start again at the end: by
 * then what lay there is gone, or the hint is not taken. */
uint64_t inl_region_take(size_t size)
{
    inl_region *r = &inl_region_now;
    if (r->high == 0 || size > (r->high - r->low) / 4) return 0;
    uint64_t step = inl_page_up(size) + GAP;
    uint64_t at = __atomic_fetch_add(&r->next, step, __ATOMIC_RELAXED);
    if (at + step <= r->high) return at;
    __atomic_store_n(&r->next, r->low + step, __ATOMIC_RELAXED);
    return r->low;
}

/* --- the spare --- */

static uint64_t spare;
static size_t spare_size;

void inl_spare_keep(size_t size)
{
    spare_size = size;
    spare = inl_region_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

bool inl_spare_drop(void)
{
    uint64_t at = __atomic_exchange_n(&spare, 0, __ATOMIC_SEQ_CST);
    if (at) sys_call2(SYS_munmap, (long)at, (long)spare_size);
    return at != 0;
}

uint64_t inl_region_map(uint64_t at, size_t size, int prot, int flags)
{
    flags |= MAP_ANONYMOUS | MAP_NORESERVE;
    if (!at) at = inl_region_take(size);
    long p;
    do p = sys_call(SYS_mmap, (long)at, (long)size, prot, flags, -1, 0);
    while (p == -ENOMEM && inl_spare_drop());
    return sys_failed(p) ? 0 : (uint64_t)p;
}

static uint64_t map(uint64_t at, size_t size, int flags)
{
    return inl_region_map(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags);
}

/* --- rooms --- */

/* Kernels before 4.17 take the flag for a hint. */
static bool map_there(uint64_t at, size_t size)
{
    uint64_t p = map(at, size, MAP_FIXED_NOREPLACE);
    if (p && p != at) sys_call2(SYS_munmap, (long)p, (long)size);
    return p == at;
}

bool inl_room_take(inl_room *r, size_t size, size_t first)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t at = inl_region_take(size + INL_HUGE_PAGE);
        if (!at) break;
        at = (at + INL_HUGE_PAGE - 1) & -INL_HUGE_PAGE; /* so that it may have large pages */
        *r = (inl_room){at, size, first};
        if (map_there(at, first)) return true;
    }
    *r = (inl_room){map(0, size, 0), size, size};
    return r->at != 0;
}

bool inl_room_grow(inl_room *r, size_t mapped)
{
    mapped = inl_page_up(mapped);
    if (mapped <= r->mapped) return true;
    if (mapped > r->size || !map_there(r->at + r->mapped, mapped - r->mapped)) return false;
    r->mapped = mapped;
    return true;
}

void inl_room_give_back(inl_room *r)
{
    if (r->at) sys_call2(SYS_munmap, (long)r->at, (long)r->mapped);
    *r = (inl_room){0};
}
