/* The whole register context of the program. */
#include "weave/aarch64/machine.h"

static int32_t field(size_t offset) { return WEAVE_OFF(context) + (int32_t)offset; }

static void fill_registers(weaver *w, unsigned frame, unsigned t)
{
    for (unsigned r = 0; r < A64_REGS; r++) {
        unsigned from = r;
        if (!(w->st.in_reg & WEAVE_BIT(r))) {
            a64_load(w->c, 8, t, a64_at(frame, WEAVE_SLOT((int32_t)r)));
            from = t;
        } else if (r == A64_SP) {
            a64_mov_rr(w->c, 8, t, A64_SP);
            from = t;
        }
        a64_store(w->c, 8, a64_at(frame, field(offsetof(weave_context, gpr) + 8 * r)), from);
    }
}

weave_val weave_a64_context(weaver *w, unsigned hint)
{
    isa_code *c = w->c;
    const isa_insn *in = &weave_here(w)->in;
    weave_val flags = weave_a64_flags_value(w, ISA_NO_REG);
    unsigned frame = weave_take(w, 0, hint), t = weave_take(w, 0, ISA_NO_REG);
    weave_a64_frame(c, frame, 0);
    a64_store(c, 8, a64_at(frame, field(offsetof(weave_context, flags))), flags.reg);
    fill_registers(w, frame, t);
    a64_mov_ri(c, t, in->addr + (w->after ? in->len : 0));
    a64_store(c, 8, a64_at(frame, field(offsetof(weave_context, pc))), t);
    a64_read_tls(c, t);
    a64_store(c, 8, a64_at(frame, field(offsetof(weave_context, tls_base))), t);
    a64_load(c, 8, t, a64_at(frame, WEAVE_OFF(vector_area)));
    a64_store(c, 8, a64_at(frame, field(offsetof(weave_context, vectors))), t);
    a64_add_ri(c, frame, frame, WEAVE_OFF(context));
    weave_drop(w, flags);
    weave_unlock(w, t);
    return weave_owned(frame);
}
