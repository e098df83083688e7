/* The call itself of an analysis routine. The stack is switched to the thread's private one; in the frame, in_tool is
 * set from before the switch to after the switch back, so that a signal handler can tell.
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
#include "weave/x86_64/machine.h"

enum { VECS = 16, DEFAULT_MXCSR = 0x1f80, PLAIN_FLAGS = 2 };

void weave_x86_call_plan(weaver *w, weave_call_plan *k)
{
    int64_t distance = (int64_t)((uint64_t)(uintptr_t)k->s->fn - x86_here(w->c));
    k->far = distance > w->isa->pc_reach || distance < -w->isa->pc_reach;
    if (k->far) k->clobbered |= WEAVE_BIT(X86_RAX);
}

static void mxcsr(x86_code *c, unsigned field, unsigned temp) /* 3 stores, 2 loads */
{
    uint8_t b[] = {0x65, 0x0f, 0xae, (uint8_t)(field << 3 | 4), 0x25, 0, 0, 0, 0};
    uint32_t at = (uint32_t)weave_temp_addr(temp).disp;
    for (unsigned i = 0; i < 4; i++) b[5 + i] = (uint8_t)(at >> 8 * i);
    x86_bytes(c, b, sizeof b);
}

static x86_addr vec_slot(unsigned v) { return x86_gs(WEAVE_OFF(vec_save) + 16 * (int32_t)v); }

static void pass_vectors(weaver *w, const weave_call_plan *k)
{
    for (unsigned i = 0; i < k->vec_count; i++) {
        /* What comes from a temporary has its neighbour in the upper half, which no routine looks at. */
        x86_vec_load(w->c, 16, i, k->reals[i] ? weave_temp_addr(k->real_temp[i]) : vec_slot(k->vecs[i]));
    }
}

static void save_vectors(weaver *w, weave_call_plan *k)
{
    static const uint8_t fninit[] = {0xdb, 0xe3};
    if (k->whole) {
        x86_mov_rr(w->c, 8, X86_R10, X86_RDX); /* the third argument */
        x86_call_m(w->c, x86_gs(WEAVE_OFF(save_vectors)));
        x86_mov_rr(w->c, 8, X86_RDX, X86_R10);
        x86_bytes(w->c, fninit, sizeof fninit);
    }
    for (unsigned v = 0; v < VECS; v++)
        if (k->vec_saved >> v & 1) x86_vec_store(w->c, 16, vec_slot(v), v);
    if (!k->fp) return;
    x86_addr dflt = weave_temp_addr(k->fp_temp);
    dflt.disp += 4;
    mxcsr(w->c, 3, k->fp_temp);
    x86_store_imm(w->c, 4, dflt, DEFAULT_MXCSR);
    uint8_t load[] = {0x65, 0x0f, 0xae, 0x14, 0x25, 0, 0, 0, 0};
    for (unsigned i = 0; i < 4; i++) load[5 + i] = (uint8_t)((uint32_t)dflt.disp >> 8 * i);
    x86_bytes(w->c, load, sizeof load);
}

static void restore_vectors(weaver *w, weave_call_plan *k)
{
    if (k->fp && !k->whole) mxcsr(w->c, 2, k->fp_temp);
    if (k->whole) {
        x86_call_m(w->c, x86_gs(WEAVE_OFF(load_vectors)));
        return;
    }
    for (unsigned v = 0; v < VECS; v++)
        if (k->vec_saved >> v & 1) x86_vec_load(w->c, 16, v, vec_slot(v));
}

void weave_x86_call_begin(weaver *w, weave_call_plan *k)
{
    x86_code *c = w->c;
    bool odd = (k->stack_args + k->flags) & 1;
    x86_store_imm(c, 8, x86_gs(WEAVE_OFF(in_tool)), k->flags + odd + k->stack_args + 1);
    x86_store(c, 8, x86_gs(WEAVE_OFF(app_rsp)), X86_RSP);
    x86_load(c, 8, X86_RSP, x86_gs(WEAVE_OFF(tool_stack)));
    if (k->flags) {
        x86_pushf(c);
        x86_push_i(c, PLAIN_FLAGS);
        x86_popf(c);
    }
    if (odd) x86_lea(c, X86_RSP, x86_at(X86_RSP, -8));
    for (unsigned i = k->stack_args; i-- > 0;) x86_push_m(c, weave_temp_addr(k->stack_temp[i]));
    save_vectors(w, k);
    pass_vectors(w, k);
    if (k->tls) x86_call_m(c, x86_gs(WEAVE_OFF(take_tool_base)));
    if (k->far) {
        x86_mov_ri(c, X86_RAX, (uint64_t)(uintptr_t)k->s->fn);
        x86_call_r(c, X86_RAX);
    } else {
        x86_call_to(c, (uint64_t)(uintptr_t)k->s->fn);
    }
    if (k->tls) x86_call_m(c, x86_gs(WEAVE_OFF(take_app_base)));
}

void weave_x86_call_end(weaver *w, weave_call_plan *k)
{
    x86_code *c = w->c;
    bool odd = (k->stack_args + k->flags) & 1;
    restore_vectors(w, k);
    if (k->flags) {
        if (k->stack_args + odd) x86_lea(c, X86_RSP, x86_at(X86_RSP, 8 * (int32_t)(k->stack_args + odd)));
        x86_popf(c);
    }
    x86_load(c, 8, X86_RSP, x86_gs(WEAVE_OFF(app_rsp)));
    x86_store_imm(c, 8, x86_gs(WEAVE_OFF(in_tool)), 0);
}

/* The low half of the first vector register, by way of a temporary. */
static void result_of_vector(weaver *w, unsigned size, unsigned reg)
{
    uint8_t b[] = {0x65, 0x66, 0x0f, 0xd6, 0x04, 0x25, 0, 0, 0, 0}; /* movq gs:temp, xmm0 */
    unsigned temp = weave_temp_take(w);
    uint32_t at = (uint32_t)weave_temp_addr(temp).disp;
    for (unsigned i = 0; i < 4; i++) b[6 + i] = (uint8_t)(at >> 8 * i);
    x86_bytes(w->c, b, sizeof b);
    x86_load(w->c, size, reg, weave_temp_addr(temp));
    weave_temp_drop(w, temp);
}

/* The routine's result, moved to where neither the restoring code nor pending values get at it. */
weave_val weave_x86_call_result(weaver *w, weave_call_plan *k)
{
    isa_regs avoid = k->outer | WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RDX) | WEAVE_BIT(X86_R11) | WEAVE_BIT(X86_RCX) |
                     k->refs;
    unsigned reg = weave_take(w, avoid, ISA_NO_REG);
    if (k->s->size) result_of_vector(w, k->s->size, reg);
    else x86_mov_rr(w->c, 8, reg, X86_RAX);
    return weave_owned(reg);
}
