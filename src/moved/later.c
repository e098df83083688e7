/* Images that the dynamic linker maps when the tool is there already (dlopen), in a process that it was put into: the
 * tool makes their new code itself (moved_hooks.opened), at the moment when the linker says that all of it is mapped.
 * Nothing of it has been relocated or executed then, and no other thread knows of it: so springboards may lie anywhere
 * in old code, and nobody is to be stopped.
 *
 *     linker's list has changed (images.c)
 *       moved_later_open         the tool plans, moved_later_place puts the text near the image
 *         jumps over old code    here
 *       moved_later_close        the image has gone: so does its new code
 *
 * What whoever takes the tool out must know of such an image (old bytes, copied jump tables, ranges) is beside what was
 * told of those that were there before (move/live.h). Readers take no lock: a record stays when its image goes. */
#include "moved/private.h"
#include "moved/text.h"
#include "base/page.h"
#include "base/search.h"
#include "base/sys.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

const moved_later *moved_later_first(void) { return __atomic_load_n(&moved_now.later, __ATOMIC_ACQUIRE); }

const moved_later *moved_later_of(uint64_t bias)
{
    const moved_later *l = moved_later_first();
    while (l && (!l->high || l->told.links.bias != bias)) l = l->next;
    return l;
}

bool moved_later_has(uint64_t at)
{
    for (const moved_later *l = moved_later_first(); l; l = l->next)
        if (at - l->low < l->high - l->low) return true;
    return false;
}

/* --- new code --- */

/* Where address space is limited the program is to have all of it. */
static bool is_limited(void)
{
    struct rlimit64 limit;
    return sys_call4(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit) || limit.rlim_cur != RLIM64_INFINITY;
}

long moved_later_hold(uint64_t low, uint64_t size)
{
    if (is_limited()) return -ENOMEM;
    long got = sys_call(SYS_mmap, (long)low, (long)size, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (sys_failed(got)) return got;
    run_own_locked(low, low + size, true);
    return 0;
}

void moved_later_let_go(uint64_t low, uint64_t size)
{
    if (!size) return;
    sys_call2(SYS_munmap, (long)low, (long)size);
    run_own_locked(low, low + size, false);
}

inl_status moved_later_place(moved_later *l, const moved_later_bytes *b, inl_error *e)
{
    uint64_t text = l->low, tables = b->tables_at, high = inl_page_up(tables + b->tables_size);
    moved_text fresh;
    if (b->held) moved_later_let_go(high, text + b->held - high);
    long got = moved_text_make(&fresh, text, high - text, b->held != 0);
    if (got != (long)text && b->held) moved_later_let_go(text, high - text);
    if (got != (long)text) {
        if (!sys_failed(got)) sys_call2(SYS_munmap, got, (long)(high - text));
        return inl_fail_at(e, INL_ERR_NO_MEMORY, text, "there is no room for its new code any more");
    }
    l->high = high;
    run_own_locked(l->low, l->high, true);
    bool good = moved_text_put(&fresh, text, b->text, b->text_size) &&
                (tables == high || moved_text_put(&fresh, tables, b->tables, b->tables_size));
    good = moved_text_close(&fresh) && good;
    if (tables != high) sys_call3(SYS_mprotect, (long)tables, (long)(high - tables), PROT_READ);
    if (good) return INL_OK;
    moved_later_drop(l);
    return inl_fail_at(e, INL_ERR_ACCESS, text, "memory that was written to cannot become code here");
}

void moved_later_drop(moved_later *l)
{
    uint64_t low = l->low, high = l->high;
    __atomic_store_n(&l->high, 0, __ATOMIC_RELEASE);
    if (l->told.shown.size && l->is_shown) run_debugger_tell(&l->told.shown, false);
    l->is_shown = false;
    l->low = l->patch_count = l->table_count = l->told.unwind = 0;
    if (!high) return;
    moved_walks_forget(low, high - low);
    sys_call2(SYS_munmap, (long)low, (long)(high - low));
    run_own_locked(low, high, false);
}

/* --- old code --- */

/* Patches ascend, and none lies across two segments. */
static bool put_jumps_in(const moved_later *l, uint64_t low, uint64_t high)
{
    moved_text text;
    bool good = moved_text_open(&text, low, high);
    if (!good) return false;
    size_t k = INL_FIRST(l->patch_count, n, l->patches[n].at >= low);
    for (; k < l->patch_count && l->patches[k].at < high; k++)
        good = moved_text_put(&text, l->patches[k].at, l->patches[k].now, l->patches[k].size) && good;
    return moved_text_close(&text) && good;
}

static bool put_jumps(const moved_image *i, const moved_later *l)
{
    const Elf64_Phdr *ph = i->phdr;
    for (unsigned k = 0; k < i->phnum; k++) {
        uint64_t low = i->bias + ph[k].p_vaddr;
        if (ph[k].p_type != PT_LOAD || (ph[k].p_flags & (PF_X | PF_W)) != PF_X || !ph[k].p_filesz) continue;
        if (!put_jumps_in(l, low, low + ph[k].p_filesz)) return false;
    }
    return true;
}

/* --- opening and closing --- */

static moved_mapped named(const moved_image *i) { return (moved_mapped){i->name, i->low, i->high, i->bias}; }

const moved_later *moved_later_open(run_thread *t, const moved_image *i)
{
    moved_mapped m = named(i);
    moved_later *l = moved_now.hooks.opened ? moved_now.hooks.opened(t, &m) : NULL;
    if (!l) return NULL;
    if (!put_jumps(i, l)) { /* those that were written lead to code that works */
        run_say("%s: not all jumps to its instrumented code could be written", i->name);
        l->patch_count = 0;
    }
    if (l->told.shown.size) run_debugger_tell(&l->told.shown, l->is_shown = true);
    l->next = moved_now.later;
    __atomic_store_n(&moved_now.later, l, __ATOMIC_RELEASE);
    return l;
}

void moved_later_close(run_thread *t, const moved_image *i)
{
    moved_mapped m = named(i);
    moved_later *l = (moved_later *)moved_later_of(i->bias);
    m.path = NULL; /* it has gone with the image */
    if (moved_now.hooks.closed) moved_now.hooks.closed(t, &m);
    if (l) moved_later_drop(l);
    else moved_live_forget(i->bias);
}
