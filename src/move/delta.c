/* A plan cut into deltas, and handed to its target whole. */
#include "move/delta.h"
#include "base/check.h"
#include "base/search.h"

/* Whose patch it is; the plan has them in the order of addresses. */
typedef struct owned {
    uint32_t proc, patch;
} owned;

static int by_proc(const void *a, const void *b)
{
    const owned *x = a, *y = b;
    if (x->proc != y->proc) return x->proc < y->proc ? -1 : 1;
    return x->patch < y->patch ? -1 : x->patch > y->patch;
}

bool move_patches_sort(const move_plan *p, move_patches *out)
{
    owned *all = malloc((p->patch_count + 1) * sizeof *all);
    bool good = all && inl_vec_reserve(out, p->patch_count + 1);
    for (size_t i = 0; good && i < p->patch_count; i++) all[i] = (owned){p->patches[i].proc, (uint32_t)i};
    if (good && p->patch_count) qsort(all, p->patch_count, sizeof *all, by_proc);
    for (size_t i = 0; good && i < p->patch_count; i++) out->items[out->count++] = p->patches[all[i].patch];
    free(all);
    return good;
}

/* The first of the fix-ups from a place of a procedure's begin on: they stand in the order of procedures. */
static size_t fixup_from(const move_work *w, uint32_t at)
{
    return INL_FIRST(w->far.count, k, w->far.items[k].at >= at);
}

static size_t entry_from(const move_plan *p, uint32_t at)
{
    size_t groups = (p->map_count + MOVE_GROUP - 1) / MOVE_GROUP;
    size_t group = INL_FIRST(groups, k, p->map_groups[k].new_off >= at);
    size_t i = group ? (group - 1) * MOVE_GROUP : 0;
    move_map_walk walk = move_map_from(p, i);
    for (move_map m; move_map_next(&walk, &m) && m.new_off < at;) i++;
    return i;
}

move_delta move_delta_of(const move_plan *p, uint32_t proc, const move_patches *sorted)
{
    const move_work *w = p->priv;
    uint32_t from = w->text_from[proc];
    uint32_t to = (uint32_t)(p->procs[proc].new_addr - p->text_addr) + p->procs[proc].new_size;
    size_t fixup = fixup_from(w, from), patch = INL_FIRST(sorted->count, k, sorted->items[k].proc >= proc);
    size_t behind = INL_FIRST(sorted->count, k, sorted->items[k].proc > proc);
    return (move_delta){.proc = proc,
                        .at = {p->text_addr + from},
                        .text = p->text + from,
                        .size = to - from,
                        .first = entry_from(p, from),
                        .last = entry_from(p, to),
                        .fixups = w->far.items + fixup,
                        .fixup_count = fixup_from(w, to) - fixup,
                        .patches = sorted->items + patch,
                        .patch_count = behind - patch};
}

/* Over the block that is caught itself, over blocks that may be overwritten, or where there is no block. */
static bool is_allowed(const move_plan *p, const move_target *t, const move_patch *x)
{
    for (unsigned k = 0; k < x->size; k++) {
        uint32_t block = cfg_block_covering(p->cfg, x->at.at + k - p->bias);
        if (block == CFG_NONE || p->cfg->blocks[block].addr + p->bias == x->at.at) continue;
        if (!t->may_overwrite(t->arg, p->cfg, block)) return false;
    }
    return true;
}

void move_debug_patches(const move_plan *p, const move_target *t)
{
    for (size_t i = 0; inl_debug && t->may_overwrite && i < p->patch_count; i++)
        INL_CHECK(is_allowed(p, t, &p->patches[i]), "a patch at %#lx lies over code that must stay",
                  (long)p->patches[i].at.at);
}

inl_status move_commit(const move_plan *p, const move_target *t, inl_error *e)
{
    move_patches sorted = {0};
    inl_status status = INL_OK;
    move_debug_patches(p, t);
    if (!move_patches_sort(p, &sorted)) status = inl_fail(e, INL_ERR_NO_MEMORY, "memory is used up");
    for (int round = t->place ? 0 : 1; round < 2; round++)
        for (uint32_t i = 0; i < p->cfg->proc_count && !status; i++) {
            if (!p->procs[i].new_addr) continue;
            move_delta d = move_delta_of(p, i, &sorted);
            status = (round ? t->commit : t->place)(t->arg, &d, e);
        }
    inl_vec_free(&sorted);
    return status;
}
