/* The program's own instructions, moved into the run.
 *
 * Most are copied as they are. What cannot be:
 *   - a PC-relative operand that does not reach: its address goes into a scratch register and the
 *     instruction is rebased on it;
 *   - an operand in the GS segment, and what reads or changes the segment: gs.c.
 *
 * A scratch register's own value waits in its slot meanwhile; the map entry says so.
 */
#include "weave/x86_64/copy.h"

static uint16_t used_regs(const weaver *w, const isa_insn *in)
{
    isa_effects fx;
    w->run->isa->effects(in, &fx);
    return (uint16_t)((fx.reads | fx.writes) & WEAVE_ALL_REGS) | WEAVE_BIT(X86_RSP);
}

weave_scratch weave_scratch_begin(weaver *w, const isa_insn *in, uint16_t allowed, bool plain)
{
    uint16_t free = allowed & ~used_regs(w, in);
    if (!free) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "no register is left to move an instruction with");
        return (weave_scratch){ISA_NO_REG, plain};
    }
    if (!plain) return (weave_scratch){(uint8_t)weave_take(w, (uint16_t)~free, ISA_NO_REG), false};
    unsigned reg = (unsigned)__builtin_ctz(free);
    x86_store(w->c, 8, weave_slot_addr(reg), reg);
    return (weave_scratch){(uint8_t)reg, true};
}

void weave_scratch_mark(weaver *w, weave_map_entry *entry, weave_scratch s)
{
    entry->code_at = (uint32_t)w->c->at;
    entry->scratch = s.reg;
    if (s.plain) {
        entry->spilled = (uint16_t)WEAVE_BIT(s.reg);
        return;
    }
    entry->spilled = w->st.in_slot & (uint16_t)~w->st.in_reg;
    entry->junk = (uint16_t) ~(w->st.in_slot | w->st.in_reg);
    entry->flags_saved = w->st.flags_slot && !w->st.flags_hw;
}

void weave_scratch_end(weaver *w, weave_scratch s)
{
    if (s.plain) x86_load(w->c, 8, s.reg, weave_slot_addr(s.reg));
    else weave_unlock(w, s.reg);
}

static bool copy_far(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    weave_scratch s = weave_scratch_begin(w, in, WEAVE_ALL_REGS, plain);
    if (s.reg == ISA_NO_REG) return false;
    x86_mov_ri(w->c, s.reg, in->target);
    uint8_t out[16], len;
    if (!w->run->isa->rebase(in, s.reg, out, &len)) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a PC-relative instruction cannot be moved that far");
        return false;
    }
    weave_scratch_mark(w, entry, s);
    x86_bytes(w->c, out, len);
    weave_scratch_end(w, s);
    return true;
}

/* Whether the instruction may be one of the special ones: cheap, errs on the safe side. */
static inline bool maybe_special(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    if (op == 0x8e || op == 0xa9 || op == 0xae) return true;
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x65) return true;
    return false;
}

static bool copy(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    x86_code *c = w->c;
    uint8_t len;
    if (maybe_special(in)) {
        int done = weave_copy_gs(w, in, entry, plain);
        if (done) return done > 0;
    }
    if (c->full || c->size - c->at < 16) {
        c->full = true;
        return true;
    }
    switch (w->run->isa->relocate(in, x86_here(c), c->write + c->at, &len)) {
    case ISA_MOVE_COPIED: c->at += len; return true;
    case ISA_MOVE_FAR: return copy_far(w, in, entry, plain);
    default: weave_fail(w, INL_ERR_UNSUPPORTED, "a branch where none was expected"); return false;
    }
}

bool weave_copy_plain(weaver *w, const weave_insn *insn, weave_map_entry *entry)
{
    return copy(w, &insn->in, entry, true);
}

bool weave_copy(weaver *w, uint32_t insn, weave_map_entry *entry)
{
    return copy(w, &w->run->insns[insn].in, entry, false);
}
