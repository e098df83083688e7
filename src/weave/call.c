/* Calls of analysis routines: the half that no instruction set need know.
 *
 * Arguments are computed into their ABI registers while the program's stack pointer is in place; what the routine
 * clobbers waits in slots (and is restored when the program needs it). What then happens to the stack, the vector
 * registers and the thread pointer is the instruction set's own (call_begin, call_end).
 */
#include "weave/weaver.h"

static void sort_arguments(weaver *w, weave_call_plan *k)
{
    for (unsigned i = 0; i < k->s->nargs; i++) {
        const snippet *a = k->s->args[i];
        bool is_real = a->kind == SNIPPET_REAL_ARG;
        if (a->kind != SNIPPET_VEC_ARG && !is_real) {
            k->ints[k->int_count++] = a;
        } else if (k->vec_count == w->isa->abi.vec_args || k->vec_count == sizeof k->vecs) {
            weave_fail(w, INL_ERR_UNSUPPORTED, "a call has too many floating-point arguments");
        } else {
            k->vec_saved |= (is_real ? 0 : 1u << a->reg) | 1u << k->vec_count;
            k->reals[k->vec_count] = is_real ? a->a : NULL;
            k->vecs[k->vec_count++] = a->reg;
        }
    }
    if (k->s->size) k->vec_saved |= 1; /* the result */
}

static bool wants_context(const snippet *s)
{
    for (unsigned i = 0; i < s->nargs; i++)
        if (s->args[i]->kind == SNIPPET_CONTEXT) return true;
    return false;
}

static unsigned in_registers(const weaver *w, const weave_call_plan *k)
{
    return k->int_count < w->isa->abi.arg_count ? k->int_count : w->isa->abi.arg_count;
}

/* What has to be saved; the table's function knows what the call itself needs. */
static void plan(weaver *w, weave_call_plan *k)
{
    const weave_routine *r = k->routine;
    const weave_abi *abi = &w->isa->abi;
    bool all = r->unknown || w->opt->save_all;
    k->whole = all || wants_context(k->s);
    k->tls = r->tls || all;
    k->fp = r->fp || k->whole;
    k->flags = r->modes || all;
    k->clobbered = k->whole ? abi->caller_saved : r->regs;
    if (!k->whole) k->vec_saved |= r->vecs;
    for (unsigned i = 0; i < in_registers(w, k); i++) k->clobbered |= WEAVE_BIT(abi->args[i]);
    for (unsigned i = 0; i < k->s->nargs; i++)
        if (k->s->args[i]->kind == SNIPPET_REG_REF) k->refs |= WEAVE_BIT(k->s->args[i]->reg);
    w->isa->call_plan(w, k);
}

/* Variables that were in register `from` (or, where that is none, in the temporary) are in `to` from now on. */
static void move_locals(weaver *w, unsigned from, unsigned to, unsigned temp)
{
    for (unsigned i = 0; i < w->local_count; i++) {
        struct weave_local *l = &w->locals[i];
        if (l->reg != from || (from == ISA_NO_REG && l->temp != temp)) continue;
        l->reg = (uint8_t)to;
        l->temp = (uint8_t)temp;
    }
}

/* Values that an enclosing expression still wants, out of the way. */
static void set_outer_aside(weaver *w, weave_call_plan *k)
{
    k->outer = w->locked & k->clobbered;
    k->outer_prog = k->outer & w->st.in_reg;
    for (isa_regs left = k->outer; left; left &= left - 1) {
        unsigned r = (unsigned)__builtin_ctzll(left), temp = weave_temp_take(w);
        weave_temp_store(w, temp, r);
        move_locals(w, r, ISA_NO_REG, temp);
        k->outer_temp[r] = (uint8_t)temp;
        k->outer_lock[r] = w->lock[r];
        w->lock[r] = 0;
    }
    w->locked &= ~k->outer;
}

static void take_outer_back(weaver *w, weave_call_plan *k)
{
    for (isa_regs left = k->outer; left; left &= left - 1) {
        unsigned r = (unsigned)__builtin_ctzll(left);
        weave_temp_load(w, r, k->outer_temp[r]);
        move_locals(w, ISA_NO_REG, r, k->outer_temp[r]);
        weave_temp_drop(w, k->outer_temp[r]);
        w->lock[r] = k->outer_lock[r];
    }
    w->locked |= k->outer;
    w->st.in_reg |= k->outer_prog & ~k->refs;
}

static weave_val reference(weaver *w, unsigned reg, unsigned hint)
{
    if (reg >= w->isa->reg_count) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "this register cannot be passed by reference");
        return weave_imm(0);
    }
    if (reg == w->isa->isa->stack_reg) weave_slot_store(w, reg);
    else weave_to_slot(w, reg);
    unsigned t = weave_take(w, 0, hint);
    w->isa->frame_address(w->c, t, weave_slot_at(w, reg));
    return weave_owned(t);
}

/* It may be where it is wanted already. */
static bool is_in_place(const weaver *w, const snippet *s, unsigned reg)
{
    const weave_abi *abi = &w->isa->abi;
    bool same = s->kind == SNIPPET_ARG ? s->index < abi->arg_count && abi->args[s->index] == reg
                                       : s->kind == SNIPPET_REG && s->reg == reg;
    return same && w->st.in_reg & WEAVE_BIT(reg) && !w->lock[reg];
}

static weave_val argument(weaver *w, const snippet *s, unsigned hint)
{
    if (hint < w->isa->reg_count && is_in_place(w, s, hint)) {
        weave_lock(w, hint);
        return (weave_val){WEAVE_PROG, (uint8_t)hint, 0, 0};
    }
    return s->kind == SNIPPET_REG_REF ? reference(w, s->reg, hint) : weave_eval(w, s, hint);
}

static uint8_t in_temp(weaver *w, weave_val v)
{
    unsigned temp = weave_temp_take(w);
    weave_in_reg(w, &v, 0);
    weave_temp_store(w, temp, v.reg);
    weave_drop(w, v);
    return (uint8_t)temp;
}

static void arguments(weaver *w, weave_call_plan *k)
{
    const weave_abi *abi = &w->isa->abi;
    for (unsigned i = 0; i < k->vec_count && !w->status; i++)
        if (k->reals[i]) k->real_temp[i] = in_temp(w, weave_eval(w, k->reals[i], ISA_NO_REG));
    for (unsigned i = abi->arg_count; i < k->int_count && !w->status; i++)
        k->stack_temp[k->stack_args++] = in_temp(w, argument(w, k->ints[i], ISA_NO_REG));
    for (unsigned i = 0; i < in_registers(w, k) && !w->status; i++) {
        weave_val v = argument(w, k->ints[i], abi->args[i]);
        weave_into(w, &v, abi->args[i]);
    }
}

static void claim_clobbered(weaver *w, const weave_call_plan *k)
{
    for (isa_regs left = k->clobbered; left; left &= left - 1) weave_claim(w, (unsigned)__builtin_ctzll(left));
}

static void drop_arguments(weaver *w, weave_call_plan *k)
{
    for (unsigned i = 0; i < in_registers(w, k); i++) weave_unlock(w, w->isa->abi.args[i]);
    for (unsigned i = 0; i < k->stack_args; i++) weave_temp_drop(w, k->stack_temp[i]);
    for (unsigned i = 0; i < k->vec_count; i++)
        if (k->reals[i]) weave_temp_drop(w, k->real_temp[i]);
}

static void take_references_back(weaver *w, const weave_call_plan *k)
{
    unsigned stack = w->isa->isa->stack_reg;
    w->st.in_reg &= ~k->refs;
    if (!(k->refs & WEAVE_BIT(stack))) return;
    weave_slot_load(w, stack, stack);
    w->st.in_reg |= WEAVE_BIT(stack);
    w->st.in_slot &= ~WEAVE_BIT(stack);
}

weave_val weave_call(weaver *w, const snippet *s, bool wanted)
{
    weave_call_plan k = {.s = s, .routine = weave_routine_of(s->fn)};
    weave_val result = weave_imm(0);
    if (!k.routine) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return result;
    }
    if (weave_inline(w, s, k.routine, wanted, &result)) return result;
    if (s->value) weave_fail(w, INL_ERR_UNSUPPORTED, "a call of which a part is left out cannot be inlined");
    sort_arguments(w, &k);
    plan(w, &k);
    set_outer_aside(w, &k);
    arguments(w, &k);
    if (k.routine->flags && !k.flags) weave_flags_clobber(w);
    if (k.fp) k.fp_temp = weave_temp_take(w);
    if (w->status) return weave_imm(0);
    /* A slot that lends its register to the routine must not be counted on to hold the old value,
     * so the argument registers are unlocked only behind the call. */
    claim_clobbered(w, &k);
    w->isa->call_begin(w, &k);
    drop_arguments(w, &k);
    if (wanted) result = w->isa->call_result(w, &k);
    w->isa->call_end(w, &k);
    if (k.fp) weave_temp_drop(w, k.fp_temp);
    take_references_back(w, &k);
    take_outer_back(w, &k);
    return result;
}
