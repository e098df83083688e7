/* Who is still in new code that is to go? Nobody is asked where his frames are: every register of every thread, and
 * every aligned word that the process can write to, is held against the ranges. So frames of other stacks are found as
 * well (handlers', coroutines'), and what only looks like one keeps the code where it is, which costs memory only. Jump
 * buffers of the C library hold their addresses scrambled with the thread's guard: they are unscrambled. */
#include "live/change.h"
#include "base/page.h"
#include "base/present.h"
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
    pid_t pid;
    uint64_t *chunk;
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

static void search_pages(void *arg, uint64_t low, uint64_t high)
{
    const search *s = arg;
    for (uint64_t at = low, got; at < high; at += got) {
        size_t size = high - at < CHUNK ? high - at : CHUNK;
        struct iovec here = {s->chunk, size}, there = {(void *)at, size};
        ssize_t n = process_vm_readv(s->pid, &here, 1, &there, 1, 0);
        if (n > 0) look_all(s, s->chunk, (size_t)n / sizeof *s->chunk);
        got = n > 0 ? (uint64_t)n
                    : INL_PAGE; /* a guard (MADV_GUARD_INSTALL) is told of as a page, and cannot be read */
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
    search s = {.ranges = ranges, .count = count, .used = used, .low = ~0ull, .pid = p->pid, .chunk = malloc(CHUNK)};
    if (!s.chunk) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
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
            inl_present_each(pagemap, p->mappings.items[i].low, p->mappings.items[i].high, search_pages, &s);
    if (pagemap >= 0) close(pagemap);
    free(s.chunk);
    return st;
}
