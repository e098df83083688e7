/* Memory that is about to be used from one end to the other, or all of it, is asked of the kernel in pieces and not
 * page by page: a page fault costs as much as the translation of some ten blocks. */
#ifndef INL_BASE_AHEAD_H
#define INL_BASE_AHEAD_H

#include "base/page.h"
#include "base/sys.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14; earlier kernels refuse, and nothing follows from that */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* The kernel's answer. */
static inline long inl_pages_want(uint64_t at, size_t size, bool write)
{
    uint64_t low = inl_page_down(at), high = inl_page_up(at + size);
    return sys_call3(SYS_madvise, (long)low, (long)(high - low), write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/* Memory that will be used from one end to the other, by the kernel's large pages where it lies on them. */
static inline void inl_pages_large(uint64_t at, size_t size)
{
    sys_call3(SYS_madvise, (long)at, (long)size, MADV_HUGEPAGE);
}

/* How much to ask for at once where so much is in use already. */
static inline size_t inl_pages_ahead(size_t used)
{
    const size_t least = 64 << 10, most = 512 << 10;
    return used / 4 < least ? least : used / 4 > most ? most : used / 4 & -least;
}

#endif
