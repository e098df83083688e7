/* The whole register context of the program, and its flags as a value. */
#include "weave/x86_64/weaver.h"

/* pushf cannot use the program's stack (red zone): the private one lends a word. */
weave_val weave_flags_value(weaver *w, unsigned hint)
{
    weave_flags_to_hw(w);
    unsigned r = weave_take(w, 0, hint);
    x86_store(w->c, 8, x86_gs(WEAVE_OFF(app_rsp)), X86_RSP);
    x86_load(w->c, 8, X86_RSP, x86_gs(WEAVE_OFF(tool_stack)));
    x86_pushf(w->c);
    x86_pop(w->c, r);
    x86_load(w->c, 8, X86_RSP, x86_gs(WEAVE_OFF(app_rsp)));
    return (weave_val){WEAVE_REG, (uint8_t)r, 0, 0};
}

static x86_addr field(size_t offset) { return x86_gs(WEAVE_OFF(context) + (int32_t)offset); }

static void fill_registers(weaver *w, unsigned t)
{
    for (unsigned r = 0; r < X86_REGS; r++) {
        unsigned from = r;
        if (!(w->st.in_reg & WEAVE_BIT(r))) {
            x86_load(w->c, 8, t, weave_slot_addr(r));
            from = t;
        }
        x86_store(w->c, 8, field(offsetof(weave_context, gpr) + 8 * r), from);
    }
}

weave_val weave_context_value(weaver *w, unsigned hint)
{
    weave_val flags = weave_flags_value(w, ISA_NO_REG);
    x86_store(w->c, 8, field(offsetof(weave_context, flags)), flags.reg);
    weave_drop(w, flags);
    unsigned t = weave_take(w, 0, hint);
    fill_registers(w, t);
    const isa_insn *in = &weave_here(w)->in;
    x86_mov_ri(w->c, t, in->addr + (w->after ? in->len : 0));
    x86_store(w->c, 8, field(offsetof(weave_context, pc)), t);
    x86_rdfsbase(w->c, t);
    x86_store(w->c, 8, field(offsetof(weave_context, fs_base)), t);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(app_gs_base)));
    x86_store(w->c, 8, field(offsetof(weave_context, gs_base)), t);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(xsave_area)));
    x86_store(w->c, 8, field(offsetof(weave_context, xsave)), t);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(self)));
    x86_lea(w->c, t, x86_at(t, WEAVE_OFF(context)));
    return (weave_val){WEAVE_REG, (uint8_t)t, 0, 0};
}
