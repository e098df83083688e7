/* Arms of conditions that are written behind the run, since they are seldom run: code in the state of the place that
 * leads there, which it gives back at its end. Both ways meet in that state, as those of any condition do (cond.c);
 * what scratch registers hold is forgotten. An arm may itself have arms that come later. */
#include "weave/weaver.h"

weave_spot weave_spot_of(const weaver *w)
{
    weave_spot spot = {.st = w->st,
                       .locked = w->locked,
                       .temps = w->temps,
                       .at = w->at,
                       .after = w->after,
                       .placed = w->placed,
                       .need = w->need,
                       .living = w->living};
    for (unsigned r = 0; r < WEAVE_MAX_REGS; r++) spot.lock[r] = w->lock[r];
    return spot;
}

void weave_spot_return(weaver *w, const weave_spot *spot)
{
    w->st = spot->st, w->temps = spot->temps, w->at = spot->at, w->after = spot->after;
    w->placed = spot->placed;
    w->need = spot->need, w->living = spot->living;
    for (unsigned r = 0; r < WEAVE_MAX_REGS; r++) w->lock[r] = spot->lock[r];
    w->locked = spot->locked;
}

weave_later *weave_put_later(weaver *w, const snippet *code, isa_label from)
{
    weave_later *later = inl_arena_alloc(w->run->arena, sizeof *later);
    if (!later) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return NULL;
    }
    *later = (weave_later){.code = code,
                           .from = from,
                           .spot = weave_spot_of(w),
                           .local_count = w->local_count,
                           .saved_count = w->saved_count,
                           .conditional = w->conditional};
    for (unsigned i = 0; i < w->local_count; i++) later->locals[i] = w->locals[i];
    for (unsigned i = 0; i < w->saved_count; i++) later->saved[i] = w->saved[i];
    *w->later_end = later;
    w->later_end = &later->next;
    return later;
}

static void write_arm(weaver *w, const weave_later *l)
{
    weave_spot_return(w, &l->spot);
    for (unsigned i = 0; i < l->local_count; i++) w->locals[i] = l->locals[i];
    for (unsigned i = 0; i < l->saved_count; i++) w->saved[i] = l->saved[i];
    w->local_count = l->local_count, w->saved_count = l->saved_count;
    w->conditional = l->conditional + 1;
    w->sets_regs = false;
    weave_forget(w);
    w->isa->bind(w->c, l->from);
    weave_run_for_effect(w, l->code);
    weave_arm_end(w, l->spot.st);
    w->isa->jump_to(w->c, l->back);
}

void weave_emit_later(weaver *w)
{
    for (const weave_later *l = w->later; l && !w->status; l = l->next) write_arm(w, l);
    w->local_count = w->saved_count = w->conditional = 0;
}
