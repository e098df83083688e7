/* The whole register context of the program. */
#include "weave/x86_64/machine.h"

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

weave_val weave_x86_context(weaver *w, unsigned hint)
{
    weave_val flags = weave_x86_flags_value(w, ISA_NO_REG);
    x86_store(w->c, 8, field(offsetof(weave_context, flags)), flags.reg);
    weave_drop(w, flags);
    unsigned t = weave_take(w, 0, hint);
    fill_registers(w, t);
    const isa_insn *in = &weave_here(w)->in;
    x86_mov_ri(w->c, t, in->addr + (w->after ? in->len : 0));
    x86_store(w->c, 8, field(offsetof(weave_context, pc)), t);
    x86_rdfsbase(w->c, t);
    x86_store(w->c, 8, field(offsetof(weave_context, tls_base)), t);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(app_gs_base)));
    x86_store(w->c, 8, field(offsetof(weave_context, gs_base)), t);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(vector_area)));
    x86_store(w->c, 8, field(offsetof(weave_context, vectors)), t);
    x86_load(w->c, 8, t, x86_gs(WEAVE_OFF(self)));
    x86_lea(w->c, t, x86_at(t, WEAVE_OFF(context)));
    return weave_owned(t);
}
