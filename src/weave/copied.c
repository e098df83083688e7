/* A small leaf routine's body in place of a call of it, where it has instructions whose registers cannot be
 * replaced (see inline.c for the others).
 *
 * The instructions are copied as they are: arguments are computed into the ABI's registers, the
 * registers that the body writes are claimed like any scratch register, and the return at the end is
 * left out, and so are those that the call's mask names. Jumps go forward and stay within the body
 * (clobber.c saw to that). The stack is not switched, since the body does not use it. Where the routine's variables are
 * too far for PC-relative operands (the tool inside a rewritten program), their addresses go through the register that
 * the instruction overwrites, or one more.
 */
#include "weave/weaver.h"

enum { MAX_JUMPS = 8 };

typedef struct jump {
    uint64_t target;
    isa_label label;
} jump;

static bool is_far(const weaver *w, const isa_insn *in)
{
    int64_t distance = (int64_t)(in->target - isa_here(w->c)), reach = w->isa->pc_reach;
    return in->bits & ISA_BIT_PCREL_MEM && (distance > reach || distance < -reach);
}

/* Is instruction k of the body one that is done elsewhere? */
static bool is_left_out(const snippet *s, unsigned k) { return k < 64 && s->value >> k & 1; }

/* A register that the instruction overwrites whole without reading it, or none. */
static unsigned overwritten(const weaver *w, const isa_insn *in)
{
    isa_effects fx;
    w->run->isa->effects(in, &fx);
    isa_regs regs = fx.kills & ~fx.reads & w->isa->abi.caller_saved;
    return regs ? (unsigned)__builtin_ctzll(regs) : ISA_NO_REG;
}

/* Jumps must be few. *far: what the body uses, when it needs a register for addresses out of reach. */
static bool can_copy(const weaver *w, const snippet *s, uint32_t len, isa_regs *far)
{
    uint64_t fn = (uint64_t)(uintptr_t)s->fn;
    const uint8_t *code = (const uint8_t *)(uintptr_t)fn;
    isa_insn in;
    isa_effects fx;
    unsigned jumps = 0, k = 0;
    isa_regs used = 0;
    bool reaches = true;
    for (uint32_t at = 0; at < len; at += in.len) {
        if (w->run->isa->decode(code + at, len - at, fn + at, &in) != ISA_OK) return false;
        if (in.flow == ISA_FLOW_COND && ++jumps > MAX_JUMPS) return false;
        if (is_left_out(s, k++)) continue;
        w->run->isa->effects(&in, &fx);
        used |= fx.reads | fx.writes;
        if (is_far(w, &in) && overwritten(w, &in) == ISA_NO_REG) reaches = false;
    }
    *far = reaches ? 0 : used;
    return true;
}

/* One instruction of the body. `base`: the register for far addresses, which holds *held; or none. */
static void copy_insn(weaver *w, const isa_insn *in, unsigned base, uint64_t *held)
{
    uint8_t out[ISA_MAX_INSN + 1], n = 0;
    bool good, moved = false;
    unsigned own = is_far(w, in) ? overwritten(w, in) : ISA_NO_REG;
    if (own != ISA_NO_REG) {
        w->isa->set(w->c, own, in->target);
        good = w->run->isa->rebase(in, own, out, &n);
    } else if (base != ISA_NO_REG && is_far(w, in)) {
        if (*held != in->target) w->isa->set(w->c, base, in->target);
        *held = in->target;
        good = w->run->isa->rebase(in, base, out, &n);
    } else {
        good = moved = w->run->isa->relocate(in, isa_here(w->c), out, &n) == ISA_MOVE_COPIED;
    }
    if (!good) weave_fail(w, INL_ERR_UNSUPPORTED, "a routine's body cannot be copied here");
    weave_note_inlined(w, in);
    isa_put(w->c, out, n);
    if (moved && w->c->fixups) w->isa->fix_relocated(w->c, in);
}

static void copy_body(weaver *w, const snippet *s, uint32_t len, unsigned base)
{
    uint64_t fn = (uint64_t)(uintptr_t)s->fn;
    const uint8_t *code = (const uint8_t *)(uintptr_t)fn;
    jump jumps[MAX_JUMPS];
    unsigned count = 0, k = 0;
    uint64_t held = 0;
    isa_insn in;
    for (uint32_t at = 0; at < len; at += in.len) {
        w->run->isa->decode(code + at, len - at, fn + at, &in);
        for (unsigned j = 0; j < count; j++) {
            if (jumps[j].target != fn + at) continue;
            w->isa->bind(w->c, jumps[j].label);
            held = 0;
        }
        if (in.flow == ISA_FLOW_RETURN) return;
        if (is_left_out(s, k++)) continue;
        if (in.flow == ISA_FLOW_COND) {
            jumps[count++] = (jump){in.target, w->isa->branch(w->c, in.cond, false)};
            continue;
        }
        copy_insn(w, &in, base, &held);
    }
}

bool weave_inline_copied(weaver *w, const snippet *s, const weave_routine *r, bool wanted, weave_val *result)
{
    const weave_abi *abi = &w->isa->abi;
    if (!r->inline_len || w->opt->save_all || s->nargs > abi->arg_count || !snippet_call_is_plain(s)) return false;
    isa_regs used = r->regs, far;
    for (unsigned i = 0; i < s->nargs; i++) used |= WEAVE_BIT(abi->args[i]);
    if (w->locked & used) return false;
    if (!can_copy(w, s, r->inline_len, &far)) return false;

    for (unsigned i = 0; i < s->nargs && !w->status; i++) {
        weave_val v = weave_eval(w, s->args[i], abi->args[i]);
        weave_into(w, &v, abi->args[i]);
    }
    if (r->flags) weave_flags_clobber(w);
    for (isa_regs left = r->regs; left; left &= left - 1) weave_claim(w, (unsigned)__builtin_ctzll(left));
    unsigned base = far ? weave_take(w, far | r->regs, ISA_NO_REG) : ISA_NO_REG;
    copy_body(w, s, r->inline_len, base);
    if (far) weave_unlock(w, base);
    for (unsigned i = 0; i < s->nargs; i++) weave_unlock(w, abi->args[i]);
    if (wanted) {
        unsigned reg = weave_take(w, 0, abi->result);
        if (reg != abi->result) w->isa->move(w->c, reg, abi->result);
        *result = weave_owned(reg);
    }
    return true;
}
