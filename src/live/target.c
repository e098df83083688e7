/* An image of a running process as a plan's target. Threads stand anywhere, frames on stacks lead back to old code, and
 * what is put in may come out again: so no old block may become anything but the jump by which it is caught. */
#include "live/live.h"
#include "base/page.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As much as code may become, which a tool that calls routines with all registers at each instruction makes some 250
 * times as large; of large images only as much as leaves room for others. Where there is less room, less: few need all
 * of it, and what is not needed is given back. */
enum { TIMES = 96, TIMES_SMALL = 384, ROOM_LEAST = 64 << 10, ROOM_MORE = 64 << 20, ROOM_SMALL = 512 << 20 };
static const uint64_t reach = LIVE_REACH;

static size_t read_bytes(void *arg, link_addr at, const uint8_t **bytes)
{
    const live_target *t = arg;
    return image_bytes(t->module->image, at.at, bytes);
}

static uint64_t code_size(const image *im)
{
    const image_segment *s;
    size_t n = image_segments(im, &s);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i].exec) sum += s[i].file_size;
    return sum;
}

link_addr live_target_room(live_target *t, uint64_t code)
{
    uint64_t size = code * TIMES_SMALL + ROOM_MORE;
    if (size > ROOM_SMALL) size = code * TIMES > ROOM_SMALL ? code * TIMES : ROOM_SMALL;
    for (; !t->room && size >= ROOM_LEAST; size /= 2) {
        t->room_size = inl_page_up(size);
        t->room = live_find_room(t->process, t->module->low, t->module->high, t->room_size, reach);
    }
    return (link_addr){t->room ? t->room - t->module->bias : 0};
}

static link_addr room(void *arg)
{
    live_target *t = arg;
    return live_target_room(t, code_size(t->module->image));
}

static bool may_overwrite(void *arg, const cfg_program *p, uint32_t block)
{
    (void)arg, (void)p, (void)block;
    return false;
}

/* Kept until the threads stand still. */
static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    live_target *t = arg;
    for (size_t i = 0; i < d->patch_count; i++)
        if (!inl_vec_push(&t->patches, d->patches[i])) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return INL_OK;
}

void live_target_begin(live_target *t, live_process *p, const module *m, bool fresh)
{
    *t = (live_target){.process = p, .module = m};
    t->target = (move_target){.arg = t,
                              .read = read_bytes,
                              .room = room,
                              .may_overwrite = fresh ? NULL : may_overwrite,
                              .has_frames = !fresh,
                              .outside_stays = true,
                              .writable_stays = true,
                              .commit = commit};
}

void live_target_end(live_target *t)
{
    inl_vec_free(&t->patches);
    inl_bytes_free(&t->tables);
}

/* --- is it what the file says? --- */

/* The file of its memory belongs to root once a process has changed its user: it cannot open its own then. */
static bool read_there(const live_process *p, int mem, uint64_t at, void *there, size_t n)
{
    return mem < 0 ? live_read(p, at, there, n) : pread(mem, there, n, (off_t)at) == (ssize_t)n;
}

static bool same(const live_process *p, int mem, uint64_t at, const uint8_t *bytes, uint64_t size, uint64_t *differs)
{
    static uint8_t there[64 << 10];
    for (uint64_t done = 0, n; done < size; done += n) {
        n = size - done < sizeof there ? size - done : sizeof there;
        if (!read_there(p, mem, at + done, there, n)) return false;
        for (uint64_t i = 0; i < n; i++) {
            if (there[i] == bytes[done + i]) continue;
            *differs = at + done + i;
            return false;
        }
    }
    return true;
}

inl_status live_compare(const live_target *t, inl_error *e)
{
    const image *im = t->module->image;
    const image_segment *s;
    char path[64];
    uint64_t differs = 0;
    size_t n = image_segments(im, &s);
    snprintf(path, sizeof path, "/proc/%d/mem", t->process->pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        const uint8_t *bytes;
        if (!s[i].exec || s[i].write || !s[i].file_size) continue;
        good = image_bytes(im, s[i].addr, &bytes) >= s[i].file_size &&
               same(t->process, mem, s[i].addr + t->module->bias, bytes, s[i].file_size, &differs);
    }
    if (mem >= 0) close(mem);
    if (good) return INL_OK;
    if (!differs)
        return inl_fail(e, INL_ERR_NOT_FOUND,
                        "%s cannot be read in process %d: it has ended, executed another program, or unloaded it",
                        image_path(im), t->process->pid);
    return inl_fail_at(e, INL_ERR_UNSUPPORTED, differs,
                       "%s: its code in memory is not what the file holds (at 0x%llx): it was replaced or instrumented "
                       "since it was loaded",
                       image_path(im), (unsigned long long)differs);
}

inl_status live_compare_untouched(const live_target *t, inl_error *e)
{
    inl_status s = live_compare(t, e), other = s == INL_OK ? s : live_refuse_other(t->process->pid, e);
    return other != INL_OK ? other : s;
}
