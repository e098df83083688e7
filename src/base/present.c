/* The kernel walks its tables and tells of stretches (PAGEMAP_SCAN, Linux 6.7), or writes a word for each page that
 * there could be: of a terabyte two gigabytes, which is half a minute of a process that stands still. */
#include "base/present.h"
#include "base/page.h"
#include "base/sys.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* As linux/fs.h has them, which may be older. */
typedef struct scan_range {
    uint64_t start, end, categories;
} scan_range;
typedef struct scan_request {
    uint64_t size, flags, start, end, walk_end, ranges, range_count, most_pages;
    uint64_t inverted, all_of, any_of, told;
} scan_request;
#define SCAN _IOWR('f', 16, scan_request)
enum { SCAN_PRESENT = 1 << 3, SCAN_SWAPPED = 1 << 4 };

typedef struct walk {
    uint64_t low, high; /* a stretch that may go on; empty: none */
    void (*each)(void *arg, uint64_t low, uint64_t high);
    void *arg;
} walk;

static void tell(walk *w)
{
    if (w->low < w->high) w->each(w->arg, w->low, w->high);
    w->low = w->high = 0;
}

static void add(walk *w, uint64_t low, uint64_t high)
{
    if (low != w->high || w->low == w->high) {
        tell(w);
        w->low = low;
    }
    w->high = high;
}

/* Up to where it has been told. */
static uint64_t scan(walk *w, int pagemap, uint64_t low, uint64_t high)
{
    enum { MOST = 64 };
    scan_range ranges[MOST];
    while (low < high) {
        scan_request r = {.size = sizeof r,
                          .start = low,
                          .end = high,
                          .ranges = (uint64_t)(uintptr_t)ranges,
                          .range_count = MOST,
                          .any_of = SCAN_PRESENT | SCAN_SWAPPED,
                          .told = SCAN_PRESENT | SCAN_SWAPPED};
        long count = sys_call3(SYS_ioctl, pagemap, SCAN, (long)&r);
        if (sys_failed(count) || r.walk_end <= low) break;
        for (long k = 0; k < count; k++) add(w, ranges[k].start, ranges[k].end);
        low = r.walk_end;
    }
    return low;
}

static void read_words(walk *w, int pagemap, uint64_t low, uint64_t high)
{
    enum { MOST = 512 };
    const uint64_t there = 3ull << 62;
    uint64_t pages[MOST];
    for (uint64_t at = low; at < high;) {
        uint64_t n = (high - at) / INL_PAGE < MOST ? (high - at) / INL_PAGE : MOST;
        long got = sys_call4(SYS_pread64, pagemap, (long)pages, (long)(n * sizeof *pages),
                             (long)(at / INL_PAGE * sizeof *pages));
        if (got != (long)(n * sizeof *pages)) memset(pages, 0xff, sizeof pages);
        for (uint64_t k = 0; k < n; k++, at += INL_PAGE)
            if (pages[k] & there) add(w, at, at + INL_PAGE);
    }
}

void inl_present_each(int pagemap, uint64_t low, uint64_t high, void (*each)(void *arg, uint64_t low, uint64_t high),
                      void *arg)
{
    walk w = {0, 0, each, arg};
    read_words(&w, pagemap, scan(&w, pagemap, low, high), high);
    tell(&w);
}
