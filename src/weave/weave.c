/* Weaving a run: the entry, the fast path of a run without snippets, and the main loop of
 * one with snippets. weaver.h tells how the work is divided. */
#include "weave/weaver.h"

static bool is_plain(const weave_run *run)
{
    for (uint32_t i = 0; i < run->block_count; i++)
        if (run->blocks[i].anywhere.first) return false;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *n = &run->insns[i];
        if (n->before.first || n->after.first || n->taken.first) return false;
    }
    return true;
}

static bool goes_on(const isa_insn *in)
{
    switch (in->flow) {
    case ISA_FLOW_JUMP:
    case ISA_FLOW_CALL:
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND:
    case ISA_FLOW_RETURN: return false;
    default: return true;
    }
}

static void lower(weaver *w, uint32_t i)
{
    if (!w->engine->lower(w->engine->arg, w->c, w->run, i))
        weave_fail(w, INL_ERR_UNSUPPORTED, "the engine cannot translate a control transfer");
}

/* The map tells of the guard and of the instruction in it as one. False: it has failed. */
static bool copy_guarded(weaver *w, uint32_t i, weave_map_entry *entry, bool plain)
{
    const weave_engine *e = w->engine;
    const weave_insn *insn = &w->run->insns[i];
    uint32_t code_at = entry->code_at;
    weave_forget(w);
    bool copied = e->guard(e->arg, w->c, w->run, i);
    if (!copied) weave_fail(w, INL_ERR_UNSUPPORTED, "the engine cannot guard an instruction");
    copied = copied && (plain ? weave_copy_plain(w, insn, entry) : weave_copy(w, i, entry));
    entry->code_at = code_at;
    return copied && e->guard_ends(e->arg, w->c, w->run, i);
}

static void may_exit(weaver *w, bool good)
{
    if (!good) weave_fail(w, INL_ERR_UNSUPPORTED, "the engine cannot leave the run");
}

static void exit_to(weaver *w, uint64_t target) { may_exit(w, w->engine->exit_to(w->engine->arg, w->c, target)); }

static void end_to(weaver *w, uint64_t target)
{
    const weave_engine *e = w->engine;
    may_exit(w, (e->end_to ? e->end_to : e->exit_to)(e->arg, w->c, target));
}

/* The map's last entry, and the way out behind the last instruction. */
static void finish(weaver *w, weave_map_entry *last_entry)
{
    const weave_insn *last = &w->run->insns[w->run->insn_count - 1];
    uint64_t next = last->elided ? last->in.target : last->in.addr + last->in.len;
    last_entry->app = next;
    last_entry->snippets_at = last_entry->code_at = (uint32_t)w->c->at;
    last_entry->scratch = ISA_NO_REG;
    if (last->elided || goes_on(&last->in)) end_to(w, next);
}

static void weave_plainly(weaver *w)
{
    const weave_run *run = w->run;
    weave_map_entry *entry = w->out->map;
    w->st = (weave_state){w->isa->all, 0, true, false};
    w->need = w->living = (cfg_need){w->isa->all, w->isa->flags};
    for (uint32_t i = 0; i < run->insn_count; i++, entry++) {
        const weave_insn *insn = &run->insns[i];
        entry->app = insn->in.addr;
        entry->snippets_at = entry->code_at = (uint32_t)w->c->at;
        entry->scratch = ISA_NO_REG;
        if (insn->elided) continue;
        if (insn->in.flow != ISA_FLOW_NEXT) lower(w, i);
        else if (!(insn->guarded ? copy_guarded(w, i, entry, true) : weave_copy_plain(w, insn, entry))) {
            w->at = i;
            return;
        }
    }
    w->out->entry_regs = w->isa->all;
    w->out->entry_flags = w->isa->flags;
    finish(w, entry);
    w->out->cold_at = (uint32_t)w->c->at;
}

static void emit_insert(weaver *w, const weave_insert *n)
{
    weave_forget(w);
    w->sets_regs = snippet_has(n->code, SNIPPET_SET_REG);
    if (n->predicated) weave_predicated(w, n->code);
    else weave_run_for_effect(w, n->code);
}

static void emit_before(weaver *w, uint32_t i)
{
    const weave_insn *insn = &w->run->insns[i];
    weave_set_point(w, i, false);
    weave_save_elements(w, i);
    weave_place_begin(w, i);
    weave_emit_anywhere(w, i);
    weave_ahead_emit_looks(w, i);
    weave_emit_counts(w, i);
    for (const weave_insert *n = insn->before.first; n; n = n->next) {
        if (weave_count_merged(w, i, n)) continue;
        if (w->ahead && w->ahead[i]) weave_ahead_append(w, n->code);
        else emit_insert(w, n);
    }
    if (!insn->elided) return;
    for (const weave_insert *n = insn->taken.first; n; n = n->next) emit_insert(w, n);
}

/* Values of the after-snippets that the instruction is about to change are computed now. */
static void save_tree(weaver *w, const snippet *s)
{
    if (!s) return;
    if (weave_ea_needs_before(w, s)) {
        if (weave_saved_find(w, s)) return;
        if (w->saved_count == WEAVE_MAX_SAVED) {
            weave_fail(w, INL_ERR_UNSUPPORTED, "too many values from before the instruction");
            return;
        }
        bool address = s->kind == SNIPPET_MEM_VALUE;
        weave_val v = address ? weave_ea(w, s->index, ISA_NO_REG) : weave_eval(w, s, ISA_NO_REG);
        weave_in_reg(w, &v, 0);
        unsigned temp = weave_temp_take(w);
        weave_temp_store(w, temp, v.reg);
        weave_drop(w, v);
        w->saved[w->saved_count++] = (weave_saved){address ? SNIPPET_EA : s->kind, (uint8_t)temp, s->index, s->value};
    }
    save_tree(w, s->a);
    save_tree(w, s->b);
    save_tree(w, s->c);
    for (unsigned k = 0; k < s->nargs; k++) save_tree(w, s->args[k]);
}

static void emit_after(weaver *w, uint32_t i)
{
    const weave_insn *insn = &w->run->insns[i];
    weave_set_point(w, i, true);
    for (const weave_insert *n = insn->after.first; n; n = n->next) emit_insert(w, n);
    while (w->saved_count) weave_temp_drop(w, w->saved[--w->saved_count].temp);
}

/* The snippets of a taken edge, in the state the program leaves with. */
static void emit_taken_list(weaver *w, const weave_insn *insn)
{
    w->need = w->living = weave_wanted_taken(w, insn);
    for (const weave_insert *n = insn->taken.first; n; n = n->next) emit_insert(w, n);
    weave_restore_all(w);
}

struct weave_side {
    weave_side *next;
    isa_label from;
    uint32_t index;
    weave_state st;
};

/* The branch goes to code behind the run that restores what is spilled and holds the snippets of the
 * taken edge; the straight way goes on with its registers where they are. */
static void emit_side(weaver *w, uint32_t i)
{
    weave_side *side = inl_arena_alloc(w->run->arena, sizeof *side);
    if (!side) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return;
    }
    *side = (weave_side){NULL, w->isa->branch(w->c, w->run->insns[i].in.cond, false), i, w->st};
    *w->sides_end = side;
    w->sides_end = &side->next;
}

void weave_bind_cold(weaver *w, isa_label l)
{
    if (w->main) w->isa->bind_to(w->main, l, isa_here(w->c));
    else w->isa->bind(w->c, l);
}

static void emit_sides(weaver *w)
{
    weave_forget(w);
    for (const weave_side *s = w->sides; s && !w->status; s = s->next) {
        uint32_t from = (uint32_t)w->c->at;
        weave_set_point(w, s->index, false);
        w->st = s->st;
        weave_bind_cold(w, s->from);
        w->need = w->living = weave_wanted_taken(w, &w->run->insns[s->index]);
        w->st.flags_slot = false; /* a count that keeps the flags is cheaper than their restoring */
        weave_emit_side_counts(w, s->index);
        if (weave_taken_joins(w, &w->run->insns[s->index])) weave_restore_all(w);
        else emit_taken_list(w, &w->run->insns[s->index]);
        exit_to(w, w->run->insns[s->index].in.target);
        if (!w->main) weave_note_state(w, from, s->index, s->st);
    }
}

/* A conditional branch with snippets on its taken edge: an inverted branch over them. */
static void emit_taken_edge(weaver *w, uint32_t i)
{
    const isa_insn *in = &w->run->insns[i].in;
    weave_state from = w->st;
    bool on_flags = in->flow == ISA_FLOW_COND;
    isa_label over = on_flags ? w->isa->branch_unless(w->c, in->cond, false) : w->isa->branch_unless_taken(w, in);
    emit_taken_list(w, &w->run->insns[i]);
    exit_to(w, in->target);
    w->isa->bind(w->c, over);
    w->st = from;
}

/* The instruction itself begins here, in the state that is now. */
static void note_state(const weaver *w, weave_map_entry *entry)
{
    entry->code_at = (uint32_t)w->c->at;
    entry->spilled = w->st.in_slot & ~w->st.in_reg;
    entry->junk = w->isa->all & ~(w->st.in_slot | w->st.in_reg);
    entry->flags_saved = w->st.flags_slot && !w->st.flags_hw;
}

static void emit_insn(weaver *w, uint32_t i, weave_map_entry *entry)
{
    const weave_insn *insn = &w->run->insns[i];
    bool transfers = insn->in.flow != ISA_FLOW_NEXT;
    bool conditional = insn->in.flow == ISA_FLOW_COND || insn->in.flow == ISA_FLOW_COND_REG;
    if (insn->after.first) {
        weave_set_point(w, i, false);
        for (const weave_insert *n = insn->after.first; n; n = n->next) {
            save_tree(w, n->code);
            if (n->predicated) save_tree(w, &weave_executes_node);
        }
    }
    if (transfers && !conditional && insn->taken.first) emit_taken_list(w, insn);
    bool side = weave_prepare_side(w, i);
    if (!side) weave_prepare(w, i);
    note_state(w, entry);
    entry->pending = insn->after.first != NULL;
    if (side) {
        emit_side(w, i);
        return;
    }
    if (insn->in.flow == ISA_FLOW_COND && insn->taken.first && w->opt->cold_exits) emit_side(w, i);
    else if (conditional && insn->taken.first) emit_taken_edge(w, i);
    else if (transfers) lower(w, i);
    else if (!(insn->guarded ? copy_guarded(w, i, entry, false) : weave_copy(w, i, entry))) return;
    weave_executed(w, i);
    if (insn->after.first) emit_after(w, i);
    weave_place_end(w);
}

static void weave_fully(weaver *w)
{
    const weave_run *run = w->run;
    weave_map_entry *entry = w->out->map;
    if (!weave_analyse(w) || !weave_ahead_begin(w) || !weave_plan_counts(w)) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return;
    }
    w->st = (weave_state){w->isa->all, 0, true, false};
    for (uint32_t i = 0; i < run->insn_count && !w->status && !w->c->full; i++, entry++) {
        entry->app = run->insns[i].in.addr;
        entry->snippets_at = (uint32_t)w->c->at;
        entry->scratch = ISA_NO_REG;
        note_state(w, entry);
        entry->before = (weave_parked){entry->spilled, entry->junk, entry->flags_saved, 0};
        emit_before(w, i);
        if (run->insns[i].elided) {
            note_state(w, entry);
        } else {
            emit_insn(w, i, entry);
        }
    }
    if (w->status || w->c->full) return;
    weave_set_point(w, run->insn_count - 1, true);
    weave_restore_all(w);
    finish(w, entry);
    w->out->cold_at = (uint32_t)w->c->at;
    w->main = w->engine->cold ? w->c : NULL;
    if (w->main) w->c = w->engine->cold;
    emit_sides(w);
    weave_emit_later(w);
    weave_emit_cold(w);
    weave_emit_arms(w);
    if (w->main) w->c = w->main;
}

inl_status weave_compile(const weave_run *run, const weave_engine *engine, const weave_options *options, isa_code *code,
                         weave_output *out, inl_error *e)
{
    static const weave_options no_options;
    weaver w;
    __builtin_memset(&w, 0, sizeof w);
    __builtin_memset(out, 0, sizeof *out);
    w.isa = weave_isa_of(run->isa);
    if (!w.isa)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: the weaver does not know this instruction set", run->isa->name);
    w.run = run, w.engine = engine, w.c = code, w.out = out;
    w.opt = options ? options : &no_options;
    w.rng = w.opt->seed * 2654435761u | 1;
    w.cold_end = &w.cold;
    w.later_end = &w.later;
    w.sides_end = &w.sides;
    if (run->insn_count == 0) return inl_fail(e, INL_ERR_USAGE, "a run without instructions");
    out->map_count = run->insn_count + 1;
    out->map = inl_arena_alloc(run->arena, out->map_count * sizeof *out->map);
    if (!out->map) return inl_fail(e, INL_ERR_NO_MEMORY, "memory is used up while weaving");
    if (is_plain(run)) weave_plainly(&w);
    else weave_fully(&w);
    if (code->full || (engine->cold && engine->cold->full))
        return inl_fail(e, INL_ERR_RANGE, "the code does not fit its room");
    if (w.status)
        return inl_fail_at(e, w.status, run->insns[w.at].in.addr, "at %#llx: %s",
                           (unsigned long long)run->insns[w.at].in.addr, w.why);
    if (code->unreachable || (engine->cold && engine->cold->unreachable))
        return inl_fail(e, INL_ERR_UNSUPPORTED, "at %#llx: an operand is out of reach",
                        (unsigned long long)run->insns[0].in.addr);
    return INL_OK;
}
