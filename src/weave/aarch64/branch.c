/* Branches. A conditional branch reaches 1 MB (on a bit of a register, 32 KB), one that always goes 128 MB: where the
 * target is not near, a short one leads around a long one. */
#include <string.h>
#include "isa/aarch64/move.h"
#include "weave/aarch64/machine.h"

enum { INSN = 4 };

isa_label weave_a64_branch(isa_code *c, unsigned cond, bool near)
{
    if (near) return a64_bcond_label(c, cond);
    a64_bcond(c, cond ^ 1u, isa_here(c) + 2 * INSN);
    return a64_b_label(c);
}

isa_label weave_a64_branch_unless(isa_code *c, unsigned cond, bool near)
{
    return weave_a64_branch(c, cond ^ 1u, near);
}

isa_label weave_a64_branch_if_zero(weaver *w, unsigned reg)
{
    a64_cbz(w->c, true, 8, reg, isa_here(w->c) + 2 * INSN);
    return a64_b_label(w->c);
}

isa_label weave_a64_branch_if_not_zero(weaver *w, unsigned reg)
{
    a64_cbz(w->c, false, 8, reg, isa_here(w->c) + 2 * INSN);
    return a64_b_label(w->c);
}

isa_label weave_a64_jump(isa_code *c, bool near)
{
    (void)near;
    return a64_b_label(c);
}

void weave_a64_bind_to(isa_code *c, isa_label l, uint64_t target)
{
    uint32_t word;
    if (c->full || c->unreachable) return;
    memcpy(&word, c->write + l.at, INSN);
    if (a64_retarget(&word, c->exec + l.at, target)) memcpy(c->write + l.at, &word, INSN);
    else c->unreachable = true;
}

/* cbz, tbz and their opposites: the branch itself leads over the jump. */
isa_label weave_a64_branch_unless_taken(weaver *w, const isa_insn *in)
{
    uint32_t word = a64_word(in);
    if (!a64_retarget(&word, isa_here(w->c), isa_here(w->c) + 2 * INSN)) w->c->unreachable = true;
    a64_put(w->c, word);
    return a64_b_label(w->c);
}
