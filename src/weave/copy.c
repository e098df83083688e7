/* The program's own instructions, moved into the run.
 *
 * Most are copied as they are. What cannot be:
 *   - a PC-relative operand that does not reach: its address goes into a scratch register and the
 *     instruction is rebased on it;
 *   - an operand whose address a snippet has set (place.c, copy_placed);
 *   - what the instruction set's table takes upon itself (copy_special): use of what woven code reaches the frame by.
 *
 * A scratch register's own value waits in its slot meanwhile; the map entry says so.
 */
#include "weave/copy.h"

static isa_regs used_regs(const weaver *w, const isa_insn *in)
{
    isa_effects fx;
    w->run->isa->effects(in, &fx);
    return ((fx.reads | fx.writes) & w->isa->all) | w->isa->reserved;
}

weave_scratch weave_scratch_begin(weaver *w, const isa_insn *in, isa_regs allowed, bool plain)
{
    isa_regs free = w->isa->all & allowed & ~used_regs(w, in);
    if (!free) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "no register is left to move an instruction with");
        return (weave_scratch){ISA_NO_REG, plain};
    }
    if (!plain) return (weave_scratch){(uint8_t)weave_take(w, ~free, ISA_NO_REG), false};
    unsigned reg = (unsigned)__builtin_ctzll(free);
    weave_slot_store(w, reg);
    return (weave_scratch){(uint8_t)reg, true};
}

void weave_scratch_mark(weaver *w, weave_map_entry *entry, weave_scratch s)
{
    entry->code_at = (uint32_t)w->c->at;
    entry->scratch = s.reg;
    if (s.plain) {
        entry->spilled = WEAVE_BIT(s.reg);
        return;
    }
    entry->spilled = w->st.in_slot & ~w->st.in_reg;
    entry->junk = w->isa->all & ~(w->st.in_slot | w->st.in_reg);
    entry->flags_saved = w->st.flags_slot && !w->st.flags_hw;
}

void weave_scratch_end(weaver *w, weave_scratch s)
{
    if (s.plain) weave_slot_load(w, s.reg, s.reg);
    else weave_unlock(w, s.reg);
}

static bool copy_far(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    weave_scratch s = weave_scratch_begin(w, in, w->isa->all, plain);
    if (s.reg == ISA_NO_REG) return false;
    w->isa->set(w->c, s.reg, in->target);
    isa_note_absolute(w->c);
    uint8_t out[ISA_MAX_INSN + 1], len;
    if (!w->run->isa->rebase(in, s.reg, out, &len)) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a PC-relative instruction cannot be moved that far");
        return false;
    }
    weave_scratch_mark(w, entry, s);
    isa_put(w->c, out, len);
    weave_scratch_end(w, s);
    return true;
}

static bool copy(weaver *w, const weave_insn *insn, weave_map_entry *entry, bool plain)
{
    const isa_insn *in = &insn->in;
    isa_code *c = w->c;
    uint8_t len;
    unsigned places = plain ? insn->placed : w->placed;
    if (places) return w->isa->copy_placed(w, in, entry, places, plain);
    int special = w->isa->copy_special(w, in, entry, plain);
    if (special) return special > 0;
    if (c->full || c->size - c->at < ISA_MAX_INSN + 1) {
        c->full = true;
        return true;
    }
    switch (w->run->isa->relocate(in, isa_here(c), c->write + c->at, &len)) {
    case ISA_MOVE_COPIED:
        c->at += len;
        if (c->fixups) w->isa->fix_relocated(c, in);
        return true;
    case ISA_MOVE_FAR: return copy_far(w, in, entry, plain);
    default: weave_fail(w, INL_ERR_UNSUPPORTED, "a branch where none was expected"); return false;
    }
}

bool weave_copy_plain(weaver *w, const weave_insn *insn, weave_map_entry *entry) { return copy(w, insn, entry, true); }

bool weave_copy(weaver *w, uint32_t insn, weave_map_entry *entry)
{
    return copy(w, &w->run->insns[insn], entry, false);
}
