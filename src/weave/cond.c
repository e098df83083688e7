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

isa_label weave_jump_unless(weaver *w, const snippet *cond)
{
    int code = direct_condition(w, cond);
    if (code >= 0) {
        weave_flags_to_hw(w);
    } else if (cond->kind == SNIPPET_BINARY && weave_is_compare(cond->op)) {
        code = (int)weave_compare_emit(w, cond);
    } else if (cond->kind == SNIPPET_ELEMENT_ACTIVE && (code = weave_element_cond(w, cond)) >= 0) {
        /* the flags tell */
    } else {
        weave_val v = weave_eval(w, cond, ISA_NO_REG);
        weave_in_reg(w, &v, 0);
        isa_label zero = w->isa->branch_if_zero(w, v.reg);
        weave_drop(w, v);
        return zero;
    }
    return w->isa->branch_unless(w->c, (unsigned)code, false);
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
}

weave_val weave_if(weaver *w, const snippet *s, unsigned hint)
{
    unsigned reg = weave_take(w, 0, hint);
    either(w, s, true, reg);
    return weave_owned(reg);
}

void weave_if_for_effect(weaver *w, const snippet *s) { either(w, s, false, 0); }

void weave_while(weaver *w, const snippet *s)
{
    weave_flags_clobber(w);
    weave_state from = w->st;
    uint64_t head = isa_here(w->c);
    isa_label end = weave_jump_unless(w, s->a);
    weave_state at_exit = w->st;
    weave_run_for_effect(w, s->b);
    weave_arm_end(w, from);
    w->isa->jump_to(w->c, head);
    w->isa->bind(w->c, end);
    w->st = at_exit;
}

void weave_predicated(weaver *w, const snippet *code)
{
    snippet choice = {.kind = SNIPPET_IF, .a = &weave_executes_node, .b = code};
    weave_if_for_effect(w, &choice);
}
