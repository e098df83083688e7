/* Jumps over old code of a process that ran already, and the bytes that were under them: both are in the record of the
 * tool (move/live.h), and with each piece of a mutator's (pieces.h). They are written while all other threads stand
 * still, by the process itself, so that nobody's death leaves them half written. */
#include "moved/private.h"
#include "base/page.h"
#include "base/sys.h"
#include "move/live.h"
#include "moved/pieces.h"
#include "moved/text.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { WINDOW = 16 * INL_PAGE };

static const move_told *record(void) { return (const move_told *)MOVE_TOLD_BASE; }

/* So many patches, from the first on, lie in a stretch of pages all of which have one, up to *high: nothing between is
 * unmapped. */
static uint64_t close_together(const move_told_patch *p, uint64_t count, uint64_t *high)
{
    uint64_t low = inl_page_down(p->at), n = 0;
    for (*high = low; n < count && p[n].at + p[n].size <= low + WINDOW; n++) {
        if (inl_page_down(p[n].at) > inl_page_up(*high)) break;
        *high = p[n].at + p[n].size;
    }
    return n;
}

/* Pages of code; a process may have no /proc. */
static bool write_code(int mem, uint64_t at, const uint8_t *bytes, uint64_t size)
{
    if (!sys_failed(mem)) return sys_call4(SYS_pwrite64, mem, (long)bytes, (long)size, (long)at) == (long)size;
    moved_text text;
    if (!moved_text_open(&text, at, at + size)) return false;
    bool good = moved_text_put(&text, at, bytes, size);
    return moved_text_close(&text) && good;
}

static bool read_code(int mem, uint64_t at, uint8_t *bytes, uint64_t size)
{
    if (!sys_failed(mem)) return sys_call4(SYS_pread64, mem, (long)bytes, (long)size, (long)at) == (long)size;
    return run_read(bytes, at, size);
}

/* What is to be taken back and is not as it was left belongs to another image by now. */
static void change(uint8_t *there, const move_told_patch *p, bool in)
{
    if (in) memcpy(there, p->now, p->size);
    else if (!memcmp(there, p->now, p->size)) memcpy(there, p->before, p->size);
}

/* Where the code is: nobody else runs it now. False: it may not be made writable. Only of what is surely there: a page
 * that is another's by now would lose its rights. */
static bool change_there(uint64_t low, uint64_t high, const move_told_patch *p, uint64_t count, bool in)
{
    moved_text text;
    if (!moved_text_open(&text, low, high)) return false;
    bool there = text.mem < 0;
    for (uint64_t k = 0; there && k < count; k++) change((uint8_t *)p[k].at, &p[k], in);
    return moved_text_close(&text) && there;
}

static bool change_copy(int mem, uint64_t low, uint64_t high, const move_told_patch *p, uint64_t count, bool in)
{
    static uint8_t bytes[WINDOW];
    if (!read_code(mem, low, bytes, high - low)) return false;
    for (uint64_t k = 0; k < count; k++) change(bytes + (p[k].at - low), &p[k], in);
    return write_code(mem, low, bytes, high - low);
}

static bool change_all(int mem, const move_told_patch *all, uint64_t count, bool in)
{
    bool good = true;
    for (uint64_t i = 0, n, high; i < count; i += n ? n : 1) {
        uint64_t low = inl_page_down(all[i].at);
        n = close_together(&all[i], count - i, &high);
        bool done = n && in && change_there(low, high, &all[i], n, in);
        if (!done) done = n && change_copy(mem, low, high, &all[i], n, in);
        good = good && done;
    }
    return good;
}

bool moved_jumps_put(void)
{
    int mem = (int)run_proc_open_memory();
    bool good = change_all(mem, (const void *)record()->patches, record()->patch_count, true);
    if (!sys_failed(mem)) sys_call1(SYS_close, mem);
    return good;
}

void moved_jumps_take_back(int mem)
{
    change_all(mem, (const void *)record()->patches, record()->patch_count, false);
    for (const moved_later *l = moved_later_first(); l; l = l->next) change_all(mem, l->patches, l->patch_count, false);
    for (const moved_piece *p = moved_pieces_now.all, *end = p + moved_pieces_now.count; p < end; p++)
        if (p->image.text_size) change_all(mem, p->patches, p->patch_count, false);
    moved_sites_restore(mem);
}
