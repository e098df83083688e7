/* Expressions: a value is a constant, a scratch register, a register of the program that is only
 * looked at, or parked in a frame temporary while registers are short. Values are 64 bits. Operands
 * are evaluated from left to right. */
#include "weave/weaver.h"

static unsigned locked_count(const weaver *w) { return (unsigned)__builtin_popcountll(w->locked); }

void weave_drop(weaver *w, weave_val v)
{
    if (v.kind == WEAVE_REG || v.kind == WEAVE_PROG) weave_unlock(w, v.reg);
    if (v.kind == WEAVE_TEMP) weave_temp_drop(w, v.temp);
}

void weave_park(weaver *w, weave_val *v)
{
    if ((v->kind != WEAVE_REG && v->kind != WEAVE_PROG) || locked_count(w) < w->isa->park_from) return;
    unsigned temp = weave_temp_take(w);
    weave_temp_store(w, temp, v->reg);
    weave_drop(w, *v);
    *v = (weave_val){WEAVE_TEMP, 0, (uint8_t)temp, 0};
}

void weave_own(weaver *w, weave_val *v, isa_regs avoid, unsigned hint)
{
    if (v->kind == WEAVE_REG && w->lock[v->reg] == 1 && !(avoid & WEAVE_BIT(v->reg))) return;
    unsigned reg = weave_take(w, avoid, hint);
    if (v->kind == WEAVE_IMM) w->isa->set(w->c, reg, v->imm);
    else if (v->kind == WEAVE_TEMP) weave_temp_load(w, reg, v->temp);
    else w->isa->move(w->c, reg, v->reg);
    weave_drop(w, *v);
    *v = (weave_val){WEAVE_REG, (uint8_t)reg, 0, 0};
}

void weave_in_reg(weaver *w, weave_val *v, isa_regs avoid)
{
    bool held = v->kind == WEAVE_REG || v->kind == WEAVE_PROG;
    if (!held || avoid & WEAVE_BIT(v->reg)) weave_own(w, v, avoid, ISA_NO_REG);
}

/* `reg` must not be locked by another value. */
void weave_into(weaver *w, weave_val *v, unsigned reg)
{
    if (v->kind == WEAVE_REG && v->reg == reg) return;
    weave_claim(w, reg);
    weave_lock(w, reg);
    if (v->kind == WEAVE_IMM) w->isa->set(w->c, reg, v->imm);
    else if (v->kind == WEAVE_TEMP) weave_temp_load(w, reg, v->temp);
    else if (v->reg != reg) w->isa->move(w->c, reg, v->reg);
    weave_drop(w, *v);
    *v = (weave_val){WEAVE_REG, (uint8_t)reg, 0, 0};
}

/* The program's value of a register. It is brought back for good where the instruction is about to ask for it. */
weave_val weave_reg_value(weaver *w, unsigned reg, unsigned hint)
{
    if (!w->after && w->fx[w->at].reads & WEAVE_BIT(reg) && !w->lock[reg]) weave_to_reg(w, reg);
    if (w->st.in_reg & WEAVE_BIT(reg)) {
        if (!w->sets_regs && !(w->isa->copied_first & WEAVE_BIT(reg))) {
            weave_lock(w, reg);
            return (weave_val){WEAVE_PROG, (uint8_t)reg, 0, 0};
        }
        unsigned copy = weave_take(w, WEAVE_BIT(reg), hint);
        w->isa->move(w->c, copy, reg);
        return (weave_val){WEAVE_REG, (uint8_t)copy, 0, 0};
    }
    unsigned r = weave_take(w, 0, hint);
    weave_slot_load(w, r, reg);
    return (weave_val){WEAVE_REG, (uint8_t)r, 0, 0};
}

static weave_val load_frame(weaver *w, int32_t offset, unsigned hint)
{
    unsigned r = weave_take(w, 0, hint);
    w->isa->frame_load(w, r, offset);
    return (weave_val){WEAVE_REG, (uint8_t)r, 0, 0};
}

static weave_val thread_pointer(weaver *w, unsigned hint)
{
    unsigned r = weave_take(w, 0, hint);
    w->isa->thread_pointer(w->c, r);
    return weave_owned(r);
}

weave_val weave_load(weaver *w, weave_val at, int32_t disp, unsigned size, bool is_signed, unsigned hint)
{
    weave_in_reg(w, &at, 0);
    unsigned r = at.kind == WEAVE_REG && w->lock[at.reg] == 1 ? at.reg : weave_take(w, 0, hint);
    w->isa->load(w->c, size, is_signed && size < 8, r, at.reg, disp);
    if (r != at.reg) weave_drop(w, at);
    return (weave_val){WEAVE_REG, (uint8_t)r, 0, 0};
}

/* An address as a displacement and what it is counted from. */
static const snippet *split_address(const weaver *w, const snippet *at, int32_t *disp)
{
    bool splits = at->kind == SNIPPET_BINARY && at->op == SNIPPET_ADD && at->b->kind == SNIPPET_CONST &&
                  w->isa->reaches((int64_t)at->b->value);
    *disp = splits ? (int32_t)at->b->value : 0;
    return splits ? at->a : at;
}

static weave_val eval_load(weaver *w, const snippet *s, unsigned hint)
{
    int32_t disp;
    const snippet *at = split_address(w, s->a, &disp);
    return weave_load(w, weave_eval(w, at, hint), disp, s->size, s->is_signed, hint);
}

static weave_val eval_store(weaver *w, const snippet *s)
{
    int32_t disp;
    weave_val at = weave_eval(w, split_address(w, s->a, &disp), ISA_NO_REG);
    if (s->b->kind != SNIPPET_CONST) weave_park(w, &at);
    weave_val v = weave_eval(w, s->b, ISA_NO_REG);
    weave_in_reg(w, &at, 0);
    bool done = v.kind == WEAVE_IMM && w->isa->store_constant(w->c, s->size, at.reg, disp, v.imm);
    if (!done) {
        weave_in_reg(w, &v, 0);
        w->isa->store(w->c, s->size, at.reg, disp, v.reg);
    }
    weave_drop(w, v);
    weave_drop(w, at);
    return weave_imm(0);
}

static weave_val eval_add_to(weaver *w, const snippet *s)
{
    weave_val at = weave_eval(w, s->a, ISA_NO_REG);
    if (s->b->kind != SNIPPET_CONST) weave_park(w, &at);
    weave_val v = weave_eval(w, s->b, ISA_NO_REG);
    weave_own(w, &v, 0, ISA_NO_REG);
    weave_in_reg(w, &at, WEAVE_BIT(v.reg));
    w->isa->add_to(w, s->size, at.reg, v.reg);
    weave_drop(w, at);
    return v;
}

static weave_val eval_set_reg(weaver *w, const snippet *s)
{
    unsigned reg = s->reg;
    if (reg >= w->isa->reg_count) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "this register cannot be assigned");
        return weave_imm(0);
    }
    weave_val v = weave_eval(w, s->a, ISA_NO_REG);
    weave_in_reg(w, &v, 0);
    /* Its place stays what it is where the other way past this code has left it there. */
    bool in_place = w->conditional && w->st.in_slot & WEAVE_BIT(reg);
    if (!in_place && !(w->st.in_reg & WEAVE_BIT(reg)) && !w->lock[reg]) { /* junk is in the register */
        if (v.reg != reg) w->isa->move(w->c, reg, v.reg);
        w->st.in_reg |= WEAVE_BIT(reg);
        w->st.in_slot &= ~WEAVE_BIT(reg);
        weave_drop(w, v);
        return weave_imm(0);
    }
    if (w->st.in_slot & WEAVE_BIT(reg)) w->isa->frame_store(w, weave_slot_at(w, reg), v.reg);
    if (w->st.in_reg & WEAVE_BIT(reg) && v.reg != reg) w->isa->move(w->c, reg, v.reg);
    weave_drop(w, v);
    return weave_imm(0);
}

static weave_val eval_leaf(weaver *w, const snippet *s, unsigned hint)
{
    const isa_insn *in = &weave_here(w)->in;
    switch (s->kind) {
    case SNIPPET_CONST: return weave_imm(s->value);
    case SNIPPET_REG:
        if (s->reg < w->isa->reg_count) return weave_reg_value(w, s->reg, hint);
        weave_fail(w, INL_ERR_UNSUPPORTED, "this register cannot be read");
        return weave_imm(0);
    case SNIPPET_PC: return weave_imm(in->addr);
    case SNIPPET_FALLTHROUGH: return weave_imm(in->addr + in->len);
    case SNIPPET_THREAD_DATA: return load_frame(w, w->isa->frame.locals, hint);
    case SNIPPET_OWN_CYCLES: return load_frame(w, w->isa->frame.own_cycles, hint);
    case SNIPPET_THREAD: return load_frame(w, w->isa->frame.thread_number, hint);
    case SNIPPET_COUNTER:
        return load_frame(w, weave_counter_at(w->isa->frame.counters, s->index, (unsigned)s->value), hint);
    case SNIPPET_RETVAL: return weave_reg_value(w, w->isa->abi.result, hint);
    case SNIPPET_SYSCALL_NR: return weave_reg_value(w, w->isa->abi.syscall_number, hint);
    case SNIPPET_RETADDR: return w->isa->return_address(w, hint);
    case SNIPPET_CYCLES: return w->isa->cycles(w);
    case SNIPPET_THREAD_POINTER: return thread_pointer(w, hint);
    case SNIPPET_FLAGS: return w->isa->flags_value(w, hint);
    case SNIPPET_EA: return weave_ea(w, s->index, hint);
    case SNIPPET_ELEMENT_EA: return weave_element_ea(w, s, hint);
    case SNIPPET_ELEMENT_ACTIVE: return weave_element_active(w, s, hint);
    case SNIPPET_ACCESS_SIZE: return weave_access_size(w, s->index);
    case SNIPPET_MEM_VALUE: return weave_mem_value(w, s, hint);
    case SNIPPET_TAKEN: return weave_taken(w, hint);
    case SNIPPET_TARGET: return weave_target(w, hint);
    case SNIPPET_EXECUTES: return weave_executes(w, hint);
    case SNIPPET_REP_COUNT: return weave_rep_count(w, hint);
    case SNIPPET_ARG: return weave_arg(w, s, hint);
    case SNIPPET_CONTEXT: return w->isa->context(w, hint);
    default: weave_fail(w, INL_ERR_UNSUPPORTED, "a snippet node that has no value here"); return weave_imm(0);
    }
}

const weave_saved *weave_saved_find(const weaver *w, const snippet *s)
{
    unsigned kind = s->kind == SNIPPET_MEM_VALUE ? SNIPPET_EA : s->kind;
    for (unsigned k = 0; k < w->saved_count; k++)
        if (w->saved[k].kind == kind && w->saved[k].index == s->index && w->saved[k].value == s->value)
            return &w->saved[k];
    return NULL;
}

bool weave_saved_value(weaver *w, const snippet *s, unsigned hint, weave_val *v)
{
    const weave_saved *saved = w->after ? weave_saved_find(w, s) : NULL;
    if (!saved) return false;
    unsigned r = weave_take(w, 0, hint);
    weave_temp_load(w, r, saved->temp);
    *v = (weave_val){WEAVE_REG, (uint8_t)r, 0, 0};
    return true;
}

weave_val weave_eval(weaver *w, const snippet *s, unsigned hint)
{
    weave_val v;
    if (w->status) return weave_imm(0);
    if (w->saved_count && s->kind != SNIPPET_MEM_VALUE && weave_saved_value(w, s, hint, &v)) return v;
    switch (s->kind) {
    case SNIPPET_LOAD: return eval_load(w, s, hint);
    case SNIPPET_STORE: return eval_store(w, s);
    case SNIPPET_ADD_TO: return eval_add_to(w, s);
    case SNIPPET_SET_REG: return eval_set_reg(w, s);
    case SNIPPET_SET_EA: weave_place_set(w, s); return weave_imm(0);
    case SNIPPET_BINARY: return weave_binary(w, s, hint);
    case SNIPPET_UNARY: return weave_unary(w, s, hint);
    case SNIPPET_IF: return weave_if(w, s, hint);
    case SNIPPET_WHILE: weave_while(w, s); return weave_imm(0);
    case SNIPPET_SEQ: weave_run_for_effect(w, s->a); return weave_eval(w, s->b, hint);
    case SNIPPET_COUNT: weave_count_add(w, s); return weave_imm(0);
    case SNIPPET_APPEND: weave_append(w, s); return weave_imm(0);
    case SNIPPET_LET: return weave_let(w, s, true, hint);
    case SNIPPET_LOCAL: return weave_local(w, s, hint);
    case SNIPPET_SET_LOCAL: weave_set_local(w, s); return weave_imm(0);
    case SNIPPET_CALL: return weave_call(w, s, true);
    default: return eval_leaf(w, s, hint);
    }
}

/* Nodes without effect of their own whose value nobody wants are not computed. */
void weave_run_for_effect(weaver *w, const snippet *s)
{
    if (!s || w->status) return;
    switch (s->kind) {
    case SNIPPET_SEQ:
        weave_run_for_effect(w, s->a);
        weave_run_for_effect(w, s->b);
        return;
    case SNIPPET_CALL: weave_drop(w, weave_call(w, s, false)); return;
    case SNIPPET_IF: weave_if_for_effect(w, s); return;
    case SNIPPET_BREAK: weave_break(w); return;
    case SNIPPET_LET: weave_let(w, s, false, ISA_NO_REG); return;
    case SNIPPET_LOCAL: return;
    case SNIPPET_LOAD: weave_drop(w, weave_eval(w, s, ISA_NO_REG)); return;
    case SNIPPET_BINARY:
        if (s->op == SNIPPET_LAND || s->op == SNIPPET_LOR) {
            weave_drop(w, weave_eval(w, s, ISA_NO_REG));
            return;
        }
        weave_run_for_effect(w, s->a);
        weave_run_for_effect(w, s->b);
        return;
    case SNIPPET_UNARY: weave_run_for_effect(w, s->a); return;
    default:
        if (s->kind < SNIPPET_LOAD) return;
        weave_drop(w, weave_eval(w, s, ISA_NO_REG));
    }
}
