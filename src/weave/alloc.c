/* Who holds what: registers, flags, temporaries (see weaver.h for the two bits of each).
 *
 * A scratch register is chosen by what it costs: junk is free; a dead register nobody may see is
 * free; one that could be seen in a signal handler costs a store; one that already has its copy in
 * the slot costs the load that will bring it back; a live one costs both. Restores happen in
 * weave_prepare, before the instruction that needs the value, and never here.
 */
#include "weave/weaver.h"

enum { LOOK_AHEAD = 20 };

void weave_fail(weaver *w, inl_status status, const char *why)
{
    if (w->status) return;
    w->status = status;
    w->why = why;
}

void weave_lock(weaver *w, unsigned reg)
{
    w->lock[reg]++;
    w->locked |= WEAVE_BIT(reg);
}

void weave_unlock(weaver *w, unsigned reg)
{
    if (!w->lock[reg] || --w->lock[reg]) return;
    w->locked &= ~WEAVE_BIT(reg);
}

void weave_to_slot(weaver *w, unsigned reg)
{
    isa_regs bit = WEAVE_BIT(reg);
    if (w->st.in_slot & bit) return;
    if (!(w->st.in_reg & bit)) return; /* gone: dead */
    weave_slot_store(w, reg);
    w->st.in_slot |= bit;
}

void weave_to_reg(weaver *w, unsigned reg)
{
    isa_regs bit = WEAVE_BIT(reg);
    if (w->st.in_reg & bit) return;
    if (!(w->st.in_slot & bit)) return;
    weave_forget_reg(w, reg);
    weave_slot_load(w, reg, reg);
    w->st.in_reg |= bit;
}

void weave_claim(weaver *w, unsigned reg)
{
    isa_regs bit = WEAVE_BIT(reg);
    weave_forget_reg(w, reg);
    if (w->st.in_reg & bit && w->need.regs & bit) weave_to_slot(w, reg);
    w->st.in_reg &= ~bit;
}

static uint32_t random_number(weaver *w)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 17;
    w->rng ^= w->rng << 5;
    return w->rng;
}

static unsigned first_of(isa_regs set) { return (unsigned)__builtin_ctzll(set); }

static unsigned random_of(weaver *w, isa_regs set)
{
    unsigned skip = random_number(w) % (unsigned)__builtin_popcountll(set);
    while (skip--) set &= set - 1;
    return first_of(set);
}

/* Of live registers, the one whose restore lies farthest away; one that the engine wants in its slot has none. */
static unsigned farthest_use(const weaver *w, isa_regs set)
{
    uint32_t end = w->at + LOOK_AHEAD;
    for (uint32_t i = w->at + w->after; i < w->run->insn_count && i < end; i++) {
        isa_regs left = set & ~w->fx[i].reads;
        unsigned flow = w->run->insns[i].in.flow;
        if (!left) break;
        set = left;
        if (flow == ISA_FLOW_COND && w->opt->cold_exits) continue;
        if (flow != ISA_FLOW_NEXT) {
            isa_regs parked = set & weave_parks(w, i, w->st.in_slot);
            if (parked) return first_of(parked);
            break;
        }
        isa_regs dropped = set & w->fx[i].kills;
        if (dropped) return first_of(dropped);
    }
    return 63u - (unsigned)__builtin_clzll(set);
}

static unsigned choose(weaver *w, isa_regs set)
{
    isa_regs cheap;
    if (w->opt->stress & WEAVE_STRESS_RANDOM_REGS) return random_of(w, set);
    isa_regs junk = set & ~w->st.in_reg;
    set &= w->st.in_reg;
    if ((cheap = junk & ~w->known_regs)) return first_of(cheap);
    if ((cheap = set & ~w->need.regs)) return first_of(cheap);
    if (junk) return weave_longest_known(w, junk);
    if ((cheap = set & ~w->living.regs)) return first_of(cheap);
    if ((cheap = set & w->st.in_slot)) return farthest_use(w, cheap);
    return farthest_use(w, set);
}

unsigned weave_take(weaver *w, isa_regs avoid, unsigned hint)
{
    isa_regs set = w->isa->all & ~(avoid | w->isa->reserved | w->locked);
    if (!set) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a snippet needs more registers than there are");
        return first_of(w->isa->all);
    }
    unsigned reg = hint < w->isa->reg_count && set & WEAVE_BIT(hint) ? hint : choose(w, set);
    weave_claim(w, reg);
    weave_lock(w, reg);
    return reg;
}

unsigned weave_temp_take(weaver *w)
{
    for (unsigned t = 0; t < w->isa->frame.temps; t++) {
        if (w->temps & 1u << t) continue;
        w->temps |= 1u << t;
        return t;
    }
    weave_fail(w, INL_ERR_UNSUPPORTED, "a snippet is too deep: its temporaries are used up");
    return 0;
}

void weave_temp_drop(weaver *w, unsigned temp) { w->temps &= ~(1u << temp); }

enum { NO_TEMP = 0xff };

weave_fixed weave_fixed_begin(weaver *w, unsigned reg)
{
    if (w->lock[reg]) {
        unsigned temp = weave_temp_take(w);
        weave_temp_store(w, temp, reg);
        return (weave_fixed){(uint8_t)reg, (uint8_t)temp};
    }
    weave_claim(w, reg);
    weave_lock(w, reg);
    return (weave_fixed){(uint8_t)reg, NO_TEMP};
}

void weave_fixed_end(weaver *w, weave_fixed f)
{
    if (f.temp == NO_TEMP) {
        weave_unlock(w, f.reg);
        return;
    }
    weave_temp_load(w, f.reg, f.temp);
    weave_temp_drop(w, f.temp);
}

bool weave_flags_free(const weaver *w)
{
    return !w->st.flags_hw || w->st.flags_slot || !(w->need.flags & w->isa->flags);
}

void weave_flags_clobber(weaver *w)
{
    if (!w->st.flags_hw) return;
    if (w->need.flags & w->isa->flags && !w->st.flags_slot) {
        w->isa->flags_save(w);
        w->st.flags_slot = true;
    }
    w->st.flags_hw = false;
}

void weave_flags_to_hw(weaver *w)
{
    if (w->st.flags_hw || !w->st.flags_slot) return;
    w->isa->flags_restore(w);
    w->st.flags_hw = true;
}

void weave_arm_end(weaver *w, weave_state from)
{
    if (from.flags_hw && !w->st.flags_hw) weave_flags_to_hw(w);
    isa_regs back = from.in_reg & ~w->st.in_reg & w->st.in_slot;
    for (; back; back &= back - 1) weave_to_reg(w, first_of(back));
    w->st = weave_meet(w->st, from);
}

weave_state weave_meet(weave_state a, weave_state b)
{
    return (weave_state){a.in_reg & b.in_reg, a.in_slot & b.in_slot, a.flags_hw && b.flags_hw,
                         a.flags_slot && b.flags_slot};
}
