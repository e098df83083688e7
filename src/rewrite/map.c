/* Old and new addresses. Procedures are laid out in the order of their old addresses, so the map
 * ascends in both and one search serves either question.
 *
 * It is kept as groups of instructions and steps within them (steps.h): a byte and a bit an instruction. */
#include "rewrite/plan.h"
#include "rewrite/steps.h"

#include <string.h>

/* --- making it --- */

bool rewrite_map_add(rewrite_work *w, uint64_t old, uint32_t at, uint32_t code_at)
{
    if (old == w->head_of) at = w->head_at;
    rewrite_map m = {old, at, code_at};
    const rewrite_map *from = w->plan.map_count % REWRITE_GROUP ? &w->map_last : NULL;
    if (!inl_vec_reserve(&w->map_steps, w->map_steps.count + REWRITE_STEP_MOST)) return false;
    if (!from && !inl_vec_push(&w->map_groups, (rewrite_map_group){old, at, (uint32_t)w->map_steps.count}))
        return false;
    uint8_t *to = w->map_steps.items + w->map_steps.count;
    w->map_steps.count += (size_t)(rewrite_step_put(to, rewrite_step_head(&m, from), &m, from) - to);
    w->map_last = m;
    w->plan.map_count++;
    w->plan.map_groups = w->map_groups.items;
    w->plan.map_steps = w->map_steps.items;
    return true;
}

static bool is_clean(weave_parked p) { return !(p.spilled | p.junk | p.flags_saved | p.pending); }

static bool add_state(rewrite_work *w, const weave_map_entry *m)
{
    weave_parked at = {m->spilled, m->junk, m->flags_saved, m->pending};
    if (is_clean(at) && is_clean(m->before)) return true;
    rewrite_state s = {(uint32_t)w->plan.map_count, m->before, at};
    return inl_vec_push(&w->states, s);
}

bool rewrite_map_faults(rewrite_work *w, const weave_output *out, uint32_t count)
{
    uint32_t first = (uint32_t)w->plan.map_count;
    for (uint32_t i = 0; i < out->fault_count; i++) {
        const weave_fault *f = &out->faults[i];
        rewrite_fault to = {w->base + f->from, w->base + f->to, first + f->index, f->spilled, f->junk, f->flags_saved};
        if (f->index < count && !inl_vec_push(&w->faults, to)) return false;
    }
    return true;
}

bool rewrite_map_woven(rewrite_work *w, const weave_output *out, uint32_t count, uint32_t k, uint32_t blocks)
{
    uint32_t first = (uint32_t)w->plan.map_count;
    if (!rewrite_map_faults(w, out, count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        const weave_map_entry *m = &out->map[i];
        if (!add_state(w, m)) return false;
        if (!rewrite_map_add(w, m->app, w->base + m->snippets_at, w->base + m->code_at)) return false;
    }
    return rewrite_note_counts(w, out, first, k, blocks);
}

static void cut_steps(rewrite_work *w, size_t count)
{
    size_t group = count / REWRITE_GROUP;
    if (count == w->plan.map_count) return;
    if (count % REWRITE_GROUP) {
        rewrite_map_walk walk = rewrite_map_from(&w->plan, count - 1);
        rewrite_map_next(&walk, &w->map_last);
        w->map_steps.count = (size_t)(walk.at - w->map_steps.items);
        w->map_groups.count = group + 1;
    } else {
        w->map_steps.count = w->map_groups.items[group].at;
        w->map_groups.count = group;
    }
    w->plan.map_count = count;
}

void rewrite_map_cut(rewrite_work *w, size_t count)
{
    cut_steps(w, count);
    while (w->states.count && w->states.items[w->states.count - 1].index >= count) w->states.count--;
    rewrite_counts_cut(w, count);
    while (w->faults.count > w->head_faults && w->faults.items[w->faults.count - 1].index >= count) w->faults.count--;
}

/* --- reading it --- */

/* From the begin of a group. */
static rewrite_map_walk open_group(const rewrite_plan *plan, size_t group)
{
    const rewrite_map_group *g = &plan->map_groups[group];
    return (rewrite_map_walk){.plan = plan, .next = group * REWRITE_GROUP, .at = plan->map_steps + g->at};
}

rewrite_map_walk rewrite_map_from(const rewrite_plan *plan, size_t i)
{
    rewrite_map_walk walk = {.plan = plan, .next = i};
    rewrite_map m;
    if (i >= plan->map_count) return walk;
    walk = open_group(plan, i / REWRITE_GROUP);
    while (walk.next < i) rewrite_map_next(&walk, &m);
    return walk;
}

bool rewrite_map_next(rewrite_map_walk *walk, rewrite_map *out)
{
    bool first = walk->next % REWRITE_GROUP == 0;
    if (walk->next >= walk->plan->map_count) return false;
    if (first) {
        const rewrite_map_group *g = &walk->plan->map_groups[walk->next / REWRITE_GROUP];
        walk->last = (rewrite_map){g->old_addr, g->new_off, g->new_off};
    }
    rewrite_step_take(&walk->at, &walk->last, first);
    walk->next++;
    *out = walk->last;
    return true;
}

rewrite_map rewrite_map_at(const rewrite_plan *plan, size_t i)
{
    rewrite_map_walk walk = rewrite_map_from(plan, i);
    rewrite_map m = {0};
    rewrite_map_next(&walk, &m);
    return m;
}

/* Looks for the last entry at or before an old or a new place. */
static bool find(const rewrite_plan *plan, uint64_t place, bool old, rewrite_map *out)
{
    size_t low = 0, high = (plan->map_count + REWRITE_GROUP - 1) / REWRITE_GROUP;
    while (low < high) { /* the first group that begins behind */
        size_t middle = low + (high - low) / 2;
        const rewrite_map_group *g = &plan->map_groups[middle];
        if ((old ? g->old_addr : g->new_off) > place) high = middle;
        else low = middle + 1;
    }
    if (low == 0) return false;
    rewrite_map_walk walk = open_group(plan, low - 1);
    rewrite_map m;
    for (unsigned i = 0; i < REWRITE_GROUP && rewrite_map_next(&walk, &m); i++) {
        if ((old ? m.old_addr : m.new_off) > place) break;
        *out = m;
    }
    return true;
}

uint64_t rewrite_new_address(const rewrite_plan *plan, uint64_t old_addr, bool code)
{
    rewrite_map m;
    if (!find(plan, old_addr, true, &m) || m.old_addr != old_addr) return 0;
    return plan->text_addr + (code ? m.code_off : m.new_off);
}

/* The procedure whose new code covers an address. */
static bool in_moved_code(const rewrite_plan *plan, uint64_t old_addr, uint64_t new_addr)
{
    uint32_t proc = cfg_proc_covering(plan->cfg, old_addr - plan->bias);
    if (proc == CFG_NONE) return false;
    const rewrite_proc *p = &plan->procs[proc];
    return p->new_addr && new_addr - p->new_addr < p->new_size;
}

uint64_t rewrite_old_address(const rewrite_plan *plan, uint64_t new_addr)
{
    uint64_t off = new_addr - plan->text_addr;
    rewrite_map m;
    if (off >= plan->text_size || !find(plan, off, false, &m)) return 0;
    return in_moved_code(plan, m.old_addr, new_addr) ? m.old_addr : 0;
}
