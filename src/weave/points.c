/* What each point of the run reads, the liveness that follows from it, and what the program's
 * instructions do to the weaver's state. */
#include "weave/weaver.h"

#include <string.h>

static cfg_need everything(const weaver *w) { return (cfg_need){w->isa->all, w->isa->flags}; }

static cfg_need join(cfg_need a, cfg_need b) { return (cfg_need){a.regs | b.regs, a.flags | b.flags}; }

static cfg_need regs_of_mem(const weaver *w, const isa_insn *in, unsigned index)
{
    isa_mem mem[ISA_MAX_MEM];
    isa_effects fx;
    cfg_need need = {0, 0};
    int n = w->run->isa->memory(in, mem);
    if ((int)index >= n) return need;
    if (mem[index].bits & ISA_MEM_BIT_OFFSET) { /* the register that numbers the bit as well */
        w->run->isa->effects(in, &fx);
        return (cfg_need){fx.reads & w->isa->all, 0};
    }
    if (mem[index].base < 64) need.regs |= 1ull << mem[index].base;
    if (mem[index].index < 64 && !(mem[index].bits & ISA_MEM_VECTOR_INDEX)) need.regs |= 1ull << mem[index].index;
    return need;
}

/* A size that depends on the state is told by a mask in registers, or by what lies at the operand. */
static cfg_need reads_of_size(const weaver *w, const isa_insn *in, unsigned index)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = w->run->isa->memory(in, mem);
    if ((int)index >= n || !(mem[index].bits & ISA_MEM_VARIABLE)) return (cfg_need){0, 0};
    cfg_need need = regs_of_mem(w, in, index);
    need.regs |= w->isa->size_regs;
    return need;
}

static cfg_need reads_of_node(const weaver *w, const snippet *s, const weave_insn *insn)
{
    cfg_need none = {0, 0};
    const weave_abi *abi = &w->isa->abi;
    switch (s->kind) {
    case SNIPPET_REG:
    case SNIPPET_REG_REF:
    case SNIPPET_SET_REG: return (cfg_need){WEAVE_BIT(s->reg) & w->isa->all, 0};
    case SNIPPET_FLAGS: return (cfg_need){0, w->isa->flags};
    case SNIPPET_EA:
    case SNIPPET_SET_EA:
    case SNIPPET_ELEMENT_EA:
    case SNIPPET_MEM_VALUE: return regs_of_mem(w, &insn->in, s->index);
    case SNIPPET_ACCESS_SIZE: return reads_of_size(w, &insn->in, s->index);
    case SNIPPET_TAKEN: return w->isa->branch_reads(&insn->in);
    case SNIPPET_TARGET: { /* of an indirect branch: whatever it reads */
        isa_effects fx;
        w->run->isa->effects(&insn->in, &fx);
        return (cfg_need){fx.reads & w->isa->all, 0};
    }
    case SNIPPET_ARG:
        return (cfg_need){WEAVE_BIT(s->index < abi->arg_count ? abi->args[s->index] : w->isa->isa->stack_reg), 0};
    case SNIPPET_RETVAL: return (cfg_need){WEAVE_BIT(abi->result), 0};
    case SNIPPET_SYSCALL_NR: return (cfg_need){WEAVE_BIT(abi->syscall_number), 0};
    case SNIPPET_RETADDR: return (cfg_need){abi->return_address, 0};
    case SNIPPET_CONTEXT: return everything(w);
    case SNIPPET_EXECUTES: return w->isa->predicate_reads(&insn->in);
    case SNIPPET_REP_COUNT: return (cfg_need){w->isa->count_reg, 0};
    default: return none;
    }
}

cfg_need weave_reads(const weaver *w, const snippet *s, const weave_insn *insn)
{
    if (!s) return (cfg_need){0, 0};
    cfg_need need = reads_of_node(w, s, insn);
    need = join(need, weave_reads(w, s->a, insn));
    need = join(need, weave_reads(w, s->b, insn));
    need = join(need, weave_reads(w, s->c, insn));
    for (unsigned i = 0; i < s->nargs; i++) need = join(need, weave_reads(w, s->args[i], insn));
    return need;
}

static cfg_need reads_of_list(const weaver *w, const weave_list *list, const weave_insn *insn)
{
    cfg_need need = {0, 0};
    for (const weave_insert *n = list->first; n; n = n->next) {
        need = join(need, weave_reads(w, n->code, insn));
        if (n->predicated) need = join(need, w->isa->predicate_reads(&insn->in));
    }
    return need;
}

bool weave_may_fault(const weave_isa *isa, const isa_insn *in)
{
    return in->bits & (ISA_BIT_MEM | ISA_BIT_UNKNOWN | ISA_BIT_PRIV | ISA_BIT_FP) || isa->may_fault(in);
}

cfg_need weave_wanted_at(const weaver *w, uint64_t target)
{
    cfg_need need = everything(w);
    if (w->engine->live_at && !(w->opt->stress & WEAVE_STRESS_NO_DEAD)) {
        w->engine->live_at(w->engine->arg, target, &need.regs, &need.flags);
        need.regs &= w->isa->all;
        need.flags &= w->isa->flags;
    }
    return need;
}

/* What snippets on the taken edge of a branch must leave alone. Those of another transfer stand before it:
 * it reads what it reads. */
cfg_need weave_wanted_taken(const weaver *w, const weave_insn *insn)
{
    unsigned flow = insn->in.flow;
    if (flow != ISA_FLOW_COND && flow != ISA_FLOW_COND_REG) return everything(w);
    return join(weave_wanted_at(w, insn->in.target), reads_of_list(w, &insn->taken, insn));
}

static cfg_need wanted_behind(const weaver *w, uint32_t i)
{
    cfg_need need = everything(w);
    unsigned flow = w->run->insns[i].in.flow;
    bool leaves = flow == ISA_FLOW_CALL || flow == ISA_FLOW_CALL_IND || flow == ISA_FLOW_RETURN ||
                  flow == ISA_FLOW_JUMP_IND;
    if (!leaves || !w->engine->live_behind) return need;
    w->engine->live_behind(w->engine->arg, w->run, i, &need.regs, &need.flags);
    return (cfg_need){need.regs & w->isa->all, need.flags & w->isa->flags};
}

static bool falls_through(unsigned flow)
{
    return flow != ISA_FLOW_JUMP && flow != ISA_FLOW_CALL && flow != ISA_FLOW_JUMP_IND && flow != ISA_FLOW_CALL_IND &&
           flow != ISA_FLOW_RETURN;
}

static cfg_step insn_step(weaver *w, uint32_t i)
{
    const weave_insn *insn = &w->run->insns[i];
    const weave_fx *fx = &w->fx[i];
    cfg_step s = {0};
    if (insn->elided) return s;
    s.reads = (cfg_need){fx->reads, fx->flags_read};
    s.kills = (cfg_need){fx->kills, fx->flags_kill};
    s.may_fault = weave_may_fault(w->isa, &insn->in);
    if (insn->in.flow == ISA_FLOW_NEXT) return s;
    s.exits = true;
    s.ends = !falls_through(insn->in.flow);
    s.exit = everything(w);
    bool direct = insn->in.flow == ISA_FLOW_JUMP || insn->in.flow == ISA_FLOW_COND ||
                  insn->in.flow == ISA_FLOW_COND_REG;
    if (direct) s.exit = weave_wanted_at(w, insn->in.target);
    else s.exit = wanted_behind(w, i);
    if (insn->taken.first) s.exit = weave_wanted_taken(w, insn);
    if (!direct) s.may_fault = true;
    return s;
}

weave_need weave_list_reads(const weave_run *run, const weave_insn *insn, const weave_list *list)
{
    weaver w = {.run = run, .isa = weave_isa_of(run->isa)};
    cfg_need need = reads_of_list(&w, list, insn);
    return (weave_need){need.regs, need.flags};
}

/* Do the snippets at an instruction, which read `need`, read more than it does? */
static bool shows(const weaver *w, uint32_t i, cfg_need need)
{
    need = join(need, reads_of_list(w, &w->run->insns[i].taken, &w->run->insns[i]));
    return need.regs & ~(w->fx[i].reads | w->isa->reserved) || need.flags & ~w->fx[i].flags_read;
}

static void build_steps(weaver *w, cfg_step *steps, uint32_t *count)
{
    const weave_run *run = w->run;
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        const weave_block *block = &run->blocks[insn->block];
        w->step_in[i] = n;
        cfg_need before = reads_of_list(w, &insn->before, insn);
        before = join(before, reads_of_list(w, &insn->after, insn));
        if (i == block->first) before = join(before, reads_of_list(w, &block->anywhere, insn));
        if (insn->elided) before = join(before, reads_of_list(w, &insn->taken, insn));
        if (before.regs || before.flags) steps[n++] = (cfg_step){.reads = before};
        if (shows(w, i, before)) w->out->shows = true;
        w->step[i] = n;
        steps[n++] = insn_step(w, i);
        if (insn->after.first) steps[n++] = (cfg_step){.reads = reads_of_list(w, &insn->after, insn)};
    }
    *count = n;
}

weave_fx weave_effects(const weave_isa *w, const isa_insn *in)
{
    isa_effects fx;
    w->isa->effects(in, &fx);
    /* What the program would see there is kept. */
    if (fx.flags_undefined & w->flags_unsettled) fx.flags_kill &= ~fx.flags_undefined;
    isa_regs all = w->all;
    uint32_t flags = w->flags;
    return (weave_fx){fx.reads & all,
                      fx.writes & all,
                      fx.kills & all,
                      fx.flags_read & flags,
                      (fx.flags_written | fx.flags_undefined) & flags,
                      fx.flags_kill & flags};
}

/* An upper bound of the number of steps. */
static uint32_t count_steps(const weave_run *run)
{
    uint32_t n = run->insn_count + run->block_count;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        n += (insn->before.first || insn->taken.first) + 2 * (insn->after.first != NULL);
    }
    return n;
}

bool weave_analyse(weaver *w)
{
    const weave_run *run = w->run;
    uint32_t n = run->insn_count, room = count_steps(run), count;
    inl_arena *arena = run->arena;
    w->fx = inl_arena_alloc(arena, n * sizeof *w->fx);
    w->step = inl_arena_alloc(arena, n * sizeof *w->step);
    w->step_in = inl_arena_alloc(arena, n * sizeof *w->step_in);
    w->live = inl_arena_alloc(arena, (room + 1) * sizeof *w->live);
    cfg_step *steps = inl_arena_alloc(arena, room * sizeof *steps);
    if (!w->fx || !w->step || !w->step_in || !w->live || !steps) return false;
    for (uint32_t i = 0; i < n; i++) w->fx[i] = weave_effects(w->isa, &run->insns[i].in);
    build_steps(w, steps, &count);
    const weave_insn *last = &run->insns[n - 1];
    cfg_need end = everything(w); /* not asked for where control does not get: behind a call, a return */
    if (last->elided) end = weave_wanted_at(w, last->in.target);
    else if (falls_through(last->in.flow)) end = weave_wanted_at(w, last->in.addr + last->in.len);
    w->live[count] = (cfg_live){end, end};
    cfg_liveness(steps, count, everything(w), w->live);
    for (uint32_t i = 0; w->opt->hide_dead && i <= count; i++) w->live[i].seen = w->live[i].live;
    if (w->opt->stress & WEAVE_STRESS_NO_DEAD)
        for (uint32_t i = 0; i <= count; i++) w->live[i] = (cfg_live){everything(w), everything(w)};
    w->out->entry_regs = w->live[0].seen.regs;
    w->out->entry_flags = w->live[0].seen.flags;
    return true;
}

void weave_set_point(weaver *w, uint32_t insn, bool after)
{
    const cfg_live *live = &w->live[after ? w->step[insn] + 1 : w->step_in[insn]];
    w->at = insn;
    w->after = after;
    w->need = live->seen;
    w->living = live->live;
}

static void restore_all_but(weaver *w, isa_regs parked)
{
    if (w->living.flags & w->isa->flags) weave_flags_to_hw(w);
    isa_regs back = w->living.regs & w->st.in_slot & ~(w->st.in_reg | parked);
    for (; back; back &= back - 1) weave_to_reg(w, (unsigned)__builtin_ctzll(back));
}

void weave_restore_all(weaver *w) { restore_all_but(w, 0); }

isa_regs weave_parks(const weaver *w, uint32_t i, isa_regs held)
{
    return w->engine->parks ? w->engine->parks(w->engine->arg, w->run, i, held) & ~w->fx[i].reads : 0;
}

static void at_instruction(weaver *w, uint32_t i)
{
    const cfg_live *here = &w->live[w->step[i]];
    w->at = i;
    w->after = false;
    w->need = here->seen;
    w->living = here->live;
}

bool weave_prepare_side(weaver *w, uint32_t i)
{
    const isa_insn *in = &w->run->insns[i].in;
    if (!w->opt->cold_exits || in->flow != ISA_FLOW_COND) return false;
    if (w->run->insns[i].taken.first && !weave_taken_joins(w, &w->run->insns[i])) return false;
    at_instruction(w, i);
    if (!(w->living.regs & w->st.in_slot & ~w->st.in_reg) && !weave_side_counts(w, i)) return false;
    weave_flags_to_hw(w);
    return true;
}

void weave_prepare(weaver *w, uint32_t i)
{
    const cfg_live *behind = &w->live[w->step[i] + 1];
    const weave_fx *fx = &w->fx[i];
    at_instruction(w, i);
    if (w->run->insns[i].guarded) w->living = w->need;
    if (w->run->insns[i].in.flow != ISA_FLOW_NEXT || w->run->insns[i].guarded) {
        restore_all_but(w, weave_parks(w, i, w->st.in_slot));
        return;
    }
    bool kept = fx->flags_touched && behind->seen.flags & w->isa->flags & ~fx->flags_kill;
    if (fx->flags_read || kept) weave_flags_to_hw(w);
    isa_regs regs = fx->reads | (fx->writes & ~fx->kills & behind->seen.regs);
    regs &= ~w->st.in_reg;
    for (; regs; regs &= regs - 1) weave_to_reg(w, (unsigned)__builtin_ctzll(regs));
}

void weave_executed(weaver *w, uint32_t i)
{
    const weave_fx *fx = &w->fx[i];
    if (w->run->insns[i].in.flow != ISA_FLOW_NEXT) { /* the engine's code may use the slots */
        w->st = (weave_state){w->isa->all, 0, true, false};
        weave_forget(w);
        return;
    }
    weave_forget_written(w, fx->writes);
    w->st.in_reg |= fx->writes;
    w->st.in_slot &= ~fx->writes;
    if (fx->flags_touched) {
        w->st.flags_hw = true;
        w->st.flags_slot = false;
    }
}
