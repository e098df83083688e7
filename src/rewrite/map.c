/* Old and new addresses. Procedures are laid out in the order of their old addresses, so the map
 * ascends in both and one binary search serves either question. */
#include "rewrite/plan.h"

bool rewrite_map_add(rewrite_work *w, uint64_t old, uint32_t at, uint32_t code_at)
{
    return inl_vec_push(&w->map, (rewrite_map){old, at, code_at});
}

static bool is_clean(weave_parked p) { return !(p.spilled | p.junk | p.flags_saved | p.pending); }

static bool add_state(rewrite_work *w, const weave_map_entry *m)
{
    weave_parked at = {m->spilled, m->junk, m->flags_saved, m->pending};
    if (is_clean(at) && is_clean(m->before)) return true;
    rewrite_state s = {(uint32_t)w->map.count, m->before, at};
    return inl_vec_push(&w->states, s);
}

bool rewrite_map_woven(rewrite_work *w, const weave_output *out, uint32_t count, uint32_t k, uint32_t blocks)
{
    uint32_t first = (uint32_t)w->map.count;
    for (uint32_t i = 0; i < count; i++) {
        const weave_map_entry *m = &out->map[i];
        if (!add_state(w, m)) return false;
        if (!rewrite_map_add(w, m->app, w->base + m->snippets_at, w->base + m->code_at)) return false;
    }
    for (uint32_t i = 0; i < out->fault_count; i++) {
        const weave_fault *f = &out->faults[i];
        rewrite_fault to = {w->base + f->from, w->base + f->to, first + f->index, f->spilled, f->junk,
                            f->flags_saved};
        if (f->index < count && !inl_vec_push(&w->faults, to)) return false;
    }
    return rewrite_note_counts(w, out, first, k, blocks);
}

void rewrite_map_cut(rewrite_work *w, size_t count)
{
    w->map.count = count;
    while (w->states.count && w->states.items[w->states.count - 1].index >= count) w->states.count--;
    while (w->run_counts.count && w->run_counts.items[w->run_counts.count - 1].first >= count)
        w->counts.count = w->run_counts.items[--w->run_counts.count].at;
    while (w->faults.count && w->faults.items[w->faults.count - 1].index >= count) w->faults.count--;
}

uint64_t rewrite_new_address(const rewrite_plan *plan, uint64_t old_addr, bool code)
{
    size_t low = 0, high = plan->map_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->map[middle].old_addr < old_addr) low = middle + 1;
        else high = middle;
    }
    if (low == plan->map_count || plan->map[low].old_addr != old_addr) return 0;
    return plan->text_addr + (code ? plan->map[low].code_off : plan->map[low].new_off);
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
    size_t low = 0, high = plan->map_count;
    if (off >= plan->text_size) return 0;
    while (low < high) { /* the first entry that begins behind */
        size_t middle = low + (high - low) / 2;
        if (plan->map[middle].new_off > off) high = middle;
        else low = middle + 1;
    }
    if (low == 0) return 0;
    uint64_t old = plan->map[low - 1].old_addr;
    return in_moved_code(plan, old, new_addr) ? old : 0;
}
