/* The program's instructions that cannot be copied as they are: what sets the thread pointer, by which woven code finds
 * the frame, and loads of literals that are out of reach, whose addresses are computed from where the code runs. */
#include "isa/aarch64/emit.h"
#include "weave/aarch64/machine.h"
#include "weave/copy.h"

enum { SET_TLS = 0xd51bd040 /* msr tpidr_el0, x0 */ };

/* msr tpidr_el0, reg: the new block's word becomes the frame first. */
static bool set_tls(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    unsigned reg = a64_word(in) & 31;
    if (reg == 31) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a thread pointer of zero leaves no way to the thread's frame");
        return false;
    }
    weave_scratch s = weave_scratch_begin(w, in, w->isa->all, plain);
    if (s.reg == ISA_NO_REG) return false;
    weave_a64_frame(w->c, s.reg, 0);
    a64_store(w->c, 8, a64_at(reg, WEAVE_FRAME_WORD), s.reg);
    weave_scratch_mark(w, entry, s);
    a64_put(w->c, a64_word(in));
    weave_scratch_end(w, s);
    return true;
}

static bool load_far(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    uint8_t out[ISA_MAX_INSN + 1], len;
    weave_scratch s = weave_scratch_begin(w, in, w->isa->all, plain);
    if (s.reg == ISA_NO_REG) return false;
    a64_address(w->c, s.reg, in->target);
    if (!w->run->isa->rebase(in, s.reg, out, &len)) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a PC-relative instruction cannot be moved that far");
        return false;
    }
    weave_scratch_mark(w, entry, s);
    isa_put(w->c, out, len);
    weave_scratch_end(w, s);
    return true;
}

int weave_a64_copy_special(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    uint8_t out[ISA_MAX_INSN + 1], len;
    bool done;
    if ((a64_word(in) & ~31u) == SET_TLS) done = set_tls(w, in, entry, plain);
    else if (in->bits & ISA_BIT_PCREL_MEM && w->run->isa->relocate(in, isa_here(w->c), out, &len) == ISA_MOVE_FAR)
        done = load_far(w, in, entry, plain);
    else return 0;
    return done ? 1 : -1;
}
