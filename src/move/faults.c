/* What a procedure's tables and relocations have against its moving.
 *
 * An unwind entry or exception table that is not understood can be used where it stands, for code that stays
 * where it is. Landing pads that are not known may lie in the other part of a procedure that is in two, so
 * the parts stay together. Bytes that are relocated when the file is loaded (DT_TEXTREL) are not what the file
 * says; the linker writes to the old ones only.
 */
#include "image/frames.h"
#include "base/search.h"
#include "move/plan.h"

#include <elf.h>
#include <string.h>

/* `noted`, where it is given: which procedures those were. */
static void leave_range(move_work *w, uint64_t from, uint64_t to, const char *why, uint8_t *noted)
{
    const cfg_program *p = move_cfg(w);
    uint32_t i = (uint32_t)INL_FIRST(p->proc_count, k, p->procs[k].addr > from);
    if (i && from < p->procs[i - 1].addr + p->procs[i - 1].size) i--;
    for (; i < p->proc_count && p->procs[i].addr < to; i++) {
        if (move_is_moved(w, i)) move_leave(w, i, why);
        if (noted) noted[i] = 1;
    }
}

/* The search table's entries that are not understood: each up to the next entry. */
static void leave_unread(move_work *w)
{
    const image_unwind_range *known, *unread;
    image *im = move_cfg(w)->image;
    size_t n = image_unwind_ranges(im, &known), count = image_unwind_unread(im, &unread), k = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = i + 1 < count ? unread[i + 1].addr : UINT64_MAX;
        while (k < n && known[k].addr <= unread[i].addr) k++;
        if (k < n && known[k].addr < end) end = known[k].addr;
        leave_range(w, unread[i].addr, end, "its unwind entry is not understood", NULL);
    }
}

/* Parts that have only the one way in from another part stay with it. */
static void leave_parts(move_work *w, const uint8_t *pads_unknown)
{
    const cfg_program *p = move_cfg(w);
    const unsigned called = CFG_PROC_CALLED | CFG_PROC_EXPORTED | CFG_PROC_ADDRESS_TAKEN;
    for (uint32_t i = 0; i < p->edge_count; i++) {
        const cfg_edge *e = &p->edges[i];
        if (e->to == CFG_NONE) continue;
        uint32_t from = p->blocks[e->from].proc, to = p->blocks[e->to].proc;
        if (from == to || pads_unknown[from] == pads_unknown[to]) continue;
        if (p->blocks[e->to].flags & CFG_BLOCK_ENTRY && p->procs[to].flags & called) continue;
        uint32_t other = pads_unknown[from] ? to : from;
        if (move_is_moved(w, other)) move_leave(w, other, "the exception table of its other part is not understood");
    }
}

static bool leave_by_tables(move_work *w, const image_frames *f)
{
    const cfg_program *p = move_cfg(w);
    uint8_t *pads_unknown = NULL;
    for (size_t i = 0; i < f->fdes.count; i++) {
        const image_fde *fde = &f->fdes.items[i];
        const char *why = fde->fault;
        bool pads = !why && fde->lsda && (why = image_except_fault(f->im, fde));
        if (!why) continue;
        if (pads && !pads_unknown && !(pads_unknown = calloc(p->proc_count + 1u, 1))) return false;
        leave_range(w, fde->addr, fde->addr + fde->size, why, pads ? pads_unknown : NULL);
    }
    if (pads_unknown) leave_parts(w, pads_unknown);
    free(pads_unknown);
    return true;
}

static void leave_relocated(move_work *w)
{
    const image_reloc *r;
    size_t count = image_relocs(move_cfg(w)->image, &r);
    for (size_t i = 0; i < count; i++)
        leave_range(w, r[i].offset, r[i].offset + 8, "its code is relocated when it is loaded", NULL);
}

/* Code that the program is going to change: it says so by a section that is written to and executed. A segment may be
 * both because a linker put text and data together (-N), and counts where the target says so, or there are no sections.
 */
static void leave_writable(move_work *w)
{
    static const char why[] = "its memory can be written to";
    const uint64_t both = SHF_WRITE | SHF_EXECINSTR;
    const image_segment *s;
    const image_section *t;
    size_t segments = image_segments(move_cfg(w)->image, &s), sections = image_sections(move_cfg(w)->image, &t);
    for (size_t i = 0; i < sections; i++)
        if ((t[i].flags & both) == both) leave_range(w, t[i].addr, t[i].addr + t[i].size, why, NULL);
    for (size_t i = 0; i < segments && (w->target->writable_stays || !sections); i++)
        if (s[i].write && s[i].exec) leave_range(w, s[i].addr, s[i].addr + s[i].mem_size, why, NULL);
}

bool move_leave_faulty(move_work *w)
{
    image_frames f;
    bool ok = image_frames_read(move_cfg(w)->image, &f) && leave_by_tables(w, &f);
    image_frames_free(&f);
    leave_unread(w);
    leave_relocated(w);
    leave_writable(w);
    return ok;
}
