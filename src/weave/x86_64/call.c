/* Calls of analysis routines.
 *
 * Arguments are computed into their ABI registers while the program's stack pointer is in place; what
 * the routine clobbers waits in slots (and is restored when the program needs it); then the stack is
 * switched to the thread's private one. In the frame, in_tool is set from before the switch to after
 * the switch back, so that a signal handler can tell.
 *
 *   [ in_tool, rsp saved ][ tool_stack ][ pushf, plain flags ][ stack arguments ][ vector state saved ]
 *   [ floating-point arguments, out of the saved registers ]
 *   [ FS base swapped ][ call ][ ... all of it undone in reverse ]
 *
 * Vector registers that are saved one by one are written by SSE instructions only, which leave what is above the
 * low 16 bytes alone: those are saved, on every processor. (What writes more is not analysed, see clobber.c.)
 * What a routine that could not be analysed may touch is saved wholesale: the vector state, in the way of the
 * processor at hand, whichever the code was woven on; FS base, flags with
 * the direction and the alignment flag. It finds the floating-point environment that the ABI promises.
 */
#include "weave/x86_64/weaver.h"

enum { ARG_REGS = 6, VEC_ARGS = 8, VECS = 16, DEFAULT_MXCSR = 0x1f80, PLAIN_FLAGS = 2 };
static const uint8_t arg_regs[ARG_REGS] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9};

typedef struct call {
    const snippet *s;
    const weave_routine *routine;
    uint16_t clobbered;
    bool xsave, tls, mxcsr, pushf, far;
    uint16_t refs;                         /* registers handed over by reference */
    const snippet *ints[SNIPPET_MAX_ARGS]; /* arguments in general registers and on the stack */
    uint8_t vecs[VEC_ARGS];                /* vector registers that go to xmm0, xmm1, ... */
    unsigned int_count, vec_count;
    uint32_t vec_saved; /* vector registers that are saved one by one */
    uint8_t outer_lock[X86_REGS], outer_temp[X86_REGS];
    uint16_t outer, outer_prog; /* pending values kept over the call, and those in_reg */
    uint8_t stack_temp[SNIPPET_MAX_ARGS];
    unsigned stack_args, mxcsr_temp;
} call;

static weave_val owned(unsigned reg) { return (weave_val){WEAVE_REG, (uint8_t)reg, 0, 0}; }

static bool wants(const call *k, unsigned kind)
{
    for (unsigned i = 0; i < k->s->nargs; i++)
        if (k->s->args[i]->kind == kind) return true;
    return false;
}

static void sort_arguments(weaver *w, call *k)
{
    for (unsigned i = 0; i < k->s->nargs; i++) {
        const snippet *a = k->s->args[i];
        if (a->kind != SNIPPET_VEC_ARG) {
            k->ints[k->int_count++] = a;
        } else if (k->vec_count == VEC_ARGS) {
            weave_fail(w, INL_ERR_UNSUPPORTED, "a call has too many floating-point arguments");
        } else {
            k->vec_saved |= 1u << a->reg | 1u << k->vec_count;
            k->vecs[k->vec_count++] = a->reg;
        }
    }
}

static void plan(weaver *w, call *k)
{
    const weave_routine *r = k->routine;
    int64_t distance = (int64_t)((uint64_t)(uintptr_t)k->s->fn - x86_here(w->c));
    bool all = r->unknown || w->opt->use_xsave_all;
    k->far = distance > 0x7ff00000 || distance < -0x7ff00000;
    k->xsave = all || wants(k, SNIPPET_CONTEXT);
    k->tls = r->tls || all;
    k->mxcsr = r->mxcsr || k->xsave;
    k->pushf = r->strings || all;
    k->clobbered = k->xsave ? WEAVE_CALLER_SAVED : r->regs;
    if (!k->xsave) k->vec_saved |= r->vecs;
    for (unsigned i = 0; i < k->int_count && i < ARG_REGS; i++) k->clobbered |= (uint16_t)WEAVE_BIT(arg_regs[i]);
    if (k->far) k->clobbered |= WEAVE_BIT(X86_RAX);
    if (k->tls) k->clobbered |= WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RCX);
    for (unsigned i = 0; i < k->s->nargs; i++)
        if (k->s->args[i]->kind == SNIPPET_REG_REF) k->refs |= (uint16_t)WEAVE_BIT(k->s->args[i]->reg);
}

/* Values that an enclosing expression still wants, out of the way. */
static void set_outer_aside(weaver *w, call *k)
{
    for (unsigned r = 0; r < X86_REGS; r++) {
        if (!w->lock[r] || !(k->clobbered & WEAVE_BIT(r))) continue;
        unsigned temp = weave_temp_take(w);
        x86_store(w->c, 8, weave_temp_addr(temp), r);
        k->outer |= (uint16_t)WEAVE_BIT(r);
        if (w->st.in_reg & WEAVE_BIT(r)) k->outer_prog |= (uint16_t)WEAVE_BIT(r);
        k->outer_temp[r] = (uint8_t)temp;
        k->outer_lock[r] = w->lock[r];
        w->lock[r] = 0;
    }
}

static void take_outer_back(weaver *w, call *k)
{
    for (unsigned r = 0; r < X86_REGS; r++) {
        if (!(k->outer & WEAVE_BIT(r))) continue;
        x86_load(w->c, 8, r, weave_temp_addr(k->outer_temp[r]));
        weave_temp_drop(w, k->outer_temp[r]);
        w->lock[r] = k->outer_lock[r];
        if (k->outer_prog & WEAVE_BIT(r) & ~k->refs) w->st.in_reg |= (uint16_t)WEAVE_BIT(r);
    }
}

static weave_val reference(weaver *w, unsigned reg, unsigned hint)
{
    if (reg >= X86_REGS) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "this register cannot be passed by reference");
        return weave_imm(0);
    }
    if (reg == X86_RSP) x86_store(w->c, 8, weave_slot_addr(reg), reg);
    else weave_to_slot(w, reg);
    unsigned t = weave_take(w, 0, hint);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(self)));
    x86_lea(w->c, t, x86_at(t, WEAVE_SLOT(reg)));
    return owned(t);
}

/* It may be where it is wanted already. */
static bool is_in_place(const weaver *w, const snippet *s, unsigned reg)
{
    bool same = s->kind == SNIPPET_ARG ? s->index < ARG_REGS && arg_regs[s->index] == reg
                                       : s->kind == SNIPPET_REG && s->reg == reg;
    return same && w->st.in_reg & WEAVE_BIT(reg) && !w->lock[reg];
}

static weave_val argument(weaver *w, const snippet *s, unsigned hint)
{
    if (hint < X86_REGS && is_in_place(w, s, hint)) {
        weave_lock(w, hint);
        return (weave_val){WEAVE_PROG, (uint8_t)hint, 0, 0};
    }
    return s->kind == SNIPPET_REG_REF ? reference(w, s->reg, hint) : weave_eval(w, s, hint);
}

static void arguments(weaver *w, call *k)
{
    unsigned n = k->int_count, in_regs = n < ARG_REGS ? n : ARG_REGS;
    for (unsigned i = ARG_REGS; i < n; i++) {
        weave_val v = argument(w, k->ints[i], ISA_NO_REG);
        unsigned temp = weave_temp_take(w);
        weave_in_reg(w, &v, 0);
        x86_store(w->c, 8, weave_temp_addr(temp), v.reg);
        weave_drop(w, v);
        k->stack_temp[k->stack_args++] = (uint8_t)temp;
    }
    for (unsigned i = 0; i < in_regs && !w->status; i++) {
        weave_val v = argument(w, k->ints[i], arg_regs[i]);
        weave_into(w, &v, arg_regs[i]);
    }
}

static void claim_clobbered(weaver *w, const call *k)
{
    for (unsigned r = 0; r < X86_REGS; r++)
        if (k->clobbered & WEAVE_BIT(r)) weave_claim(w, r);
}

static void mxcsr(x86_code *c, unsigned field, unsigned temp) /* 3 stores, 2 loads */
{
    uint8_t b[] = {0x65, 0x0f, 0xae, (uint8_t)(field << 3 | 4), 0x25, 0, 0, 0, 0};
    uint32_t at = (uint32_t)weave_temp_addr(temp).disp;
    for (unsigned i = 0; i < 4; i++) b[5 + i] = (uint8_t)(at >> 8 * i);
    x86_bytes(c, b, sizeof b);
}

static x86_addr vec_slot(unsigned v) { return x86_gs(WEAVE_OFF(vec_save) + 16 * (int32_t)v); }

static void pass_vectors(weaver *w, const call *k)
{
    for (unsigned i = 0; i < k->vec_count; i++) x86_vec_load(w->c, 16, i, vec_slot(k->vecs[i]));
}

static void save_vectors(weaver *w, call *k)
{
    static const uint8_t fninit[] = {0xdb, 0xe3};
    if (k->xsave) {
        x86_mov_rr(w->c, 8, X86_R10, X86_RDX); /* the third argument */
        x86_call_m(w->c, x86_gs(WEAVE_OFF(save_vectors)));
        x86_mov_rr(w->c, 8, X86_RDX, X86_R10);
        x86_bytes(w->c, fninit, sizeof fninit);
    }
    for (unsigned v = 0; v < VECS; v++)
        if (k->vec_saved >> v & 1) x86_vec_store(w->c, 16, vec_slot(v), v);
    if (!k->mxcsr) return;
    x86_addr dflt = weave_temp_addr(k->mxcsr_temp);
    dflt.disp += 4;
    mxcsr(w->c, 3, k->mxcsr_temp);
    x86_store_imm(w->c, 4, dflt, DEFAULT_MXCSR);
    uint8_t load[] = {0x65, 0x0f, 0xae, 0x14, 0x25, 0, 0, 0, 0};
    for (unsigned i = 0; i < 4; i++) load[5 + i] = (uint8_t)((uint32_t)dflt.disp >> 8 * i);
    x86_bytes(w->c, load, sizeof load);
}

static void restore_vectors(weaver *w, call *k)
{
    if (k->mxcsr && !k->xsave) mxcsr(w->c, 2, k->mxcsr_temp);
    if (k->xsave) {
        x86_call_m(w->c, x86_gs(WEAVE_OFF(load_vectors)));
        return;
    }
    for (unsigned v = 0; v < VECS; v++)
        if (k->vec_saved >> v & 1) x86_vec_load(w->c, 16, v, vec_slot(v));
}

static void swap_fs(weaver *w, unsigned scratch, bool in)
{
    if (in) {
        x86_rdfsbase(w->c, scratch);
        x86_store(w->c, 8, x86_gs(WEAVE_OFF(app_fs_base)), scratch);
    }
    x86_load(w->c, 8, scratch, x86_gs(in ? WEAVE_OFF(tool_fs_base) : WEAVE_OFF(app_fs_base)));
    x86_wrfsbase(w->c, scratch);
}

static void transfer(weaver *w, call *k)
{
    x86_code *c = w->c;
    bool odd = (k->stack_args + k->pushf) & 1;
    x86_store_imm(c, 8, x86_gs(WEAVE_OFF(in_tool)), k->pushf + odd + k->stack_args + 1);
    x86_store(c, 8, x86_gs(WEAVE_OFF(app_rsp)), X86_RSP);
    x86_load(c, 8, X86_RSP, x86_gs(WEAVE_OFF(tool_stack)));
    if (k->pushf) {
        x86_pushf(c);
        x86_push_i(c, PLAIN_FLAGS);
        x86_popf(c);
    }
    if (odd) x86_lea(c, X86_RSP, x86_at(X86_RSP, -8));
    for (unsigned i = k->stack_args; i-- > 0;) x86_push_m(c, weave_temp_addr(k->stack_temp[i]));
    save_vectors(w, k);
    pass_vectors(w, k);
    if (k->tls) swap_fs(w, X86_RAX, true);
    if (k->far) {
        x86_mov_ri(c, X86_RAX, (uint64_t)(uintptr_t)k->s->fn);
        x86_call_r(c, X86_RAX);
    } else {
        x86_call_to(c, (uint64_t)(uintptr_t)k->s->fn);
    }
    if (k->tls) swap_fs(w, X86_RCX, false);
}

static void transfer_back(weaver *w, call *k)
{
    x86_code *c = w->c;
    bool odd = (k->stack_args + k->pushf) & 1;
    restore_vectors(w, k);
    if (k->pushf) {
        if (k->stack_args + odd) x86_lea(c, X86_RSP, x86_at(X86_RSP, 8 * (int32_t)(k->stack_args + odd)));
        x86_popf(c);
    }
    x86_load(c, 8, X86_RSP, x86_gs(WEAVE_OFF(app_rsp)));
    x86_store_imm(c, 8, x86_gs(WEAVE_OFF(in_tool)), 0);
}

static void drop_arguments(weaver *w, call *k)
{
    for (unsigned i = 0; i < k->int_count && i < ARG_REGS; i++) weave_unlock(w, arg_regs[i]);
    for (unsigned i = 0; i < k->stack_args; i++) weave_temp_drop(w, k->stack_temp[i]);
}

static void take_references_back(weaver *w, const call *k)
{
    w->st.in_reg &= (uint16_t)~k->refs;
    if (!(k->refs & WEAVE_BIT(X86_RSP))) return;
    x86_load(w->c, 8, X86_RSP, weave_slot_addr(X86_RSP));
    w->st.in_reg |= WEAVE_BIT(X86_RSP);
    w->st.in_slot &= (uint16_t)~WEAVE_BIT(X86_RSP);
}

/* The routine's result, moved to where neither the restoring code nor pending values get at it. */
static weave_val fetch_result(weaver *w, call *k)
{
    uint16_t avoid = k->outer | WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RDX) | WEAVE_BIT(X86_R11) | WEAVE_BIT(X86_RCX) |
                     k->refs;
    unsigned reg = weave_take(w, avoid, ISA_NO_REG);
    x86_mov_rr(w->c, 8, reg, X86_RAX);
    return owned(reg);
}

weave_val weave_call(weaver *w, const snippet *s, bool wanted)
{
    call k = {.s = s, .routine = weave_routine_of(s->fn)};
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
    if (k.routine->flags && !k.pushf) weave_flags_clobber(w);
    if (k.mxcsr) k.mxcsr_temp = weave_temp_take(w);
    if (w->status) return weave_imm(0);
    /* A slot that lends its register to the routine must not be counted on to hold the old value,
     * so the argument registers are unlocked only behind the call. */
    claim_clobbered(w, &k);
    transfer(w, &k);
    drop_arguments(w, &k);
    if (wanted) result = fetch_result(w, &k);
    transfer_back(w, &k);
    if (k.mxcsr) weave_temp_drop(w, k.mxcsr_temp);
    take_references_back(w, &k);
    take_outer_back(w, &k);
    return result;
}
