/* What scratch registers still hold from one point of a run to the next: constants, addresses of operands, and where
 * the next record of a buffer goes. What is known of a register ends when the register gets another value, whoever
 * gives it (weave_claim, weave_to_reg, the program's instructions), and all of it where the way through the code is not
 * straight. A register of which something is known is junk to the map, as without.
 *
 * Only appends made ahead (append.c) remember anything, so nothing changes where there are none.
 */
#include "weave/weaver.h"

#include <stdlib.h>

void weave_forget(weaver *w) { w->known_regs = 0; }

void weave_forget_reg(weaver *w, unsigned reg) { w->known_regs &= ~WEAVE_BIT(reg); }

void weave_remember(weaver *w, unsigned reg, weave_held known)
{
    known.since = ++w->known_clock;
    w->known[reg] = known;
    w->known_regs |= WEAVE_BIT(reg);
}

static bool is_same(const weave_held *a, const weave_held *b)
{
    return a->kind == b->kind && a->base == b->base && a->index == b->index && a->scale == b->scale &&
           a->value == b->value;
}

unsigned weave_recall(weaver *w, const weave_held *what)
{
    for (isa_regs left = w->known_regs & ~w->locked; left; left &= left - 1) {
        unsigned reg = (unsigned)__builtin_ctzll(left);
        if (!is_same(&w->known[reg], what)) continue;
        w->known[reg].since = ++w->known_clock;
        return reg;
    }
    return ISA_NO_REG;
}

unsigned weave_recall_near(const weaver *w, uint64_t value, int32_t *distance)
{
    unsigned best = ISA_NO_REG;
    for (isa_regs left = w->known_regs & ~w->locked; left; left &= left - 1) {
        unsigned reg = (unsigned)__builtin_ctzll(left);
        int64_t by = (int64_t)(value - w->known[reg].value);
        if (w->known[reg].kind != WEAVE_HELD_CONSTANT || by != (int32_t)by || !w->isa->reaches(by)) continue;
        if (best != ISA_NO_REG && llabs(by) >= llabs((int64_t)*distance)) continue;
        best = reg;
        *distance = (int32_t)by;
    }
    return best;
}

unsigned weave_longest_known(const weaver *w, isa_regs set)
{
    unsigned best = (unsigned)__builtin_ctzll(set);
    for (; set; set &= set - 1) {
        unsigned reg = (unsigned)__builtin_ctzll(set);
        if (w->known[reg].since < w->known[best].since) best = reg;
    }
    return best;
}

void weave_forget_written(weaver *w, isa_regs written)
{
    w->known_regs &= ~written;
    for (isa_regs left = w->known_regs; left; left &= left - 1) {
        unsigned reg = (unsigned)__builtin_ctzll(left);
        const weave_held *k = &w->known[reg];
        if (k->kind != WEAVE_HELD_ADDRESS) continue;
        isa_regs of = (k->base < 64 ? WEAVE_BIT(k->base) : 0) | (k->index < 64 ? WEAVE_BIT(k->index) : 0);
        if (of & written) weave_forget_reg(w, reg);
    }
}
