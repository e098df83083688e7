/* Who holds what: registers, flags, temporaries (see weaver.h for the two bits of each).
 *
 * A scratch register is chosen by what it costs: junk is free; a dead register nobody may see is
 * free; one that could be seen in a signal handler costs a store; one that already has its copy in
 * the slot costs the load that will bring it back; a live one costs both. Restores happen in
 * weave_prepare, before the instruction that needs the value, and never here.
 */
#include "weave/x86_64/weaver.h"

enum { LOOK_AHEAD = 20 };

void weave_fail(weaver *w, inl_status status, const char *why)
{
    if (w->status) return;
    w->status = status;
    w->why = why;
}

void weave_lock(weaver *w, unsigned reg) { w->lock[reg]++; }
void weave_unlock(weaver *w, unsigned reg)
{
    if (w->lock[reg]) w->lock[reg]--;
}

void weave_to_slot(weaver *w, unsigned reg)
{
    uint16_t bit = (uint16_t)WEAVE_BIT(reg);
    if (w->st.in_slot & bit) return;
    if (!(w->st.in_reg & bit)) return; /* gone: dead */
    x86_store(w->c, 8, weave_slot_addr(reg), reg);
    w->st.in_slot |= bit;
}

void weave_to_reg(weaver *w, unsigned reg)
{
    uint16_t bit = (uint16_t)WEAVE_BIT(reg);
    if (w->st.in_reg & bit) return;
    if (!(w->st.in_slot & bit)) return;
    x86_load(w->c, 8, reg, weave_slot_addr(reg));
    w->st.in_reg |= bit;
}

void weave_claim(weaver *w, unsigned reg)
{
    uint16_t bit = (uint16_t)WEAVE_BIT(reg);
    if (w->st.in_reg & bit && w->need.regs & bit) weave_to_slot(w, reg);
    w->st.in_reg &= (uint16_t)~bit;
}

static uint32_t random_number(weaver *w)
{
    w->rng ^= w->rng << 13;
    w->rng ^= w->rng >> 17;
    w->rng ^= w->rng << 5;
    return w->rng;
}

static unsigned random_of(weaver *w, uint16_t set)
{
    unsigned skip = random_number(w) % (unsigned)__builtin_popcount(set);
    while (skip--) set &= (uint16_t)(set - 1);
    return (unsigned)__builtin_ctz(set);
}

/* Of live registers, the one whose restore lies farthest away. */
static unsigned farthest_use(const weaver *w, uint16_t set)
{
    uint32_t end = w->at + LOOK_AHEAD;
    for (uint32_t i = w->at + w->after; i < w->run->insn_count && i < end; i++) {
        uint16_t left = set & (uint16_t)~w->fx[i].reads;
        unsigned flow = w->run->insns[i].in.flow;
        if (!left) break;
        set = left;
        if (flow == ISA_FLOW_COND && w->opt->cold_exits) continue;
        if (flow != ISA_FLOW_NEXT) break;
        uint16_t dropped = set & (uint16_t)w->fx[i].kills;
        if (dropped) return (unsigned)__builtin_ctz(dropped);
    }
    return 31u - (unsigned)__builtin_clz(set);
}

static unsigned choose(weaver *w, uint16_t set)
{
    uint16_t cheap;
    if (w->opt->stress & WEAVE_STRESS_RANDOM_REGS) return random_of(w, set);
    if ((cheap = set & (uint16_t)~w->st.in_reg)) return (unsigned)__builtin_ctz(cheap);
    if ((cheap = set & (uint16_t)~w->need.regs)) return (unsigned)__builtin_ctz(cheap);
    if ((cheap = set & (uint16_t)~w->living.regs)) return (unsigned)__builtin_ctz(cheap);
    if ((cheap = set & w->st.in_slot)) return farthest_use(w, cheap);
    return farthest_use(w, set);
}

unsigned weave_take(weaver *w, uint16_t avoid, unsigned hint)
{
    uint16_t set = (uint16_t) ~(avoid | WEAVE_BIT(X86_RSP));
    for (unsigned r = 0; r < X86_REGS; r++)
        if (w->lock[r]) set &= (uint16_t)~WEAVE_BIT(r);
    if (!set) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a snippet needs more registers than there are");
        return X86_RAX;
    }
    unsigned reg = hint < X86_REGS && set & WEAVE_BIT(hint) ? hint : choose(w, set);
    weave_claim(w, reg);
    weave_lock(w, reg);
    return reg;
}

unsigned weave_temp_take(weaver *w)
{
    for (unsigned t = 0; t < WEAVE_TEMPS; t++) {
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
        x86_store(w->c, 8, weave_temp_addr(temp), reg);
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
    x86_load(w->c, 8, f.reg, weave_temp_addr(f.temp));
    weave_temp_drop(w, f.temp);
}

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

bool weave_flags_free(const weaver *w) { return !w->st.flags_hw || w->st.flags_slot || !(w->need.flags & X86_ARITH); }

void weave_flags_clobber(weaver *w)
{
    if (!w->st.flags_hw) return;
    if (w->need.flags & X86_ARITH && !w->st.flags_slot) {
        bool stashed = rax_begin(w);
        x86_lahf(w->c);
        if (w->need.flags & X86_OF) x86_setcc(w->c, X86_O, X86_RAX);
        x86_store(w->c, 4, x86_gs(WEAVE_OFF(flags)), X86_RAX);
        rax_end(w, stashed);
        w->st.flags_slot = true;
    }
    w->st.flags_hw = false;
}

void weave_flags_to_hw(weaver *w)
{
    if (w->st.flags_hw || !w->st.flags_slot) return;
    bool stashed = rax_begin(w);
    x86_load(w->c, 4, X86_RAX, x86_gs(WEAVE_OFF(flags)));
    if (w->need.flags & X86_OF) x86_alu_ri(w->c, X86_ADD, 1, X86_RAX, 0x7f); /* AL = 1: overflow */
    x86_sahf(w->c);
    rax_end(w, stashed);
    w->st.flags_hw = true;
}

void weave_arm_end(weaver *w, weave_state from)
{
    if (from.flags_hw && !w->st.flags_hw) weave_flags_to_hw(w);
    uint16_t back = from.in_reg & (uint16_t)~w->st.in_reg & w->st.in_slot;
    for (unsigned r = 0; r < X86_REGS; r++)
        if (back & WEAVE_BIT(r)) weave_to_reg(w, r);
    w->st = weave_meet(w->st, from);
}

weave_state weave_meet(weave_state a, weave_state b)
{
    return (weave_state){a.in_reg & b.in_reg, a.in_slot & b.in_slot, a.flags_hw && b.flags_hw,
                         a.flags_slot && b.flags_slot};
}
