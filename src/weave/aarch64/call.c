/* The call itself of an analysis routine. The stack is switched to the thread's private one; in the frame, in_tool is
 * set from before the switch to after the switch back, so that a signal handler can tell.
 *
 *   [ in_tool, sp saved ][ tool_stack ][ stack arguments ][ vector state saved ][ flags saved ]
 *   [ floating-point arguments ][ thread pointer swapped ][ blr ][ ... all of it undone in reverse ][ stop? ]
 *
 * x16, x17 and x30 are the call's own. A routine that writes any vector register has the whole vector state saved, in
 * the way of the processor at hand: on one with vectors that are longer than 16 bytes, a write of the low 16 clears
 * the rest, whatever the routine knows of it. It finds the floating-point environment that the ABI promises.
 */
#include "weave/aarch64/machine.h"

enum { T = A64_IP0, FRAME = A64_IP1, ALIGN = 16 };

static bool keeps_vectors(const weave_call_plan *k) { return k->whole || k->fp || k->vec_saved; }

static unsigned argument_bytes(const weave_call_plan *k) { return (8 * k->stack_args + ALIGN - 1) & ~(ALIGN - 1u); }

static void load(weaver *w, unsigned reg, int32_t field) { a64_load(w->c, 8, reg, a64_at(FRAME, field)); }

static void store(weaver *w, int32_t field, unsigned reg) { a64_store(w->c, 8, a64_at(FRAME, field), reg); }

void weave_a64_call_plan(weaver *w, weave_call_plan *k)
{
    (void)w;
    k->far = true; /* no distance is presumed */
    k->clobbered |= WEAVE_BIT(T) | WEAVE_BIT(FRAME) | WEAVE_BIT(A64_LR);
}

static void to_tool_stack(weaver *w, const weave_call_plan *k)
{
    isa_code *c = w->c;
    unsigned bytes = argument_bytes(k);
    a64_mov_ri(c, T, bytes / 8 + 1);
    store(w, WEAVE_OFF(in_tool), T);
    a64_mov_rr(c, 8, T, A64_SP);
    store(w, WEAVE_OFF(app_sp), T);
    load(w, T, WEAVE_OFF(tool_stack));
    a64_arith_ri(c, A64_ARITH_SUB, 8, A64_SP, T, bytes);
    for (unsigned i = 0; i < k->stack_args; i++) {
        load(w, T, weave_temp_at(w, k->stack_temp[i]));
        a64_store(c, 8, a64_at(A64_SP, 8 * (int32_t)i), T);
    }
}

/* What saves and loads them is told by the frame, and uses x16, x17 and x30. */
static void move_vectors(weaver *w, int32_t how)
{
    load(w, T, how);
    a64_blr(w->c, T);
    weave_a64_frame(w->c, FRAME, 0);
}

static void pass_vectors(weaver *w, const weave_call_plan *k)
{
    for (unsigned i = 0; i < k->vec_count; i++)
        if (!k->reals[i]) a64_store_vec(w->c, 8, a64_at(FRAME, WEAVE_OFF(vec_args) + 8 * (int32_t)i), k->vecs[i]);
    if (keeps_vectors(k)) move_vectors(w, WEAVE_OFF(save_vectors));
    for (unsigned i = 0; i < k->vec_count; i++) {
        bool computed = k->reals[i];
        int32_t from = computed ? weave_temp_at(w, k->real_temp[i]) : WEAVE_OFF(vec_args) + 8 * (int32_t)i;
        a64_load_vec(w->c, 8, i, a64_at(FRAME, from));
    }
}

void weave_a64_call_begin(weaver *w, weave_call_plan *k)
{
    isa_code *c = w->c;
    weave_a64_frame(c, FRAME, 0);
    to_tool_stack(w, k);
    pass_vectors(w, k);
    if (k->flags) {
        a64_read_flags(c, T);
        store(w, WEAVE_OFF(call_flags), T);
    }
    if (k->tls) {
        a64_read_tls(c, T);
        store(w, WEAVE_OFF(app_tls_base), T);
        load(w, T, WEAVE_OFF(tool_tls_base));
        a64_write_tls(c, T);
    }
    a64_mov_ri(c, T, (uint64_t)(uintptr_t)k->s->fn);
    a64_blr(c, T);
    weave_a64_frame(c, FRAME, 0); /* by either thread pointer */
    if (k->tls) {
        load(w, T, WEAVE_OFF(app_tls_base));
        a64_write_tls(c, T);
    }
}

/* To where neither the code that restores nor pending values get at it. */
weave_val weave_a64_call_result(weaver *w, weave_call_plan *k)
{
    unsigned from = w->isa->abi.result;
    weave_lock(w, from);
    unsigned reg = weave_take(w, k->outer | k->clobbered | k->refs, ISA_NO_REG);
    weave_unlock(w, from);
    if (k->s->size) {
        unsigned temp = weave_temp_take(w);
        a64_store_vec(w->c, 8, a64_at(FRAME, weave_temp_at(w, temp)), 0);
        a64_load(w->c, k->s->size, reg, a64_at(FRAME, weave_temp_at(w, temp)));
        weave_temp_drop(w, temp);
    } else {
        a64_mov_rr(w->c, 8, reg, from);
    }
    return weave_owned(reg);
}

/* A signal has come meanwhile, and is to be delivered behind the call: the thread is stopped here. */
static void stop_if_asked(weaver *w)
{
    load(w, T, WEAVE_OFF(stops));
    isa_label goes_on = a64_cbz_label(w->c, false, 8, T);
    a64_brk(w->c, WEAVE_STOP);
    a64_bind(w->c, goes_on);
}

void weave_a64_call_end(weaver *w, weave_call_plan *k)
{
    weave_a64_frame(w->c, FRAME, 0);
    if (keeps_vectors(k)) move_vectors(w, WEAVE_OFF(load_vectors));
    if (k->flags) {
        load(w, T, WEAVE_OFF(call_flags));
        a64_write_flags(w->c, T);
    }
    stop_if_asked(w);
    load(w, T, WEAVE_OFF(app_sp));
    a64_mov_rr(w->c, 8, A64_SP, T);
    store(w, WEAVE_OFF(in_tool), A64_ZR);
}
