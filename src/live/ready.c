/* What a process is given before it stands still for good: memory that leads nobody anywhere yet.
 *
 *     live_ready_add       bytes, with the place that they are for; nothing is touched
 *     live_ready_map       all threads stand still, for as long as it takes to map all of it
 *     live_ready_fill      the process runs, and the bytes are written
 *     live_ready_take      they stand still again: it is all there yet, and counts as new from now on
 *
 * A child that the process forks in between does not get it. */
#include "live/ready.h"
#include "base/page.h"
#include "base/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

inl_status live_ready_add(live_ready *r, const live_text *t, inl_error *e)
{
    live_text copy = *t;
    void *bytes = malloc(t->size + 1);
    copy.bytes = bytes;
    if (!bytes || !inl_vec_push(&r->pieces, copy)) {
        free(bytes);
        return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    }
    memcpy(bytes, t->bytes, t->size);
    return INL_OK;
}

void live_ready_end(live_ready *r)
{
    for (size_t i = 0; i < r->pieces.count; i++) free((void *)r->pieces.items[i].bytes);
    inl_vec_free(&r->pieces);
}

static uint64_t end_of(const live_text *t) { return t->at + inl_page_up(t->size); }

/* Pieces that follow one another, as one: *i becomes the number of the next. */
static live_text stretch(const live_ready *r, size_t *i)
{
    live_text all = r->pieces.items[*i];
    uint64_t high = end_of(&all);
    for (++*i; *i < r->pieces.count && r->pieces.items[*i].at == high; ++*i) high = end_of(&r->pieces.items[*i]);
    all.size = high - all.at;
    return all;
}

static void advise(const live_ready *r, live_process *p, int advice)
{
    inl_error ignored;
    long answer;
    for (size_t i = 0; i < r->pieces.count;) {
        live_text t = stretch(r, &i);
        remote_call(&p->threads.items[0], &answer, SYS_madvise, (long[6]){(long)t.at, (long)t.size, advice}, &ignored);
    }
}

void live_ready_unmap(live_ready *r, live_process *p)
{
    inl_error ignored;
    long answer;
    for (size_t i = 0; i < r->mapped; i++) {
        const live_text *t = &r->pieces.items[i];
        remote_call(&p->threads.items[0], &answer, SYS_munmap, (long[6]){(long)t->at, (long)inl_page_up(t->size)},
                    &ignored);
    }
    r->mapped = 0;
}

inl_status live_ready_map(live_ready *r, live_process *p, bool runs_on, inl_error *e)
{
    inl_status s = INL_OK;
    for (r->mapped = 0; r->mapped < r->pieces.count && s == INL_OK; r->mapped++) {
        live_text room = r->pieces.items[r->mapped];
        room.room = room.size;
        room.size = 0;
        s = live_map(p, &room, e);
        if (s != INL_OK) break;
    }
    r->is_apart = runs_on;
    if (s == INL_OK && runs_on && r->pieces.count) {
        const live_text *last = &r->pieces.items[r->pieces.count - 1]; /* which tells of the others */
        s = remote_patch(&p->threads.items[0], last->at, last->bytes, last->first, e);
    }
    if (s != INL_OK) live_ready_unmap(r, p);
    else if (runs_on) advise(r, p, MADV_DONTFORK);
    return s;
}

/* The kernel takes less than 2 GB at a time; what a tool has put into its memory may be more. */
static bool put(int mem, const live_text *t)
{
    size_t done = 0;
    while (done < t->size) {
        ssize_t n = pwrite(mem, (const uint8_t *)t->bytes + done, t->size - done, (off_t)(t->at + done));
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

inl_status live_ready_fill(const live_ready *r, const live_process *p, inl_error *e)
{
    int mem = live_open_memory(p, e);
    if (mem < 0) return INL_ERR_ACCESS;
    bool good = true;
    for (size_t i = 0; i < r->pieces.count && good; i++) good = put(mem, &r->pieces.items[i]);
    close(mem);
    if (good) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended, or has become another program", p->pid);
}

/* Cuts [low, high) out of what is mapped; false: not all of it is. */
static bool cut(live_process *p, uint64_t low, uint64_t high)
{
    uint64_t found = 0;
    for (size_t i = 0; i < p->mappings.count; i++) {
        live_mapping *m = &p->mappings.items[i], behind = *m;
        uint64_t from = m->low > low ? m->low : low, to = m->high < high ? m->high : high;
        if (from >= to) continue;
        found += to - from;
        behind.low = to;
        m->high = from > m->low ? from : m->low;
        if (behind.low >= behind.high) continue;
        behind.name = strdup(behind.name);
        if (!behind.name || !inl_vec_push(&p->mappings, behind)) return false;
        m = &p->mappings.items[p->mappings.count - 1];
        live_mapping last = *m;
        memmove(&p->mappings.items[i + 2], &p->mappings.items[i + 1], (p->mappings.count - i - 2) * sizeof *m);
        p->mappings.items[i + 1] = last;
        i++;
    }
    return found == high - low;
}

inl_status live_ready_take(live_ready *r, live_process *p, live_process *there, inl_error *e)
{
    for (size_t i = 0; i < r->pieces.count; i++)
        if (!cut(there, r->pieces.items[i].at, end_of(&r->pieces.items[i])))
            return inl_fail(e, INL_ERR_SYSTEM,
                            "process %d has become another program meanwhile, or has unmapped what it was "
                            "given",
                            p->pid);
    inl_status s = INL_OK;
    for (size_t i = 0; i < r->pieces.count && s == INL_OK;) {
        live_text t = stretch(r, &i);
        s = live_goes(p, t.at, t.at + t.size, e);
    }
    if (r->is_apart) advise(r, p, MADV_DOFORK);
    r->is_apart = false;
    return s;
}
