/* The procedures known so far, who waits to hear whether they return, and new ones taken in.
 *
 * A procedure's number never changes; `order` and `starts` list them by address. Procedures that are
 * called or jumped to but not known yet wait in `fresh` until the round is over, so that no limits move
 * while somebody explores. */
#include "cfg/work.h"
#include "base/search.h"

#include <elf.h>
#include <string.h>

void cfg_blame(cfg_work *w, uint32_t proc, const char *reason)
{
    if (w->trying) {
        w->trial_failed = true;
        return;
    }
    cfg_draft *p = &w->procs.items[proc];
    if (!p->reason) p->reason = reason;
    cfg_returns(w, proc);
}

/* Index in `order` of the last procedure that begins at or before addr, plus 1. Only the first `high` are looked at. */
static size_t behind_among(const cfg_work *w, uint64_t addr, size_t high)
{
    return INL_FIRST(high, k, w->starts.items[k] > addr);
}

static size_t behind(const cfg_work *w, uint64_t addr) { return behind_among(w, addr, w->starts.count); }

uint32_t cfg_proc_near(const cfg_work *w, uint64_t addr)
{
    size_t i = behind(w, addr);
    if (i == 0) return CFG_NONE;
    uint32_t number = w->order.items[i - 1];
    const cfg_region *r = cfg_region_at(w, addr);
    return r && w->procs.items[number].addr >= r->addr ? number : CFG_NONE;
}

/* --- who returns --- */

static void release(cfg_work *w, const cfg_wait *wait)
{
    if (!wait->site) return;
    uint8_t *m = cfg_mark(w, wait->site);
    if (m) *m &= (uint8_t)~MARK_NORET;
    uint64_t next = wait->site + wait->size;
    w->procs.items[wait->proc].dirty = true;
    cfg_keep(w, &w->todo, next);
}

void cfg_returns(cfg_work *w, uint32_t proc)
{
    INL_VEC(uint32_t) next = {0};
    if (w->trying) return;
    for (;;) {
        cfg_draft *p = &w->procs.items[proc];
        if (!p->returns && !p->never_returns) { /* an import stub jumps to what does not, wherever that is */
            p->returns = true;
            uint32_t i = p->waits;
            p->waits = CFG_NONE;
            for (; i != CFG_NONE; i = w->waits.items[i].next) {
                const cfg_wait *wait = &w->waits.items[i];
                release(w, wait);
                if (!wait->site) cfg_keep(w, &next, wait->proc);
            }
        }
        if (next.count == 0) break;
        proc = next.items[--next.count];
    }
    inl_vec_free(&next);
}

void cfg_wait_for(cfg_work *w, uint32_t callee, cfg_wait wait)
{
    cfg_draft *p = &w->procs.items[callee];
    if (wait.proc == CFG_NONE) return;
    if (!wait.site && wait.proc != callee && p->origin == CFG_NONE) p->origin = wait.proc;
    if (p->returns) {
        if (wait.site) release(w, &wait);
        else cfg_returns(w, wait.proc);
        return;
    }
    uint8_t *m = wait.site ? cfg_mark(w, wait.site) : NULL;
    if (m) *m |= MARK_NORET;
    if (p->never_returns) return;
    wait.next = p->waits;
    p->waits = (uint32_t)w->waits.count;
    cfg_keep(w, &w->waits, wait);
}

void cfg_wait_for_piece(cfg_work *w, uint64_t from, uint64_t to)
{
    const uint32_t proc = cfg_proc_near(w, from), piece = cfg_proc_near(w, to);
    if (proc == CFG_NONE || piece == CFG_NONE || proc == piece) return;
    const uint32_t last = w->procs.items[piece].waits; /* tables are read again, and have many entries */
    if (last != CFG_NONE && w->waits.items[last].proc == proc && !w->waits.items[last].site) return;
    cfg_wait_for(w, piece, (cfg_wait){.proc = proc});
}

/* --- making them --- */

uint32_t cfg_procs_add(cfg_work *w, uint64_t addr, uint64_t end, const char *name, uint8_t source, uint16_t flags)
{
    const cfg_region *r = cfg_region_at(w, addr);
    cfg_draft p = {.addr = addr,
                   .end = end,
                   .name = name,
                   .source = source,
                   .flags = flags,
                   .waits = CFG_NONE,
                   .origin = CFG_NONE,
                   .sized = end != 0};
    if (!r) return CFG_NONE;
    if (end > r->end) p.end = r->end;
    if (r->stubs || source == IMAGE_PROC_PLT) p.flags |= CFG_PROC_PLT;
    cfg_keep(w, &w->procs, p);
    w->marks[r->base + (addr - r->addr)] |= MARK_ENTRY;
    return (uint32_t)w->procs.count - 1;
}

typedef struct place {
    uint64_t addr;
    uint32_t number;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* It ends where the next one begins at the latest. */
static void cut_off(cfg_work *w, size_t at)
{
    cfg_draft *p = &w->procs.items[w->order.items[at]];
    uint64_t limit = cfg_region_at(w, p->addr)->end;
    if (at + 1 < w->starts.count && w->starts.items[at + 1] < limit) limit = w->starts.items[at + 1];
    if (!p->sized || p->end > limit) p->end = limit;
}

/* Code that was taken for the procedure before it, whose end nobody had declared, may be its own. */
static void take_over_jumps(cfg_work *w, size_t at)
{
    const cfg_draft *before = &w->procs.items[w->order.items[at - 1]];
    cfg_draft *p = &w->procs.items[w->order.items[at]];
    if (!before->sized && before->jumps) p->jumps = p->dirty = true;
}

/* Of an instruction of the procedure's that ends a block: a way back, or a way to another procedure that may come back?
 */
static void look_for_return(cfg_work *w, uint32_t number, uint64_t addr)
{
    const cfg_region *r = cfg_region_at(w, addr);
    isa_insn in;
    if (w->isa->decode(r->bytes + (addr - r->addr), r->end - addr, addr, &in) != ISA_OK) return;
    if (in.flow == ISA_FLOW_RETURN) cfg_returns(w, number);
    if (in.flow != ISA_FLOW_JUMP && in.flow != ISA_FLOW_COND && in.flow != ISA_FLOW_COND_REG) return;
    uint32_t to = cfg_inside(&w->procs.items[number], in.target) ? CFG_NONE : cfg_proc_near(w, in.target);
    if (to != CFG_NONE && to != number) cfg_wait_for(w, to, (cfg_wait){.proc = number});
}

/* Its code may have been explored as the procedure's before it, whose end nobody had declared: what that one was told
 * of returns is for it to know. */
static void take_over_returns(cfg_work *w, uint32_t number)
{
    enum { ENDS = MARK_INSN | MARK_TERM };
    const cfg_draft *p = &w->procs.items[number];
    const cfg_region *r = cfg_region_at(w, p->addr);
    const uint8_t *marks = w->marks + r->base;
    for (uint64_t addr = p->addr; addr < p->end && !w->procs.items[number].returns; addr++)
        if ((marks[addr - r->addr] & ENDS) == ENDS) look_for_return(w, number, addr);
}

/* The list grows from its end, so that each part of it moves once. */
static void insert(cfg_work *w, place *places, size_t count)
{
    size_t high = w->order.count;
    w->order.count = w->starts.count = high + count;
    for (size_t k = count; k-- > 0;) {
        size_t at = behind_among(w, places[k].addr, high);
        memmove(w->order.items + at + k + 1, w->order.items + at, (high - at) * sizeof *w->order.items);
        memmove(w->starts.items + at + k + 1, w->starts.items + at, (high - at) * sizeof *w->starts.items);
        w->order.items[at + k] = places[k].number;
        w->starts.items[at + k] = places[k].addr;
        places[k].addr = at + k;
        high = at;
    }
    for (size_t k = 0; k < count; k++) {
        size_t at = places[k].addr;
        if (at) cut_off(w, at - 1);
        if (at) take_over_jumps(w, at);
        cut_off(w, at);
    }
    for (size_t k = 0; k < count; k++) {
        size_t at = places[k].addr;
        if (at && !w->procs.items[w->order.items[at - 1]].sized) take_over_returns(w, places[k].number);
    }
}

/* Lists what is new by address, and cuts procedures off where the next one begins. There are many rounds of this,
 * and few new ones in most: the list is not sorted anew. */
void cfg_procs_settle(cfg_work *w)
{
    size_t count = w->procs.count - w->settled;
    place *places = malloc((count + 1) * sizeof *places);
    if (!places || !inl_vec_reserve(&w->order, w->order.count + count) ||
        !inl_vec_reserve(&w->starts, w->order.count + count)) {
        w->failed = true;
        free(places);
        return;
    }
    for (size_t i = 0; i < count; i++)
        places[i] = (place){w->procs.items[w->settled + i].addr, (uint32_t)(w->settled + i)};
    if (count) qsort(places, count, sizeof *places, by_place);
    insert(w, places, count);
    w->settled = w->procs.count;
    free(places);
}

void cfg_procs_drop(cfg_work *w)
{
    size_t kept = 0;
    bool longer = false; /* the last one that stays */
    for (size_t i = 0; i < w->order.count; i++) {
        uint32_t number = w->order.items[i];
        if (w->procs.items[number].absent) {
            longer = kept > 0;
            continue;
        }
        w->order.items[kept] = number;
        w->starts.items[kept++] = w->starts.items[i];
        if (longer) {
            w->starts.count = kept;
            cut_off(w, kept - 2);
        }
        longer = false;
    }
    w->order.count = w->starts.count = kept;
    if (longer) cut_off(w, kept - 1);
}

static int by_fresh(const void *a, const void *b)
{
    const cfg_fresh *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Who was blamed may have been another: this procedure was not known then. */
static void blame_overlaps(cfg_work *w)
{
    for (size_t i = 0; i < w->overlaps.count; i++) {
        uint32_t number = cfg_proc_near(w, w->overlaps.items[i]);
        if (number != CFG_NONE && cfg_inside(&w->procs.items[number], w->overlaps.items[i]))
            cfg_blame(w, number, "instructions overlap");
    }
}

void cfg_procs_merge(cfg_work *w)
{
    size_t count = w->fresh.count, first = w->procs.count;
    cfg_fresh *f = w->fresh.items;
    if (count == 0) return;
    qsort(f, count, sizeof *f, by_fresh);
    for (size_t i = 0; i < count; i++) {
        uint8_t *m = cfg_mark(w, f[i].addr);
        if (m && !(*m & (MARK_ENTRY | MARK_INSN | MARK_BODY)))
            cfg_procs_add(w, f[i].addr, 0, NULL, f[i].source, f[i].flags);
    }
    if (w->procs.count != first) {
        cfg_procs_settle(w);
        blame_overlaps(w);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t number = cfg_proc_near(w, f[i].addr);
        if (number == CFG_NONE) continue;
        w->procs.items[number].flags |= f[i].flags;
        if (f[i].wait.site || f[i].wait.proc != CFG_NONE) cfg_wait_for(w, number, f[i].wait);
        if (w->procs.items[number].addr != f[i].addr || number < first) /* found inside after all */
            cfg_enter(w, f[i].addr, CFG_BLOCK_OUTSIDE);
    }
    for (size_t i = first; i < w->procs.count; i++) {
        uint64_t addr = w->procs.items[i].addr;
        cfg_enter(w, addr, 0);
    }
    w->fresh.count = 0;
}

/* --- what the file says --- */

bool cfg_name_returns(const char *name)
{
    size_t n = strcspn(name, "@");
    for (const char *const *list = cfg_no_return; *list; list++)
        if (strncmp(*list, name, n) == 0 && (*list)[n] == 0) return false;
    return true;
}

static bool never_returns(const image_proc *p) { return p->source == IMAGE_PROC_PLT && !cfg_name_returns(p->name); }

static void seed_symbols(cfg_work *w)
{
    const image_proc *p;
    size_t count = image_procs(w->image, &p);
    for (size_t i = 0; i < count; i++) {
        bool unnamed = p[i].source == IMAGE_PROC_UNWIND;
        bool sized = !(p[i].is_open || p[i].source == IMAGE_PROC_ENTRY) || image_unwind_at(w->image, p[i].addr);
        uint32_t number = cfg_procs_add(w, p[i].addr, sized ? p[i].addr + p[i].size : 0, unnamed ? NULL : p[i].name,
                                        p[i].source, 0);
        if (number == CFG_NONE) continue;
        w->procs.items[number].never_returns = never_returns(&p[i]);
        if (w->failed) return;
    }
}

/* Unwind ranges make procedures longer where they reach further than the symbol. */
static void stretch_by_unwind(cfg_work *w)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(w->image, &r);
    for (size_t i = 0; i < count; i++) {
        size_t at = behind(w, r[i].addr);
        if (at == 0) continue;
        cfg_draft *p = &w->procs.items[w->order.items[at - 1]];
        uint64_t next = at < w->starts.count ? w->starts.items[at] : ~0ull, end = r[i].addr + r[i].size;
        const cfg_region *region = cfg_region_at(w, p->addr);
        if (p->addr == r[i].addr) p->flags |= CFG_PROC_UNWIND;
        if (!cfg_inside(p, r[i].addr)) continue;
        if (end > next) end = next;
        if (end > region->end) end = region->end;
        if (end > p->end) p->end = end;
    }
}

static void flag_symbols(cfg_work *w)
{
    const image_code_symbol *s;
    size_t count = image_code_symbols(w->image, &s);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = cfg_proc_near(w, s[i].addr);
        if (number == CFG_NONE) continue;
        cfg_draft *p = &w->procs.items[number];
        if (p->addr != s[i].addr) continue;
        if (s[i].dynamic) p->flags |= CFG_PROC_EXPORTED;
        if (s[i].resolver) p->flags |= CFG_PROC_IFUNC;
    }
}

void cfg_procs_seed(cfg_work *w)
{
    seed_symbols(w);
    cfg_procs_settle(w);
    if (w->failed) return;
    stretch_by_unwind(w);
    flag_symbols(w);
    for (size_t i = w->order.count; i-- > 0;) {
        uint64_t addr = w->starts.items[i]; /* the lowest one comes off the stack first */
        cfg_draft *p = &w->procs.items[w->order.items[i]];
        if (p->flags & CFG_PROC_PLT && !p->never_returns) p->returns = true;
        cfg_keep(w, &w->todo, addr);
    }
}
