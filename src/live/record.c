/* What is told in a process of the tool in it (move_told): written beside the tool, read by whoever comes later. */
#include "live/live.h"
#include "base/bytes.h"
#include "move/isa.h"
#include "move/live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- writing --- */

static uint64_t put_string(inl_bytes *b, const char *text)
{
    uint64_t at = inl_bytes_here(b);
    inl_bytes_put(b, text ? text : "", strlen(text ? text : "") + 1);
    return at;
}

move_told_patch live_told_patch(const live_image *i, const move_patch *x)
{
    move_told_patch p = {.at = x->at.at, .size = x->size};
    memcpy(p.now, x->now, x->size);
    memcpy(p.before, x->before, x->size);
    for (size_t k = 0; k < i->hook_count; k++) {
        uint8_t jump[MOVE_MOST_PATCH];
        if (i->hooks[k].at == p.at && live_hook_jump(i, k, jump)) memcpy(p.now, jump, move_isa_here.far_jump);
    }
    return p;
}

static int by_place(const void *x, const void *y)
{
    const move_told_table *a = x, *b = y;
    return a->now < b->now ? -1 : a->now > b->now;
}

static int by_address(const void *x, const void *y)
{
    const move_told_patch *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void put_tables(inl_bytes *b, const live_image *images, size_t count, move_told *r)
{
    size_t all = 0;
    for (size_t k = 0; k < count; k++) all += move_table_copies(images[k].plan, NULL, 0);
    move_table_copy *copies = calloc(all + 1, sizeof *copies);
    move_told_table *tables = calloc(all + 1, sizeof *tables);
    size_t n = 0;
    for (size_t k = 0; copies && k < count; k++) n += move_table_copies(images[k].plan, copies + n, all - n);
    for (size_t k = 0; copies && tables && k < n; k++)
        tables[k] = (move_told_table){copies[k].now.at, copies[k].old.at};
    if (tables) qsort(tables, n, sizeof *tables, by_place);
    else b->failed = true;
    r->tables = inl_bytes_here(b);
    r->table_count = n;
    if (tables) inl_bytes_put(b, tables, n * sizeof *tables);
    free(copies);
    free(tables);
}

size_t live_record_room(size_t images) { return 12 * images + 64; }

/* Behind those that it tells of; both words at once, so that whoever reads it finds the old ones or the new. */
inl_status live_record_tell(remote *r, const move_told_range *ranges, size_t count, size_t room, inl_error *e)
{
    move_told told;
    inl_status s = remote_read(r, MOVE_TOLD_BASE, &told, sizeof told, e);
    if (s != INL_OK) return s;
    if (told.range_count + count > room) return inl_fail(e, INL_ERR_NO_MEMORY, "too many mappings were made");
    const uint64_t words[2] = {count, told.ranges + told.range_count * sizeof *ranges};
    s = remote_write(r, words[1], ranges, count * sizeof *ranges, e);
    return s == INL_OK ? remote_write(r, MOVE_TOLD_BASE + offsetof(move_told, range_count), words, sizeof words, e) : s;
}

inl_status live_record_make(const live_image *images, size_t count, const live_carry *carry, inl_bytes *b, inl_error *e)
{
    move_told r = {.magic = MOVE_TOLD_MAGIC,
                   .layout = sizeof r,
                   .user = getuid(),
                   .seconds = (uint64_t)time(NULL),
                   .has_output = carry->has_output,
                   .is_mutators = carry->holder != NULL};
    if (carry->holder) r.holder = *carry->holder;
    inl_bytes_put(b, &r, sizeof r);
    r.ranges = inl_bytes_here(b);
    inl_bytes_reserve(b, live_record_room(count) * sizeof(move_told_range));
    r.tool = put_string(b, carry->tool);
    r.options = put_string(b, carry->options);
    inl_bytes_align(b, 8);
    r.patches = inl_bytes_here(b);
    for (size_t k = 0; k < count; k++) {
        const live_target *t = images[k].target;
        r.patch_count += t->patches.count;
        for (size_t i = 0; i < t->patches.count; i++) {
            const move_told_patch p = live_told_patch(&images[k], &t->patches.items[i]);
            inl_bytes_put(b, &p, sizeof p);
        }
    }
    if (!b->failed) qsort(b->data + (r.patches - b->addr), r.patch_count, sizeof(move_told_patch), by_address);
    put_tables(b, images, count, &r);
    r.size = b->size;
    if (b->failed) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_bytes_set(b, 0, &r, sizeof r);
    return INL_OK;
}

/* --- reading --- */

static bool read_at(int mem, uint64_t at, void *to, size_t size)
{
    return pread(mem, to, size, (off_t)at) == (ssize_t)size;
}

static char *read_string(int mem, uint64_t at)
{
    char text[4096] = "";
    ssize_t n = pread(mem, text, sizeof text - 1, (off_t)at);
    if (n < 0) *text = 0;
    return strdup(text);
}

static inl_status nothing(pid_t pid, inl_error *e)
{
    if (kill(pid, 0) != 0 && errno == ESRCH) return inl_fail(e, INL_ERR_SYSTEM, "there is no process %d", pid);
    return inl_fail(e, INL_ERR_NOT_FOUND, "process %d has no tool inside that came to it, and no mutator's code", pid);
}

static bool is_at(int mem, uint64_t place, move_told *out)
{
    return read_at(mem, place, out, sizeof *out) && out->magic == MOVE_TOLD_MAGIC;
}

bool live_jit_told(int mem, move_told *out)
{
    return is_at(mem, MOVE_TOLD_JIT, out) || is_at(mem, MOVE_TOLD_OTHER, out);
}

static inl_status read_all(int mem, pid_t pid, live_told *t, inl_error *e)
{
    enum { MOST = 1 << 16 };
    move_told *r = t->record;
    if (!is_at(mem, MOVE_TOLD_BASE, r) && !live_jit_told(mem, r)) return nothing(pid, e);
    if (r->layout != sizeof *r || r->range_count > MOST)
        return inl_fail(e, INL_ERR_UNSUPPORTED,
                        "the tool in process %d was put in by another version of Inlay; use that one's inlay", pid);
    t->ranges = calloc(r->range_count + 1, sizeof *t->ranges);
    t->tool = read_string(mem, r->tool);
    t->options = read_string(mem, r->options);
    if (!t->ranges || !t->tool || !t->options) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (read_at(mem, r->ranges, t->ranges, r->range_count * sizeof *t->ranges)) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "what process %d tells of its tool cannot be read", pid);
}

inl_status live_record_read(pid_t pid, live_told *t, inl_error *e)
{
    char path[32];
    *t = (live_told){.record = calloc(1, sizeof(move_told))};
    if (!t->record) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    inl_status s;
    if (mem >= 0) s = read_all(mem, pid, t, e);
    else if (errno == ESRCH) s = inl_fail(e, INL_ERR_SYSTEM, "process %d has ended, or is the kernel's", pid);
    else if (errno == ENOENT) s = inl_fail(e, INL_ERR_SYSTEM, "there is no process %d", pid);
    else if (errno == EACCES || errno == EPERM) s = live_no_right(pid, e);
    else s = inl_fail(e, INL_ERR_ACCESS, "cannot look at process %d: %s", pid, strerror(errno));
    if (mem >= 0) close(mem);
    if (s != INL_OK) live_told_free(t);
    return s;
}

void live_told_free(live_told *t)
{
    free(t->record);
    free(t->ranges);
    free(t->tool);
    free(t->options);
    *t = (live_told){0};
}
