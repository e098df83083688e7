/* What of a routine's instructions the effects do not say; and its body in place of its call. Bodies are copied as they
 * are (weave/copied.c): none is taken apart yet, since no instruction is written with other registers. */
#include "weave/aarch64/machine.h"
#include "weave/body.h"

void weave_a64_note_routine(weave_routine *r, const isa_insn *in, const isa_effects *fx)
{
    (void)in;
    if (fx->other_reads & ISA_OTHER_TLS_BASE) r->tls = true;
}

void weave_a64_form(const isa_insn *in, weave_form *f)
{
    (void)in;
    *f = (weave_form){.kind = WEAVE_FORM_OTHER};
}

bool weave_a64_holds(unsigned cond, unsigned op, unsigned width, uint64_t a, uint64_t b, bool *yes)
{
    (void)cond, (void)op, (void)width, (void)a, (void)b, (void)yes;
    return false;
}

bool weave_a64_can_rename(const isa_insn *in, isa_regs *fixed)
{
    (void)in, (void)fixed;
    return false;
}

bool weave_a64_takes_immediate(unsigned kind, unsigned op, unsigned width, uint64_t value)
{
    (void)kind, (void)op, (void)width, (void)value;
    return false;
}

bool weave_a64_is_far(const weaver *w, uint64_t here, uint64_t address) { return !weave_is_near(w, here, address); }

bool weave_a64_put_item(weaver *w, const weave_naming *n, const item *it)
{
    (void)w, (void)n, (void)it;
    return false;
}
