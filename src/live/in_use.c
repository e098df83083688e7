/* Who is still in new code that is to go? Nobody is asked where his frames are: every register of every thread, and
 * every aligned word that the process can write to, is held against the ranges. So frames of other stacks are found as
 * well (handlers', coroutines'), and what only looks like one keeps the code where it is, which costs memory only. Jump
 * buffers of the C library hold their addresses scrambled with the thread's guard: they are unscrambled. */
#include "live/change.h"
#include "base/page.h"
#include "move/live.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHUNK = 1 << 20 };

typedef struct search {
    const live_gone *ranges;
    size_t count;
    bool *used;
    uint64_t low, high; /* of all of them */
    uint64_t guard;
} search;

static void look(const search *s, uint64_t word)
{
    if (word - s->low >= s->high - s->low) return;
    for (size_t k = 0; k < s->count; k++)
        if (word - s->ranges[k].code_low < s->ranges[k].code_high - s->ranges[k].code_low) s->used[k] = true;
}

static void look_all(const search *s, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        look(s, words[i]);
        look(s, remote_unscrambled(words[i], s->guard));
    }
}

static void search_pages(const search *s, pid_t pid, uint64_t low, uint64_t high, uint64_t *chunk)
{
    struct iovec here = {chunk, high - low}, there = {(void *)low, high - low};
    ssize_t n = low < high ? process_vm_readv(pid, &here, 1, &there, 1, 0) : 0;
    if (n > 0) look_all(s, chunk, (size_t)n / sizeof *chunk);
}

/* Of what has never been written to, which may be much, nothing is looked at. */
static void search_memory(const search *s, pid_t pid, int pagemap, uint64_t low, uint64_t high, uint64_t *chunk)
{
    const uint64_t there = 3ull << 62; /* in memory, or swapped out */
    uint64_t pages[CHUNK / INL_PAGE];
    for (uint64_t at = low; at < high; at += CHUNK) {
        size_t count = (high - at < CHUNK ? high - at : CHUNK) / INL_PAGE, from = 0;
        ssize_t n = pread(pagemap, pages, count * sizeof *pages, (off_t)(at / INL_PAGE * sizeof *pages));
        for (size_t k = n > 0 ? (size_t)n / sizeof *pages : 0; k < count; k++) pages[k] = there; /* not known */
        for (size_t k = 0; k < count; k++) {
            if (pages[k] & there) continue;
            search_pages(s, pid, at + from * INL_PAGE, at + k * INL_PAGE, chunk);
            from = k + 1;
        }
        search_pages(s, pid, at + from * INL_PAGE, at + count * INL_PAGE, chunk);
    }
}

static bool is_searched(const live_mapping *m, const live_change *c)
{
    return m->prot & PROT_WRITE && m->prot & PROT_READ && m->low != MOVE_PARK_DATA &&
           (m->low >= c->own_high || m->high <= c->own_low);
}

inl_status live_find_users(live_process *p, const live_change *c, bool *used, inl_error *e)
{
    const live_gone *ranges = c->gone.items;
    size_t count = c->gone.count;
    search s = {.ranges = ranges, .count = count, .used = used, .low = ~0ull};
    uint64_t *chunk = malloc(CHUNK);
    if (!chunk) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    memset(used, 0, count * sizeof *used);
    for (size_t k = 0; k < count; k++) {
        if (ranges[k].code_low < s.low) s.low = ranges[k].code_low;
        if (ranges[k].code_high > s.high) s.high = ranges[k].code_high;
    }
    for (size_t i = 0; i < p->threads.count; i++) {
        remote *r = &p->threads.items[i];
        look_all(&s, (const uint64_t *)&r->regs, sizeof r->regs / sizeof(uint64_t));
        if (!s.guard) s.guard = remote_guard(r);
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", p->pid);
    int pagemap = open(path, O_RDONLY | O_CLOEXEC);
    inl_status st = live_read_maps(p, e);
    for (size_t i = 0; i < p->mappings.count && st == INL_OK; i++)
        if (is_searched(&p->mappings.items[i], c))
            search_memory(&s, p->pid, pagemap, p->mappings.items[i].low, p->mappings.items[i].high, chunk);
    if (pagemap >= 0) close(pagemap);
    free(chunk);
    return st;
}
