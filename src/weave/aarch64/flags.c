/* The flags, through any register. */
#include "weave/aarch64/machine.h"

void weave_a64_flags_save(weaver *w)
{
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    a64_read_flags(w->c, t);
    weave_a64_frame_store(w, WEAVE_OFF(flags), t);
    weave_unlock(w, t);
}

void weave_a64_flags_restore(weaver *w)
{
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    weave_a64_frame_load(w, t, WEAVE_OFF(flags));
    a64_write_flags(w->c, t);
    weave_unlock(w, t);
}

weave_val weave_a64_flags_value(weaver *w, unsigned hint)
{
    weave_flags_to_hw(w);
    unsigned t = weave_take(w, 0, hint);
    a64_read_flags(w->c, t);
    return weave_owned(t);
}
