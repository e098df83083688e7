/* The plan's order of work: choose, lay out, link, patch. See plan.h for who does what. */
#include "move/isa.h"
#include "base/page.h"

#include <stdlib.h>
#include <string.h>

static void tell(const move_work *w, const char *stage, uint64_t done, uint64_t of)
{
    if (w->client && w->client->progress) w->client->progress(w->client->arg, stage, done, of);
}

static bool prepare(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    w->plan.procs = calloc(p->proc_count + 1u, sizeof *w->plan.procs);
    w->block_bits = calloc(p->block_count + 1u, 1);
    w->new_at = malloc((p->block_count + 1u) * sizeof *w->new_at);
    w->redirected = calloc(p->table_count + 1u, 1);
    w->first_table = calloc(p->proc_count + 1u, sizeof *w->first_table);
    w->next_table = calloc(p->table_count + 1u, sizeof *w->next_table);
    w->calls_stay = calloc(p->proc_count + 1u, 1);
    w->lands_old = calloc(p->proc_count + 1u, 1);
    w->text_from = calloc(p->proc_count + 1u, sizeof *w->text_from);
    if (!w->text_from || !w->calls_stay || !w->lands_old) return false;
    if (!w->plan.procs || !w->block_bits || !w->new_at || !w->redirected || !w->first_table || !w->next_table)
        return false;
    memset(w->new_at, 0xff, (p->block_count + 1u) * sizeof *w->new_at);
    return true;
}

static inl_status lay_out(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->proc_count; i++) {
        if (i % 1024 == 0) tell(w, "rewriting", i, p->proc_count);
        if (!move_is_moved(w, i)) continue;
        w->text_from[i] = (uint32_t)w->plan.text_size;
        inl_status status = move_proc_code(w, i);
        if (status) return status;
    }
    tell(w, "rewriting", p->proc_count, p->proc_count);
    return INL_OK;
}

static inl_status link_far(move_work *w)
{
    for (size_t i = 0; i < w->far.count; i++) {
        const move_fixup *f = &w->far.items[i];
        if (!move_link(w, f->at, f->form, w->plan.text_addr + move_fix_target(w, f)))
            return inl_fail(w->error, INL_ERR_RANGE, "the new code is too large for its branches");
    }
    return INL_OK;
}

static inl_status make(move_work *w)
{
    inl_status status = INL_OK;
    tell(w, "planning", 0, 1);
    if (!prepare(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    move_pick_tables(w);
    if (!move_choose(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    move_chain_tables(w);
    if (w->instruments) cfg_facts_find(move_cfg(w), &w->facts);
    tell(w, "planning", 1, 1);
    status = lay_out(w);
    if (!status) status = link_far(w);
    if (status) return status;
    if (!move_find_names(w)) return inl_fail(w->error, INL_ERR_NO_MEMORY, "memory is used up");
    if (!move_fill_tables(w) || !move_make_patches(w))
        return inl_fail(w->error, INL_ERR_RANGE, "the new code is out of reach of the old, or memory is used up");
    return INL_OK;
}

static void forget(move_work *w)
{
    free(w->block_bits);
    free(w->new_at);
    free(w->redirected);
    free(w->first_table);
    free(w->next_table);
    free(w->runs_early);
    free(w->looked_up);
    free(w->calls_stay);
    free(w->lands_old);
    inl_vec_free(&w->catches);
    inl_vec_free(&w->near);
    inl_vec_free(&w->forms);
    inl_vec_free(&w->reaims);
    inl_vec_free(&w->more_names);
    inl_map_free(&w->bodies);
    inl_arena_free(&w->arena);
}

void move_plan_free(move_plan *plan)
{
    if (!plan) return;
    move_work *w = (move_work *)plan;
    free(w->plan.procs);
    free(w->plan.text);
    inl_vec_free(&w->map_groups);
    inl_vec_free(&w->map_steps);
    inl_vec_free(&w->states);
    inl_vec_free(&w->faults);
    inl_vec_free(&w->inlined);
    inl_vec_free(&w->switches);
    inl_vec_free(&w->run_counts);
    inl_vec_free(&w->counts);
    inl_vec_free(&w->placed);
    inl_vec_free(&w->patches);
    inl_vec_free(&w->copies);
    inl_vec_free(&w->far);
    free(w->text_from);
    free(w);
}

inl_status move_plan_make(const cfg_program *p, uint64_t bias, const move_target *target, const move_client *client,
                          move_plan **out, inl_error *e)
{
    *out = NULL;
    uint64_t text_at = target->room(target->arg).at;
    if (text_at == 0)
        return inl_fail(e, INL_ERR_FORMAT, "%s: there is no room for new code behind it", image_path(p->image));
    if (text_at % INL_PAGE) return inl_fail(e, INL_ERR_USAGE, "new code begins at a page");
    const move_isa *set = &move_isa_here;
    if (set->isa != p->isa)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: code of %s cannot be moved yet", image_path(p->image),
                        p->isa->name);
    move_work *w = calloc(1, sizeof *w);
    if (!w) return inl_fail(e, INL_ERR_NO_MEMORY, "memory is used up");
    w->plan.cfg = p;
    w->plan.bias = bias;
    w->plan.text_addr = text_at + bias;
    w->plan.priv = w;
    w->client = client;
    w->isa = set;
    w->target = target;
    w->instruments = client && client->instrument;
    w->error = e;
    inl_status status = make(w);
    forget(w);
    w->client = NULL;
    w->target = NULL;
    w->error = NULL;
    w->plan.patches = w->patches.items;
    w->plan.patch_count = w->patches.count;
    w->plan.states = w->states.items;
    w->plan.state_count = w->states.count;
    w->plan.faults = w->faults.items;
    w->plan.fault_count = w->faults.count;
    move_sort_inlined(w);
    w->plan.switches = w->switches.items;
    w->plan.switch_count = w->switches.count;
    w->plan.runs = w->run_counts.items;
    w->plan.run_count = w->run_counts.count;
    w->plan.counts = w->counts.items;
    w->plan.counts_size = w->counts.count;
    w->plan.placed = w->placed.items;
    w->plan.placed_count = w->placed.count;
    w->plan.tells_states = w->instruments || target->outside_stays;
    if (status) {
        move_plan_free(&w->plan);
        return status;
    }
    *out = &w->plan;
    return INL_OK;
}
