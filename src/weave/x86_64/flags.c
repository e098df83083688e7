/* The arithmetic flags, through RAX: lahf and seto, never pushf, which is slow and would need a stack. */
#include "weave/x86_64/machine.h"

/* RAX, for the moment in which flags pass through it: stashed when a pending value sits there. */
static bool rax_begin(weaver *w)
{
    if (w->lock[X86_RAX]) {
        x86_store(w->c, 8, x86_gs(WEAVE_OFF(flags_rax)), X86_RAX);
        return true;
    }
    weave_claim(w, X86_RAX);
    return false;
}

static void rax_end(weaver *w, bool stashed)
{
    if (stashed) x86_load(w->c, 8, X86_RAX, x86_gs(WEAVE_OFF(flags_rax)));
}

void weave_x86_flags_save(weaver *w)
{
    bool stashed = rax_begin(w);
    x86_lahf(w->c);
    if (w->need.flags & X86_OF) x86_setcc(w->c, X86_O, X86_RAX);
    x86_store(w->c, 4, x86_gs(WEAVE_OFF(flags)), X86_RAX);
    rax_end(w, stashed);
}

void weave_x86_flags_restore(weaver *w)
{
    bool stashed = rax_begin(w);
    x86_load(w->c, 4, X86_RAX, x86_gs(WEAVE_OFF(flags)));
    if (w->need.flags & X86_OF) x86_alu_ri(w->c, X86_ADD, 1, X86_RAX, 0x7f); /* AL = 1: overflow */
    x86_sahf(w->c);
    rax_end(w, stashed);
}

/* pushf cannot use the program's stack (red zone): the private one lends a word. */
weave_val weave_x86_flags_value(weaver *w, unsigned hint)
{
    weave_flags_to_hw(w);
    unsigned r = weave_take(w, 0, hint);
    x86_store(w->c, 8, x86_gs(WEAVE_OFF(app_rsp)), X86_RSP);
    x86_load(w->c, 8, X86_RSP, x86_gs(WEAVE_OFF(tool_stack)));
    x86_pushf(w->c);
    x86_pop(w->c, r);
    x86_load(w->c, 8, X86_RSP, x86_gs(WEAVE_OFF(app_rsp)));
    return weave_owned(r);
}
