/* Conditionals and loops. An arm may spill, but gives back at its end what the code before the
 * branch had in place, so that both ways meet in one state; the cost falls on the arm that spills. */
#include "weave/weaver.h"

const snippet weave_executes_node = {.kind = SNIPPET_EXECUTES};

static int direct_condition(weaver *w, const snippet *s)
{
    const isa_insn *in = &weave_here(w)->in;
    if (s->kind == SNIPPET_TAKEN && in->flow == ISA_FLOW_COND) return in->cond;
    if (s->kind == SNIPPET_EXECUTES) return w->isa->predicate(in);
    return -1;
}

static isa_label jump_if_off(weaver *w, const snippet *s)
{
    weave_output *out = w->out;
    weave_switch n = {.number = s->index, .index = w->at};
    if (!w->isa->jump_if_off) weave_fail(w, INL_ERR_UNSUPPORTED, "code cannot be switched on this processor");
    if (out->switch_count == w->switch_room) {
        uint32_t room = w->switch_room ? 2 * w->switch_room : 4;
        weave_switch *bigger = inl_arena_alloc(w->run->arena, room * sizeof *bigger);
        if (!bigger) weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        if (w->status) return (isa_label){0};
        for (uint32_t i = 0; i < out->switch_count; i++) bigger[i] = out->switches[i];
        out->switches = bigger;
        w->switch_room = room;
    }
    isa_label off = w->isa->jump_if_off(w->c, *(const bool *)(uintptr_t)s->value, &n);
    out->switches[out->switch_count++] = n;
    return off;
}

/* A value in a register that can be compared with zero at the least cost. */
static weave_val for_zero(weaver *w, const snippet *cond)
{
    unsigned best = w->isa->zero_reg;
    bool asks = best < w->isa->reg_count && !weave_flags_free(w);
    weave_val v = weave_eval(w, cond, asks ? best : ISA_NO_REG);
    weave_in_reg(w, &v, 0);
    if (asks && v.reg != best && !w->lock[best] && !weave_flags_free(w)) weave_into(w, &v, best);
    return v;
}

/* A jump that is made where the condition holds, or where it does not. */
static isa_label jump_where(weaver *w, const snippet *cond, bool holds)
{
    int code = direct_condition(w, cond);
    if (code >= 0) {
        weave_flags_to_hw(w);
    } else if (cond->kind == SNIPPET_BINARY && weave_is_compare(cond->op)) {
        code = (int)weave_compare_emit(w, cond);
    } else if (cond->kind == SNIPPET_ELEMENT_ACTIVE && (code = weave_element_cond(w, cond)) >= 0) {
        /* the flags tell */
    } else {
        weave_val v = for_zero(w, cond);
        isa_label to = holds ? w->isa->branch_if_not_zero(w, v.reg) : w->isa->branch_if_zero(w, v.reg);
        weave_drop(w, v);
        return to;
    }
    if (holds) return w->isa->branch(w->c, (unsigned)code, false);
    return w->isa->branch_unless(w->c, (unsigned)code, false);
}

isa_label weave_jump_unless(weaver *w, const snippet *cond)
{
    return cond->kind == SNIPPET_SWITCH ? jump_if_off(w, cond) : jump_where(w, cond, false);
}

static void move_to(weaver *w, unsigned reg, const snippet *s)
{
    weave_val v = weave_eval(w, s, ISA_NO_REG);
    if (v.kind == WEAVE_IMM) {
        w->isa->set(w->c, reg, v.imm);
    } else {
        weave_in_reg(w, &v, 0);
        w->isa->move(w->c, reg, v.reg);
    }
    weave_drop(w, v);
}

static void arm(weaver *w, const snippet *s, bool wanted, unsigned reg, weave_state from)
{
    if (wanted && s) move_to(w, reg, s);
    else if (wanted) w->isa->set(w->c, reg, 0);
    else weave_run_for_effect(w, s);
    weave_arm_end(w, from);
}

static void either(weaver *w, const snippet *s, bool wanted, unsigned reg)
{
    isa_label no = weave_jump_unless(w, s->a);
    weave_state from = w->st;
    w->conditional++;
    arm(w, s->b, wanted, reg, from);
    weave_state first = w->st;
    if (s->c || wanted) {
        isa_label end = w->isa->jump(w->c, false);
        w->isa->bind(w->c, no);
        w->st = from;
        arm(w, s->c, wanted, reg, from);
        w->isa->bind(w->c, end);
    } else {
        w->isa->bind(w->c, no);
        w->st = from;
    }
    w->st = weave_meet(w->st, first);
    w->conditional--;
}

weave_val weave_if(weaver *w, const snippet *s, unsigned hint)
{
    unsigned reg = weave_take(w, 0, hint);
    either(w, s, true, reg);
    return weave_owned(reg);
}

/* Is there a call in it that is not written in place? */
static bool calls_out(const snippet *s)
{
    if (!s) return false;
    const weave_routine *r = s->kind == SNIPPET_CALL ? weave_routine_of(s->fn) : NULL;
    if (r && !r->body_len) return true;
    for (unsigned i = 0; i < s->nargs; i++)
        if (calls_out(s->args[i])) return true;
    return calls_out(s->a) || calls_out(s->b) || calls_out(s->c);
}

/* An arm that calls goes behind the run where the other one does not: a condition is there to spare the call. */
static bool goes_later(const weaver *w, const snippet *s)
{
    if (w->engine->cold || !w->opt->cold_exits || w->depth || w->loop || s->a->kind == SNIPPET_SWITCH) return false;
    return !snippet_has(s->b, SNIPPET_SET_REG) && calls_out(s->b) && !calls_out(s->c);
}

void weave_if_for_effect(weaver *w, const snippet *s)
{
    if (!goes_later(w, s)) {
        either(w, s, false, 0);
        return;
    }
    isa_label yes = jump_where(w, s->a, true);
    weave_later *later = weave_put_later(w, s->b, yes);
    weave_state from = w->st;
    weave_forget(w);
    w->conditional++;
    arm(w, s->c, false, 0, from);
    w->conditional--;
    if (later) later->back = isa_here(w->c);
}

/* A way out of a loop: a jump in front of it, which every `break` jumps back to, in the state in which the loop
 * is entered. */
typedef struct weave_loop {
    const struct weave_loop *outer;
    weave_state from;
    uint64_t out;
} weave_loop;

static isa_label begin_loop(weaver *w, weave_loop *l)
{
    isa_label in = w->isa->jump(w->c, true);
    l->out = isa_here(w->c);
    isa_label out = w->isa->jump(w->c, false);
    w->isa->bind(w->c, in);
    l->outer = w->loop, l->from = w->st;
    w->loop = l;
    return out;
}

static bool breaks(const snippet *s)
{
    if (!s || s->kind == SNIPPET_WHILE) return false; /* an inner one's is its own */
    return s->kind == SNIPPET_BREAK || breaks(s->a) || breaks(s->b) || breaks(s->c);
}

void weave_while(weaver *w, const snippet *s)
{
    weave_loop loop;
    weave_flags_clobber(w);
    bool has_break = breaks(s->b);
    isa_label out = has_break ? begin_loop(w, &loop) : (isa_label){0};
    weave_state from = w->st;
    w->conditional++;
    uint64_t head = isa_here(w->c);
    isa_label end = weave_jump_unless(w, s->a);
    weave_state at_exit = w->st;
    weave_run_for_effect(w, s->b);
    weave_arm_end(w, from);
    w->isa->jump_to(w->c, head);
    w->isa->bind(w->c, end);
    w->st = at_exit;
    w->conditional--;
    if (!has_break) return;
    weave_arm_end(w, from);
    w->isa->bind(w->c, out);
    w->loop = loop.outer;
}

void weave_break(weaver *w)
{
    if (!w->loop) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a break without a loop");
        return;
    }
    weave_state here = w->st; /* for what stands behind, though nothing leads there */
    weave_arm_end(w, w->loop->from);
    w->isa->jump_to(w->c, w->loop->out);
    w->st = here;
}

static struct weave_local *find_local(weaver *w, uint32_t index)
{
    for (unsigned i = w->local_count; i--;)
        if (w->locals[i].index == index) return &w->locals[i];
    weave_fail(w, INL_ERR_UNSUPPORTED, "a local variable that was not declared");
    return &w->locals[0];
}

/* Where a condition will want the register that is compared without flags, a variable leaves it alone. */
static unsigned place_of_local(weaver *w, const snippet *s)
{
    unsigned zero = w->isa->zero_reg;
    if (zero >= w->isa->reg_count || weave_flags_free(w) || !snippet_has(s->b, SNIPPET_IF)) return ISA_NO_REG;
    isa_regs others = w->isa->all & ~(w->isa->reserved | w->locked | WEAVE_BIT(zero));
    isa_regs read = weave_reads(w, s->a, weave_here(w)).regs; /* a call of the program's reads all */
    if (!(others & ~read)) return ISA_NO_REG;
    unsigned reg = weave_take(w, WEAVE_BIT(zero) | read, ISA_NO_REG);
    weave_unlock(w, reg);
    return reg;
}

/* In the register it is computed in, where nobody assigns to it and few are pending. */
static weave_val let_in_reg(weaver *w, const snippet *s, bool wanted, unsigned hint)
{
    weave_val v = weave_eval(w, s->a, place_of_local(w, s)), result = weave_imm(0);
    weave_in_reg(w, &v, 0);
    w->locals[w->local_count++] = (struct weave_local){.index = s->index, .reg = v.reg};
    if (wanted) result = weave_eval(w, s->b, hint);
    else weave_run_for_effect(w, s->b);
    w->local_count--;
    weave_drop(w, v);
    return result;
}

static bool lets_in_reg(const weaver *w, const snippet *s)
{
    enum { FEW = 3 };
    return __builtin_popcountll(w->locked) < FEW && !w->depth && !snippet_has(s->b, SNIPPET_SET_LOCAL) &&
           !snippet_has(s->b, SNIPPET_SET_REG) && !snippet_has(s->b, SNIPPET_APPEND);
}

static void store_local(weaver *w, unsigned temp, const snippet *value)
{
    weave_val v = weave_eval(w, value, ISA_NO_REG);
    weave_in_reg(w, &v, 0);
    weave_temp_store(w, temp, v.reg);
    weave_drop(w, v);
}

weave_val weave_let(weaver *w, const snippet *s, bool wanted, unsigned hint)
{
    if (w->local_count == SNIPPET_MAX_LOCALS)
        weave_fail(w, INL_ERR_UNSUPPORTED, "a snippet has too many local variables");
    if (w->status) return weave_imm(0);
    if (lets_in_reg(w, s)) return let_in_reg(w, s, wanted, hint);
    unsigned temp = weave_temp_take(w);
    store_local(w, temp, s->a);
    w->locals[w->local_count++] = (struct weave_local){s->index, (uint8_t)temp, ISA_NO_REG};
    weave_val v = weave_imm(0);
    if (wanted) v = weave_eval(w, s->b, hint);
    else weave_run_for_effect(w, s->b);
    w->local_count--;
    weave_temp_drop(w, temp);
    return v;
}

weave_val weave_local(weaver *w, const snippet *s, unsigned hint)
{
    const struct weave_local *l = find_local(w, s->index);
    if (l->reg < w->isa->reg_count) {
        weave_lock(w, l->reg);
        return (weave_val){WEAVE_PROG, l->reg, 0, 0};
    }
    unsigned reg = weave_take(w, 0, hint);
    weave_temp_load(w, reg, l->temp);
    return weave_owned(reg);
}

void weave_set_local(weaver *w, const snippet *s) { store_local(w, find_local(w, s->index)->temp, s->a); }

void weave_predicated(weaver *w, const snippet *code)
{
    snippet choice = {.kind = SNIPPET_IF, .a = &weave_executes_node, .b = code};
    weave_if_for_effect(w, &choice);
}
