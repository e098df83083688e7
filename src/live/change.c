#include "live/change.h"
#include "base/page.h"
#include "base/sys.h"
#include "move/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void live_change_end(live_change *c)
{
    inl_vec_free(&c->texts);
    inl_vec_free(&c->data);
    inl_vec_free(&c->links);
    inl_vec_free(&c->patches);
    inl_vec_free(&c->gone);
    if (c->has_memory) close(c->memory);
    c->has_memory = false;
}

static void unmap(remote *r, uint64_t low, uint64_t high)
{
    inl_error ignored;
    long answer;
    if (low < high) remote_call(r, &answer, SYS_munmap, (long[6]){(long)low, (long)(high - low)}, &ignored);
}

void live_unmap(live_process *p, uint64_t low, uint64_t high)
{
    remote *r = &p->threads.items[0];
    if (!r->gone) unmap(r, low, high);
}

inl_status live_map(live_process *p, const live_text *t, inl_error *e)
{
    remote *r = &p->threads.items[0];
    uint64_t size = inl_page_up(t->room > t->size ? t->room : t->size);
    long answer,
        args[6] = {(long)t->at, (long)size, t->prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                   -1,          0};
    inl_status s = live_goes(p, t->at, t->at + size, e);
    if (s == INL_OK) s = remote_call(r, &answer, SYS_mmap, args, e);
    if (s != INL_OK) return s;
    if (answer != (long)t->at) live_works(p, false, e);
    if (answer != (long)t->at) {
        if (!sys_failed(answer)) unmap(r, (uint64_t)answer, (uint64_t)answer + size);
        if (!sys_failed(answer))
            return inl_fail_at(e, INL_ERR_NO_MEMORY, t->at,
                               "process %d has no room at 0x%llx any more: something else is there", p->pid,
                               (unsigned long long)t->at);
        return inl_fail_at(e, INL_ERR_NO_MEMORY, t->at,
                           "process %d has no room at 0x%llx any more: %s (its limits are in /proc/%d/limits)", p->pid,
                           (unsigned long long)t->at, strerror((int)-answer), p->pid);
    }
    return t->size ? remote_patch(r, t->at, t->bytes, t->size, e) : INL_OK;
}

/* --- threads --- */

static inl_status tell_threads(live_process *p, const live_change *c, move_live *live, size_t size, inl_error *e)
{
    live->thread_count = p->threads.count;
    for (size_t i = 0; i < p->threads.count; i++) {
        live->threads[i].tid = (uint64_t)live_inner_tid(p->threads.items[i].pid);
        remote_context(&p->threads.items[i], &live->threads[i].ctx);
    }
    inl_status s = remote_write(&p->threads.items[0], c->asked, live, size, e);
    if (s == INL_OK) s = live_call_tool(p, c->places, c->stack, e);
    if (s == INL_OK) s = remote_read(&p->threads.items[0], c->asked, live, size, e);
    if (s == INL_OK && !live->started)
        s = inl_fail(e, INL_ERR_SYSTEM, "the tool in process %d does not answer", p->pid);
    return s;
}

static inl_status move_threads(live_process *p, const live_change *c, inl_error *e)
{
    size_t size = sizeof(move_live) + p->threads.count * sizeof(move_live_thread);
    if (size > c->asked_size)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d has %zu threads, which are too many", p->pid,
                        p->threads.count);
    move_live *live = calloc(1, size);
    if (!live) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = tell_threads(p, c, live, size, e);
    for (size_t i = 0; i < p->threads.count && s == INL_OK; i++)
        if (live->threads[i].block) s = live_settle(&p->threads.items[i], &live->threads[i], e);
    free(live);
    return s;
}

/* --- what goes --- */

/* First nobody is told of it any more. */
static inl_status hide(live_process *p, const live_change *c, const bool *used, inl_error *e)
{
    const uint64_t none = 0;
    inl_status s = INL_OK;
    bool any = false;
    for (size_t k = 0; k < c->gone.count && s == INL_OK; k++) {
        if (used[k] || !c->gone.items[k].hides) continue;
        s = remote_write(&p->threads.items[0], c->gone.items[k].hides, &none, sizeof none, e);
        any = true;
    }
    return s == INL_OK && any && c->hides ? live_call_tool(p, c->hides, c->stack, e) : s;
}

/* From *k on. They are listed as going and struck off the table by one call, so whoever is killed leaves none of them
 * mapped that nobody knows of. */
static inl_status drop_some(live_process *p, live_change *c, const bool *used, size_t *k, inl_error *e)
{
    move_told_range ranges[LIVE_GO_MOST];
    uint64_t clears[LIVE_GO_MOST];
    size_t n = 0, first = *k;
    for (; *k < c->gone.count && n < LIVE_GO_MOST; ++*k) {
        if (used[*k]) continue;
        ranges[n] = (move_told_range){c->gone.items[*k].low, c->gone.items[*k].high};
        clears[n++] = c->gone.items[*k].clears;
    }
    inl_status s = n ? live_go_all(p, ranges, clears, n, e) : INL_OK;
    if (!n || s != INL_OK) return s;
    for (size_t i = 0; i < n; i++) unmap(&p->threads.items[0], ranges[i].low, ranges[i].high);
    for (size_t i = first; i < *k; i++) c->gone.items[i].done = !used[i];
    return live_works(p, false, e);
}

static inl_status drop_unused(live_process *p, live_change *c, inl_error *e)
{
    if (!c->gone.count) return INL_OK;
    bool *used = calloc(c->gone.count, sizeof *used);
    if (!used) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = live_find_users(p, c, used, e);
    if (s == INL_OK) s = hide(p, c, used, e);
    for (size_t k = 0; k < c->gone.count && s == INL_OK;) s = drop_some(p, c, used, &k, e);
    free(used);
    return s;
}

/* --- the whole --- */

static uint64_t room_of(const live_text *t) { return inl_page_up(t->room > t->size ? t->room : t->size); }

void live_change_unmap(live_process *p, const live_change *c)
{
    for (size_t i = 0; i < c->mapped; i++)
        unmap(&p->threads.items[0], c->texts.items[i].at, c->texts.items[i].at + room_of(&c->texts.items[i]));
}

/* The memory that is written to later is this one, even if the process becomes another program. */
inl_status live_change_map(live_process *p, live_change *c, inl_error *e)
{
    c->memory = live_open_memory(p, e);
    c->has_memory = c->memory >= 0;
    inl_status s = c->has_memory ? INL_OK : INL_ERR_ACCESS;
    for (c->mapped = 0; c->mapped < c->texts.count && s == INL_OK; c->mapped += s == INL_OK) {
        live_text room = c->texts.items[c->mapped];
        room.room = room_of(&room);
        room.size = 0;
        s = live_map(p, &room, e);
    }
    if (s == INL_OK) live_patch_prepare(p, c->patches.items, c->patches.count);
    else live_change_unmap(p, c);
    return s;
}

inl_status live_change_fill(const live_process *p, const live_change *c, inl_error *e)
{
    bool good = true;
    for (size_t i = 0; i < c->texts.count && good; i++) {
        const live_text *t = &c->texts.items[i];
        good = !t->size || pwrite(c->memory, t->bytes, t->size, (off_t)t->at) == (ssize_t)t->size;
    }
    if (!good) return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended, or has become another program", p->pid);
    return INL_OK;
}

/* What was mapped is there, and is this process's. */
static inl_status is_same(const live_process *p, const live_change *c, inl_error *e)
{
    uint8_t byte;
    if (!c->mapped || pread(c->memory, &byte, 1, (off_t)c->texts.items[0].at) == 1) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d has become another program meanwhile", p->pid);
}

inl_status live_change_make(live_process *p, live_change *c, inl_error *e)
{
    inl_status s = is_same(p, c, e);
    for (size_t i = 0; i < c->data.count && s == INL_OK; i++)
        s = remote_patch(&p->threads.items[0], c->data.items[i].at, c->data.items[i].bytes, c->data.items[i].size, e);
    if (s == INL_OK) s = live_patch_all(p, c->links.items, c->links.count, e);
    if (s == INL_OK && c->places) s = move_threads(p, c, e);
    if (s == INL_OK && c->places) s = live_frames_tell(p, e); /* before there are jumps over where they stood */
    if (s == INL_OK) s = live_patch_all(p, c->patches.items, c->patches.count, e);
    if (s == INL_OK) s = drop_unused(p, c, e);
    return s;
}
