/* The size of a page, once for all of Inlay. Kernels with larger pages (arm64 has some with 16 and 64 KiB) are
 * refused at the start: inl_page_check. */
#ifndef INL_BASE_PAGE_H
#define INL_BASE_PAGE_H

#include "base/error.h"

#include <stdint.h>
#include <sys/auxv.h>

enum { INL_PAGE = 4096 };
#define INL_HUGE_PAGE ((uint64_t)2 << 20) /* a large one, where the kernel has any */

static inline uint64_t inl_page_down(uint64_t at) { return at & -(uint64_t)INL_PAGE; }
/* 0 for what lies in the last page of all. */
static inline uint64_t inl_page_up(uint64_t at) { return (at + INL_PAGE - 1) & -(uint64_t)INL_PAGE; }

/* In an ordinary process or in the tool's: are the pages of this kernel as Inlay takes them to be? */
static inline inl_status inl_page_check(inl_error *e)
{
    unsigned long size = getauxval(AT_PAGESZ);
    if (size == INL_PAGE) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "this kernel has pages of %lu bytes; Inlay needs one with pages of %d",
                    size, INL_PAGE);
}

#endif
