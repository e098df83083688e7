/* Many small writes over code, in order of their addresses: neighbours are read, changed and written as one piece,
 * since each access to another process's memory costs more than what is written. The process stands still meanwhile. */
#include "live/change.h"
#include "base/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 64 << 10 };

static int by_order(const void *a, const void *b)
{
    const live_patch *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_address(const void *a, const void *b)
{
    const live_patch *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : by_order(a, b);
}

/* By address, each with its number. Before anything stands still already, where they are prepared. */
static void sort(live_patch *p, size_t count)
{
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        if (p[i].order) continue;
        p[i].order = (uint32_t)i + 1;
        sorted = false;
    }
    if (!sorted) qsort(p, count, sizeof *p, by_address);
}

/* How many of them lie in the same stretch of pages, all of which have one, up to *high. What lies over another stays
 * with it, in the room that is left for that. */
static size_t together(const live_patch *p, size_t count, uint64_t *high)
{
    uint64_t low = inl_page_down(p[0].at), end = p[0].at + p[0].size;
    size_t n = 1;
    for (; n < count && inl_page_down(p[n].at) <= inl_page_up(end); n++) {
        bool fits = inl_page_up(p[n].at + p[n].size) - low <= WINDOW;
        if (!fits && p[n].at >= end) break;
        if (p[n].at + p[n].size > end) end = p[n].at + p[n].size;
    }
    *high = inl_page_up(end);
    return n;
}

static bool overlap(const live_patch *p, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (p[i].at < p[i - 1].at + p[i - 1].size) return true;
    return false;
}

static bool write_together(int mem, live_patch *p, size_t count, uint64_t high, uint8_t *bytes)
{
    uint64_t low = inl_page_down(p[0].at);
    size_t size = high - low;
    if (size > WINDOW + INL_PAGE || pread(mem, bytes, size, (off_t)low) != (ssize_t)size) return false;
    if (overlap(p, count)) qsort(p, count, sizeof *p, by_order);
    for (size_t i = 0; i < count; i++) memcpy(bytes + (p[i].at - low), p[i].bytes, p[i].size);
    return pwrite(mem, bytes, size, (off_t)low) == (ssize_t)size;
}

/* One byte of each page, as it is: the kernel makes the process's own copy of it now and not at the stop at which all
 * is put in. Nobody may run meanwhile who could write there: what comes between the two calls would be lost. */
void live_patch_prepare(const live_process *process, live_patch *patches, size_t count)
{
    char path[64];
    uint8_t byte;
    snprintf(path, sizeof path, "/proc/%d/mem", process->pid);
    int mem = open(path, O_RDWR | O_CLOEXEC);
    sort(patches, count);
    for (size_t i = 0, n; i < count && mem >= 0; i += n) {
        for (n = 1; i + n < count && inl_page_down(patches[i + n].at) == inl_page_down(patches[i].at);) n++;
        if (pread(mem, &byte, 1, (off_t)patches[i].at) != 1 || pwrite(mem, &byte, 1, (off_t)patches[i].at) != 1) break;
    }
    if (mem >= 0) close(mem);
}

inl_status live_patch_all(const live_process *process, live_patch *patches, size_t count, inl_error *e)
{
    char path[64];
    size_t done = 0;
    snprintf(path, sizeof path, "/proc/%d/mem", process->pid);
    int mem = open(path, O_RDWR | O_CLOEXEC);
    uint8_t *bytes = malloc(WINDOW + INL_PAGE);
    bool good = mem >= 0 && bytes;
    sort(patches, count);
    for (size_t n; done < count && good; done += n) {
        uint64_t high;
        n = together(patches + done, count - done, &high);
        good = write_together(mem, patches + done, n, high, bytes);
    }
    int error = errno;
    free(bytes);
    if (mem >= 0) close(mem);
    if (good) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "writing over code of process %d failed: %s", process->pid, strerror(error));
}
