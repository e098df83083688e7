/* Old and new addresses. Procedures are laid out in the order of their old addresses, so the map
 * ascends in both and one search serves either question.
 *
 * It is kept as groups of instructions and steps within them (steps.h): a byte and a bit an instruction. */
#include "move/plan.h"
#include "base/search.h"
#include "move/steps.h"

#include <stdlib.h>
#include <string.h>

/* --- making it --- */

bool move_map_add(move_work *w, uint64_t old, uint32_t at, uint32_t code_at)
{
    if (old == w->head_of) at = w->head_at;
    move_map m = {old, at, code_at};
    const move_map *from = w->plan.map_count % MOVE_GROUP ? &w->map_last : NULL;
    if (!inl_vec_reserve(&w->map_steps, w->map_steps.count + MOVE_STEP_MOST)) return false;
    if (!from && !inl_vec_push(&w->map_groups, (move_map_group){old, at, (uint32_t)w->map_steps.count})) return false;
    uint8_t *to = w->map_steps.items + w->map_steps.count;
    w->map_steps.count += (size_t)(move_step_put(to, move_step_head(&m, from), &m, from) - to);
    w->map_last = m;
    w->plan.map_count++;
    w->plan.map_groups = w->map_groups.items;
    w->plan.map_steps = w->map_steps.items;
    return true;
}

static bool is_clean(weave_parked p) { return !(p.spilled | p.junk | p.flags_saved | p.pending); }

static bool add_state(move_work *w, const weave_map_entry *m)
{
    weave_parked at = {m->spilled, m->junk, m->flags_saved, m->pending};
    if (is_clean(at) && is_clean(m->before)) return true;
    move_state s = {(uint32_t)w->plan.map_count, m->before, at};
    return inl_vec_push(&w->states, s);
}

bool move_map_faults(move_work *w, const weave_output *out, uint32_t count)
{
    uint32_t first = (uint32_t)w->plan.map_count;
    for (uint32_t i = 0; i < out->fault_count; i++) {
        const weave_fault *f = &out->faults[i];
        move_fault to = {w->base + f->from, w->base + f->to, first + f->index, f->spilled, f->junk, f->flags_saved};
        if (f->index < count && !inl_vec_push(&w->faults, to)) return false;
    }
    for (uint32_t i = 0; i < out->inlined_count; i++) {
        const weave_inlined *n = &out->inlined[i];
        move_inlined to = {(uint32_t)(n->exec - w->plan.text_addr), first + n->index, n->routine};
        if (n->index < count && !inl_vec_push(&w->inlined, to)) return false;
    }
    for (uint32_t i = 0; i < out->switch_count; i++) {
        const weave_switch *n = &out->switches[i];
        move_switch to = {(uint32_t)(n->exec - w->plan.text_addr), first + n->index, n->number, n->on, n->off};
        if (n->index < count && !inl_vec_push(&w->switches, to)) return false;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const move_inlined *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

void move_sort_inlined(move_work *w)
{
    if (w->inlined.count) qsort(w->inlined.items, w->inlined.count, sizeof *w->inlined.items, by_place);
    w->plan.inlined = w->inlined.items;
    w->plan.inlined_count = w->inlined.count;
}

bool move_map_woven(move_work *w, const weave_output *out, uint32_t count, uint32_t k, uint32_t blocks)
{
    uint32_t first = (uint32_t)w->plan.map_count;
    if (!move_map_faults(w, out, count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        const weave_map_entry *m = &out->map[i];
        if (!add_state(w, m)) return false;
        if (!move_map_add(w, m->app, w->base + m->snippets_at, w->base + m->code_at)) return false;
    }
    return move_note_counts(w, out, first, k, blocks);
}

static void cut_steps(move_work *w, size_t count)
{
    size_t group = count / MOVE_GROUP;
    if (count == w->plan.map_count) return;
    if (count % MOVE_GROUP) {
        move_map_walk walk = move_map_from(&w->plan, count - 1);
        move_map_next(&walk, &w->map_last);
        w->map_steps.count = (size_t)(walk.at - w->map_steps.items);
        w->map_groups.count = group + 1;
    } else {
        w->map_steps.count = w->map_groups.items[group].at;
        w->map_groups.count = group;
    }
    w->plan.map_count = count;
}

void move_map_cut(move_work *w, size_t count)
{
    cut_steps(w, count);
    while (w->states.count && w->states.items[w->states.count - 1].index >= count) w->states.count--;
    move_counts_cut(w, count);
    while (w->faults.count > w->head_faults && w->faults.items[w->faults.count - 1].index >= count) w->faults.count--;
    while (w->inlined.count > w->head_inlined && w->inlined.items[w->inlined.count - 1].index >= count)
        w->inlined.count--;
    while (w->switches.count > w->head_switches && w->switches.items[w->switches.count - 1].index >= count)
        w->switches.count--;
}

/* --- reading it --- */

/* From the begin of a group. */
static move_map_walk open_group(const move_plan *plan, size_t group)
{
    const move_map_group *g = &plan->map_groups[group];
    return (move_map_walk){.plan = plan, .next = group * MOVE_GROUP, .at = plan->map_steps + g->at};
}

move_map_walk move_map_from(const move_plan *plan, size_t i)
{
    move_map_walk walk = {.plan = plan, .next = i};
    move_map m;
    if (i >= plan->map_count) return walk;
    walk = open_group(plan, i / MOVE_GROUP);
    while (walk.next < i) move_map_next(&walk, &m);
    return walk;
}

bool move_map_next(move_map_walk *walk, move_map *out)
{
    bool first = walk->next % MOVE_GROUP == 0;
    if (walk->next >= walk->plan->map_count) return false;
    if (first) {
        const move_map_group *g = &walk->plan->map_groups[walk->next / MOVE_GROUP];
        walk->last = (move_map){g->old_addr, g->new_off, g->new_off};
    }
    move_step_take(&walk->at, &walk->last, first);
    walk->next++;
    *out = walk->last;
    return true;
}

move_map move_map_at(const move_plan *plan, size_t i)
{
    move_map_walk walk = move_map_from(plan, i);
    move_map m = {0};
    move_map_next(&walk, &m);
    return m;
}

/* Looks for the last entry at or before an old or a new place. */
static bool find(const move_plan *plan, uint64_t place, bool old, move_map *out)
{
    const move_map_group *g = plan->map_groups;
    size_t count = (plan->map_count + MOVE_GROUP - 1) / MOVE_GROUP;
    size_t behind = INL_FIRST(count, k, (old ? g[k].old_addr : g[k].new_off) > place);
    if (!behind) return false;
    move_map_walk walk = open_group(plan, behind - 1);
    move_map m;
    for (unsigned i = 0; i < MOVE_GROUP && move_map_next(&walk, &m); i++) {
        if ((old ? m.old_addr : m.new_off) > place) break;
        *out = m;
    }
    return true;
}

assumed_addr move_new_address(const move_plan *plan, assumed_addr old, bool code)
{
    move_map m;
    if (!find(plan, old.at, true, &m) || m.old_addr != old.at) return (assumed_addr){0};
    return (assumed_addr){plan->text_addr + (code ? m.code_off : m.new_off)};
}

/* The procedure whose new code covers an address. */
static bool in_moved_code(const move_plan *plan, uint64_t old_addr, uint64_t new_addr)
{
    uint32_t proc = cfg_proc_covering(plan->cfg, old_addr - plan->bias);
    if (proc == CFG_NONE) return false;
    const move_proc *p = &plan->procs[proc];
    return p->new_addr && new_addr - p->new_addr < p->new_size;
}

assumed_addr move_old_address(const move_plan *plan, assumed_addr now)
{
    uint64_t off = now.at - plan->text_addr;
    move_map m;
    if (off >= plan->text_size || !find(plan, off, false, &m)) return (assumed_addr){0};
    return (assumed_addr){in_moved_code(plan, m.old_addr, now.at) ? m.old_addr : 0};
}
