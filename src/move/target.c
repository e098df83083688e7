/* A plan cut into deltas, and handed to its target. */
#include "move/isa.h"
#include "base/search.h"

#include <string.h>

typedef INL_VEC(move_patch) patches;

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

static owned *sorted(const move_plan *p)
{
    owned *all = malloc((p->patch_count + 1) * sizeof *all);
    for (size_t i = 0; all && i < p->patch_count; i++) all[i] = (owned){p->patches[i].proc, (uint32_t)i};
    if (all && p->patch_count) qsort(all, p->patch_count, sizeof *all, by_proc);
    return all;
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

static move_delta delta_of(const move_work *w, uint32_t proc)
{
    const move_plan *p = &w->plan;
    uint32_t from = w->text_from[proc];
    uint32_t to = (uint32_t)(p->procs[proc].new_addr - p->text_addr) + p->procs[proc].new_size;
    size_t fixup = fixup_from(w, from);
    return (move_delta){.proc = proc,
                        .at = {p->text_addr + from},
                        .text = p->text + from,
                        .size = to - from,
                        .first = entry_from(p, from),
                        .last = entry_from(p, to),
                        .fixups = w->far.items + fixup,
                        .fixup_count = fixup_from(w, to) - fixup};
}

static inl_status no_memory(inl_error *e) { return inl_fail(e, INL_ERR_NO_MEMORY, "memory is used up"); }

inl_status move_commit(const move_plan *p, const move_target *target, inl_error *e)
{
    owned *all = sorted(p);
    patches mine = {0};
    inl_status status = all ? INL_OK : no_memory(e);
    for (uint32_t i = 0, next = 0; i < p->cfg->proc_count && !status; i++) {
        if (!p->procs[i].new_addr) continue;
        move_delta d = delta_of(p->priv, i);
        mine.count = 0;
        for (; next < p->patch_count && all[next].proc == i && !status; next++)
            if (!inl_vec_push(&mine, p->patches[all[next].patch])) status = no_memory(e);
        d.patches = mine.items;
        d.patch_count = mine.count;
        if (!status) status = target->commit(target->arg, &d, e);
    }
    inl_vec_free(&mine);
    free(all);
    return status;
}

/* --- back --- */

/* Branches of others that lead to its new code: to the old. */
static bool add_links(const move_work *w, uint32_t proc, patches *out)
{
    const move_plan *p = &w->plan;
    for (size_t i = 0; i < w->far.count; i++) {
        const move_fixup *f = &w->far.items[i];
        const cfg_block *b = &p->cfg->blocks[f->block];
        if (b->proc != proc) continue;
        move_patch link = {.at = {p->text_addr + f->at}, .proc = proc, .size = w->isa->forms[f->form].size};
        memcpy(link.before, p->text + f->at, link.size);
        memcpy(link.now, link.before, link.size);
        if (!w->isa->link(link.now, link.at.at, f->form, b->addr + p->bias) || !inl_vec_push(out, link)) return false;
    }
    return true;
}

/* Its patches; false: no memory. *other: one of another procedure's in its old code, or none. */
static bool add_patches(const move_plan *p, uint32_t proc, patches *out, const move_patch **other)
{
    const cfg_program *cfg = p->cfg;
    for (size_t i = 0; i < p->patch_count; i++) {
        const move_patch *x = &p->patches[i];
        uint32_t block = cfg_block_covering(cfg, x->at.at - p->bias);
        if (x->proc != proc && block != CFG_NONE && cfg->blocks[block].proc == proc) *other = x;
        if (x->proc == proc && !inl_vec_push(out, *x)) return false;
    }
    return true;
}

static bool in_others_table(const move_work *w, uint32_t proc)
{
    const cfg_program *p = w->plan.cfg;
    for (size_t i = 0; i < w->copies.count; i++) {
        const cfg_table *t = &p->tables[w->copies.items[i].table];
        if (p->blocks[t->block].proc == proc) continue;
        for (uint32_t k = 0; k < t->count; k++) {
            uint32_t block = cfg_block_at(p, cfg_table_target(p, t, k));
            if (block != CFG_NONE && p->blocks[block].proc == proc) return true;
        }
    }
    return false;
}

inl_status move_take_back(const move_plan *p, const move_target *target, uint32_t proc, inl_error *e)
{
    patches mine = {0}, links = {0};
    const move_patch *other = NULL;
    inl_status status = INL_OK;
    if (proc >= p->cfg->proc_count || !p->procs[proc].new_addr)
        return inl_fail(e, INL_ERR_USAGE, "a procedure that has not moved cannot be taken back");
    if (!add_patches(p, proc, &mine, &other) || !add_links(p->priv, proc, &links)) status = no_memory(e);
    if (!status && (p->procs[proc].renamed || in_others_table(p->priv, proc)))
        status = inl_fail(e, INL_ERR_UNSUPPORTED, "symbols or jump tables hold its new address");
    if (!status && other)
        status = inl_fail_at(e, INL_ERR_UNSUPPORTED, other->at.at, "another procedure's springboard lies in its code");
    if (!status) {
        move_delta d = delta_of(p->priv, proc);
        d.patches = mine.items;
        d.patch_count = mine.count;
        d.links = links.items;
        d.link_count = links.count;
        status = target->take_back(target->arg, &d, e);
    }
    inl_vec_free(&mine);
    inl_vec_free(&links);
    return status;
}
