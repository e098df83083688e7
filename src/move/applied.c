/* Which procedures of a plan are in, and what has to change where one comes or goes.
 *
 * New code leads to other procedures' new code by branches, and by entries of copied jump tables: the links. What
 * holds of each, in text that has been placed: it leads to new code if the procedure there is in, else to its old
 * place. So any of them can be out while others are in, and new code of one that is out, which a thread may not have
 * left yet, goes on right. A link that does not reach the old place is fixed: its procedure can only be in together
 * with the one that it leads to. */
#include "move/delta.h"
#include "base/search.h"

#include <string.h>

enum { IN = 1, PLACED = 2, MARKED = 4 /* by the call in work */ };

typedef struct link {
    uint32_t at;       /* in the plan's text */
    uint32_t from, to; /* procedures */
    uint8_t size;
    bool fixed, is_new; /* is_new: there, it leads to new code */
    uint8_t now[8], old[8];
} link;

/* The springboard of `proc` lies in the old code of `on`. */
typedef struct lean {
    uint32_t proc, on;
} lean;

struct move_applied {
    const move_plan *plan;
    const move_target *target;
    uint8_t *bits;       /* per procedure */
    INL_VEC(link) links; /* ascending by place, and so by `from` */
    uint32_t *first_to;  /* per procedure, and one more: its part of by_to */
    uint32_t *by_to;     /* numbers of links */
    INL_VEC(lean) leans;
    move_patches patches;  /* sorted */
    move_patches changes;  /* of links, for the delta in work */
    INL_VEC(uint8_t) text; /* likewise */
};

static inl_status no_memory(inl_error *e) { return inl_fail(e, INL_ERR_NO_MEMORY, "memory is used up"); }

static const char *name_of(const move_applied *a, uint32_t proc)
{
    const char *name = a->plan->cfg->procs[proc].name;
    return name ? name : "a procedure without a name";
}

/* --- links --- */

static bool add_link(move_applied *a, link l, uint32_t block)
{
    const move_plan *p = a->plan;
    if (block == CFG_NONE) return true;
    l.to = p->cfg->blocks[block].proc;
    if (l.to == l.from || !p->procs[l.to].new_addr) return true;
    memcpy(l.now, p->text + l.at, l.size);
    return inl_vec_push(&a->links, l);
}

/* The procedure in whose part of the text a place is. */
static uint32_t owner_of(const move_applied *a, const uint32_t *order, size_t count, uint32_t at)
{
    const move_work *w = a->plan->priv;
    return order[INL_FIRST(count, k, w->text_from[order[k]] > at) - 1];
}

static bool add_branches(move_applied *a, const uint32_t *order, size_t count)
{
    const move_plan *p = a->plan;
    const move_work *w = p->priv;
    for (size_t i = 0; i < w->far.count; i++) {
        const move_fixup *f = &w->far.items[i];
        link l = {.at = f->at, .from = owner_of(a, order, count, f->at), .size = w->isa->forms[f->form].size};
        memcpy(l.old, p->text + f->at, l.size);
        l.fixed = !w->isa->link(l.old, p->text_addr + f->at, f->form, p->cfg->blocks[f->block].addr + p->bias);
        if (!add_link(a, l, f->block)) return false;
    }
    return true;
}

static bool add_entries(move_applied *a, const move_reaim *copy)
{
    const move_plan *p = a->plan;
    const move_work *w = p->priv;
    const cfg_table *t = &p->cfg->tables[copy->table];
    for (uint32_t k = 0; k < t->count; k++) {
        uint64_t at = copy->now + (uint64_t)k * t->entry_size, target = cfg_table_target(p->cfg, t, k);
        link l = {.at = (uint32_t)(at - p->text_addr), .from = p->cfg->blocks[t->block].proc, .size = t->entry_size};
        l.fixed = !move_table_entry(w, copy, target + p->bias, l.old);
        if (!add_link(a, l, cfg_block_at(p->cfg, target))) return false;
    }
    return true;
}

static int by_place(const void *x, const void *y)
{
    const link *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Those that lead to a procedure, side by side. */
static bool index_links(move_applied *a)
{
    uint32_t procs = a->plan->cfg->proc_count;
    a->first_to = calloc(procs + 2u, sizeof *a->first_to);
    a->by_to = malloc((a->links.count + 1) * sizeof *a->by_to);
    if (!a->first_to || !a->by_to) return false;
    for (size_t i = 0; i < a->links.count; i++) a->first_to[a->links.items[i].to + 2]++;
    for (uint32_t i = 2; i < procs + 2u; i++) a->first_to[i] += a->first_to[i - 1];
    for (size_t i = 0; i < a->links.count; i++) a->by_to[a->first_to[a->links.items[i].to + 1]++] = (uint32_t)i;
    return true;
}

static bool find_links(move_applied *a)
{
    const move_work *w = a->plan->priv;
    uint32_t *order = malloc((a->plan->cfg->proc_count + 1u) * sizeof *order);
    size_t count = 0;
    bool good = order != NULL;
    for (uint32_t i = 0; good && i < a->plan->cfg->proc_count; i++)
        if (a->plan->procs[i].new_addr) order[count++] = i;
    good = good && add_branches(a, order, count);
    for (size_t i = 0; good && i < w->copies.count; i++) good = add_entries(a, &w->copies.items[i]);
    free(order);
    if (good && a->links.count) qsort(a->links.items, a->links.count, sizeof *a->links.items, by_place);
    return good && index_links(a);
}

static bool find_leans(move_applied *a)
{
    const move_plan *p = a->plan;
    for (size_t i = 0; i < p->patch_count; i++) {
        const move_patch *x = &p->patches[i];
        uint32_t block = cfg_block_covering(p->cfg, x->at.at - p->bias);
        if (block == CFG_NONE || p->cfg->blocks[block].proc == x->proc) continue;
        if (!inl_vec_push(&a->leans, (lean){x->proc, p->cfg->blocks[block].proc})) return false;
    }
    return true;
}

/* --- deltas --- */

/* The text as it must be once what is marked is in. */
static bool put_text(move_applied *a, move_delta *d)
{
    uint32_t from = (uint32_t)(d->at.at - a->plan->text_addr);
    if (!inl_vec_reserve(&a->text, d->size)) return false;
    memcpy(a->text.items, d->text, d->size);
    d->text = a->text.items;
    for (size_t i = INL_FIRST(a->links.count, k, a->links.items[k].at >= from);
         i < a->links.count && a->links.items[i].from == d->proc; i++) {
        link *l = &a->links.items[i];
        l->is_new = l->fixed || a->bits[l->to] & (IN | MARKED);
        if (!l->is_new) memcpy(a->text.items + (l->at - from), l->old, l->size);
    }
    return true;
}

/* What of placed text leads to the procedure and has to lead to the other place from now on. */
static bool collect_links(move_applied *a, move_delta *d, bool to_new)
{
    a->changes.count = 0;
    for (uint32_t i = a->first_to[d->proc]; i < a->first_to[d->proc + 1]; i++) {
        const link *l = &a->links.items[a->by_to[i]];
        if (l->fixed || l->is_new == to_new || !(a->bits[l->from] & PLACED)) continue;
        move_patch x = {.at = {a->plan->text_addr + l->at}, .proc = d->proc, .size = l->size};
        memcpy(x.now, to_new ? l->now : l->old, l->size);
        memcpy(x.before, to_new ? l->old : l->now, l->size);
        if (!inl_vec_push(&a->changes, x)) return false;
    }
    d->links = a->changes.items;
    d->link_count = a->changes.count;
    return true;
}

static void note_links(move_applied *a, uint32_t proc, bool are_new)
{
    for (uint32_t i = a->first_to[proc]; i < a->first_to[proc + 1]; i++) {
        link *l = &a->links.items[a->by_to[i]];
        if (!l->fixed && a->bits[l->from] & PLACED) l->is_new = are_new;
    }
}

static inl_status place(move_applied *a, uint32_t proc, inl_error *e)
{
    const move_target *t = a->target;
    move_delta d = move_delta_of(a->plan, proc, &a->patches);
    if (!put_text(a, &d)) return no_memory(e);
    inl_status status = t->place(t->arg, &d, e);
    if (!status) a->bits[proc] |= PLACED;
    return status;
}

static inl_status change(move_applied *a, uint32_t proc, bool in, inl_error *e)
{
    const move_target *t = a->target;
    move_delta d = move_delta_of(a->plan, proc, &a->patches);
    d.text = NULL;
    if (!collect_links(a, &d, in)) return no_memory(e);
    inl_status status = (in ? t->commit : t->take_back)(t->arg, &d, e);
    if (status) return status;
    note_links(a, proc, in);
    a->bits[proc] = (uint8_t)((a->bits[proc] & ~(MARKED | IN)) | (in ? IN : 0));
    return INL_OK;
}

/* Branches that were placed in the belief that it would be in. Where this fails, too, they lead to new code, which has
 * been placed. */
static void turn_back(move_applied *a, uint32_t proc)
{
    const move_target *t = a->target;
    move_delta d = move_delta_of(a->plan, proc, &a->patches);
    inl_error unused = {0};
    d.text = NULL;
    d.patch_count = 0;
    if (collect_links(a, &d, false) && (!d.link_count || !t->take_back(t->arg, &d, &unused)))
        note_links(a, proc, false);
}

/* --- what a call asks for --- */

static void unmark(move_applied *a)
{
    for (uint32_t i = 0; i < a->plan->cfg->proc_count; i++) a->bits[i] &= (uint8_t)~MARKED;
}

static inl_status mark(move_applied *a, const uint32_t *procs, size_t count, bool in, inl_error *e)
{
    for (size_t i = 0; i < count; i++) {
        if (procs[i] >= a->plan->cfg->proc_count || !a->plan->procs[procs[i]].new_addr) {
            unmark(a);
            return inl_fail(e, INL_ERR_USAGE, "procedure %u has not moved in this plan", procs[i]);
        }
        if (!(a->bits[procs[i]] & IN) == in) a->bits[procs[i]] |= MARKED;
    }
    return INL_OK;
}

static inl_status refuse(const move_applied *a, inl_error *e, uint32_t proc, const char *why, uint32_t other)
{
    return inl_fail_at(e, INL_ERR_UNSUPPORTED, a->plan->cfg->procs[proc].addr, "%s: %s %s", name_of(a, proc), why,
                       name_of(a, other));
}

static inl_status may_come(const move_applied *a, inl_error *e)
{
    for (size_t i = 0; i < a->leans.count; i++) {
        const lean *l = &a->leans.items[i];
        if (a->bits[l->proc] & MARKED && !(a->bits[l->on] & (IN | MARKED)))
            return refuse(a, e, l->proc, "its springboard would lie in the old code, which is not dead, of", l->on);
    }
    for (size_t i = 0; i < a->links.count; i++) {
        const link *l = &a->links.items[i];
        if (l->fixed && a->bits[l->from] & MARKED && !(a->bits[l->to] & (IN | MARKED)))
            return refuse(a, e, l->from, "from its new place it does not reach the old code of", l->to);
    }
    return INL_OK;
}

static inl_status may_go(const move_applied *a, inl_error *e)
{
    for (uint32_t i = 0; i < a->plan->cfg->proc_count; i++)
        if (a->bits[i] & MARKED && a->plan->procs[i].renamed)
            return refuse(a, e, i, "symbols hold the new address of", i);
    for (size_t i = 0; i < a->leans.count; i++) {
        const lean *l = &a->leans.items[i];
        if (a->bits[l->on] & MARKED && (a->bits[l->proc] & (IN | MARKED)) == IN)
            return refuse(a, e, l->on, "in its old code lies the springboard of", l->proc);
    }
    for (size_t i = 0; i < a->links.count; i++) {
        const link *l = &a->links.items[i];
        if (l->fixed && a->bits[l->to] & MARKED && (a->bits[l->from] & (IN | MARKED)) == IN)
            return refuse(a, e, l->to, "its old code is out of reach of the new code of", l->from);
    }
    return INL_OK;
}

/* --- the calls --- */

bool move_is_applied(const move_applied *a, uint32_t proc)
{
    return proc < a->plan->cfg->proc_count && a->bits[proc] & IN;
}

bool move_is_placed(const move_applied *a, uint32_t proc)
{
    return proc < a->plan->cfg->proc_count && a->bits[proc] & PLACED;
}

/* Calls for what is marked, in order: all, or up to the first that fails. */
static inl_status each(move_applied *a, uint8_t bits, inl_status (*call)(move_applied *, uint32_t, inl_error *),
                       inl_error *e)
{
    inl_status status = INL_OK;
    for (uint32_t i = 0; i < a->plan->cfg->proc_count && !status; i++)
        if ((a->bits[i] & (MARKED | PLACED)) == bits) status = call(a, i, e);
    return status;
}

static inl_status come(move_applied *a, uint32_t proc, inl_error *e) { return change(a, proc, true, e); }
static inl_status go(move_applied *a, uint32_t proc, inl_error *e) { return change(a, proc, false, e); }

inl_status move_apply(move_applied *a, const uint32_t *procs, size_t count, inl_error *e)
{
    inl_status status = mark(a, procs, count, true, e);
    if (!status) status = may_come(a, e);
    uint32_t procs_in_all = a->plan->cfg->proc_count;
    uint8_t *before = status ? NULL : malloc(procs_in_all + 1u);
    if (!status && !before) status = no_memory(e);
    if (before) memcpy(before, a->bits, procs_in_all);
    if (!status) {
        status = each(a, MARKED, place, e);
        for (uint32_t i = 0; status && i < procs_in_all; i++) /* nothing leads to what has been placed */
            a->bits[i] = (uint8_t)((a->bits[i] & ~PLACED) | (before[i] & PLACED));
        if (!status && (status = each(a, MARKED | PLACED, come, e)))
            for (uint32_t i = 0; i < procs_in_all; i++)
                if (a->bits[i] & MARKED) turn_back(a, i);
    }
    free(before);
    unmark(a);
    return status;
}

inl_status move_take_back(move_applied *a, const uint32_t *procs, size_t count, inl_error *e)
{
    inl_status status = mark(a, procs, count, false, e);
    if (!status) status = may_go(a, e);
    if (!status) status = each(a, MARKED | PLACED, go, e);
    unmark(a);
    return status;
}

inl_status move_drop(move_applied *a, uint32_t proc, inl_error *e)
{
    if (proc >= a->plan->cfg->proc_count || a->bits[proc] & IN)
        return inl_fail(e, INL_ERR_USAGE, "procedure %u is in: its text is needed", proc);
    for (uint32_t i = a->first_to[proc]; i < a->first_to[proc + 1]; i++) {
        const link *l = &a->links.items[a->by_to[i]];
        if (l->is_new && a->bits[l->from] & PLACED)
            return refuse(a, e, proc, "its new code is still led to by that of", l->from);
    }
    a->bits[proc] = 0;
    return INL_OK;
}

inl_status move_applied_begin(const move_plan *p, const move_target *target, move_applied **out, inl_error *e)
{
    *out = NULL;
    if (!target->place || !target->take_back)
        return inl_fail(e, INL_ERR_USAGE, "this target takes a plan as a whole, nothing comes and goes in it");
    move_applied *a = calloc(1, sizeof *a);
    if (!a) return no_memory(e);
    a->plan = p;
    a->target = target;
    a->bits = calloc(p->cfg->proc_count + 1u, 1);
    move_debug_patches(p, target);
    if (!a->bits || !move_patches_sort(p, &a->patches) || !find_links(a) || !find_leans(a)) {
        move_applied_end(a);
        return no_memory(e);
    }
    *out = a;
    return INL_OK;
}

void move_applied_end(move_applied *a)
{
    if (!a) return;
    free(a->bits);
    free(a->first_to);
    free(a->by_to);
    inl_vec_free(&a->links);
    inl_vec_free(&a->leans);
    inl_vec_free(&a->patches);
    inl_vec_free(&a->changes);
    inl_vec_free(&a->text);
    free(a);
}
