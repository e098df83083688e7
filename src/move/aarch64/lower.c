/* Instructions of AArch64 in their new place, with native control flow.
 *
 *   b, bl                     the same, to the target's new place if it has moved; 128 MB either way
 *   b.cond, cbz, tbz          the same where it reaches (1 MB; tbz 32 KB), else the opposite over a b
 *   br, blr, ret              copied: the return address is the new one, and signed as such (retaa)
 *   adr, adrp, ldr literal    of the old place; those that do not reach, see isa/aarch64/move.c. A literal for a vector
 *                             register needs another for its address: the weaver has one; in a procedure without
 *                             snippets x16 waits on the stack meanwhile
 *   svc                       syscall.c
 *   others                    copied
 *
 * Old code is caught by a b, which replaces one instruction. Where that was a mark of indirect branches' targets (bti),
 * the file no longer promises that there is one at each (elf/notes.c). */
#include "move/aarch64/machine.h"
#include "isa/a64_tables.h"
#include "isa/aarch64/emit.h"
#include "isa/aarch64/move.h"

#include <string.h>

enum { FAR, FAR_COND, FAR_BIT, NEAR_COND, NEAR_BIT }; /* forms; the far ones of conditional branches: their b */

enum { INSN = 4, B = 0x14000000, SET_TLS = 0xd51bd040 /* msr tpidr_el0, x0 */ };

#define REACH(bits) .low = -(1ll << ((bits) + 1)), .high = (1ll << ((bits) + 1)) - INSN
static const move_form forms[] = {
    [FAR] = {.size = INSN, REACH(26), .shorter = MOVE_NO_FORM},
    [FAR_COND] = {.size = INSN, REACH(26), .shorter = NEAR_COND},
    [FAR_BIT] = {.size = INSN, REACH(26), .shorter = NEAR_BIT},
    [NEAR_COND] = {.size = INSN, REACH(19), .is_short = true, .shorter = MOVE_NO_FORM},
    [NEAR_BIT] = {.size = INSN, REACH(14), .is_short = true, .shorter = MOVE_NO_FORM},
};

static bool link(uint8_t *bytes, uint64_t at, unsigned form, uint64_t target)
{
    uint32_t word;
    (void)form; /* the word says which it is */
    memcpy(&word, bytes, INSN);
    if (!a64_retarget(&word, at, target)) return false;
    memcpy(bytes, &word, INSN);
    return true;
}

static bool noted(move_work *w, isa_code *c, uint32_t word, uint64_t target, unsigned form, uint32_t site)
{
    a64_put(c, word);
    return c->full || move_note_branch(w, target, move_here(w, c) - INSN, form, site);
}

static bool jump_to(move_work *w, isa_code *c, uint64_t target, bool was_short)
{
    (void)was_short;
    return noted(w, c, B, target, FAR, MOVE_NO_SITE);
}

static bool is_on_bit(uint32_t word) { return (word & 0x7e000000) == 0x36000000; }

static bool jump_if(move_work *w, isa_code *c, const isa_insn *in)
{
    uint8_t over[A64_MOVED_BRANCH];
    uint32_t site, word = a64_word(in);
    bool on_bit = is_on_bit(word);
    unsigned near = on_bit ? NEAR_BIT : NEAR_COND;
    if (move_branch_is_short(w, in->target, move_here(w, c), near, true, &site))
        return noted(w, c, word, in->target, near, site);
    uint64_t here = isa_here(c), beyond = here + (1 << 24); /* the pair, by a target that is out of reach */
    if (a64_move_branch(in, here, beyond, over) != A64_MOVED_BRANCH) return false;
    memcpy(&word, over, INSN);
    a64_put(c, word);
    return noted(w, c, B, in->target, on_bit ? FAR_BIT : FAR_COND, site);
}

static bool call(move_work *w, isa_code *c, const isa_insn *in)
{
    return noted(w, c, a64_word(in), in->target, FAR, MOVE_NO_SITE);
}

static bool lower(move_work *w, isa_code *c, const weave_run *run, uint32_t i)
{
    const isa_insn *in = &run->insns[i].in;
    switch (in->flow) {
    case ISA_FLOW_JUMP: return jump_to(w, c, in->target, false);
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG: return jump_if(w, c, in);
    case ISA_FLOW_CALL: return call(w, c, in);
    case ISA_FLOW_SYSCALL: return move_a64_lower_syscall(w, c, run, i);
    default: return move_copied(c, run->isa, in);
    }
}

/* --- what does not reach --- */

/* A literal without a general register of its own for the address. */
static bool needs_another(const isa_insn *in)
{
    enum { FURTHER = 64 << 20 }; /* than a literal can be */
    uint8_t bytes[ISA_MAX_INSN + 1], len;
    if (!(in->bits & ISA_BIT_PCREL_MEM)) return false;
    return isa_aarch64.relocate(in, in->addr + FURTHER, bytes, &len) == ISA_MOVE_FAR;
}

static bool copy_far(isa_code *c, const isa *set, const isa_insn *in)
{
    uint8_t bytes[ISA_MAX_INSN + 1], len;
    if (in->row == A64_PRFM_LIT) {
        a64_nop(c, INSN);
        return true;
    }
    if (!set->rebase(in, A64_IP0, bytes, &len)) return false;
    a64_store(c, 8, a64_pre(A64_SP, -16), A64_IP0);
    a64_address(c, A64_IP0, in->target);
    isa_put(c, bytes, len);
    a64_load(c, 8, A64_IP0, a64_post(A64_SP, 16));
    return !c->unreachable;
}

static bool needs_weaver(const isa_insn *in) { return (a64_word(in) & ~31u) == SET_TLS || needs_another(in); }

static bool asks_where(const isa_insn *in) { return in->flow == ISA_FLOW_CALL && in->target == in->addr + INSN; }

static bool jump(uint64_t at, uint64_t target, unsigned size, uint8_t *out)
{
    uint32_t word = B;
    bool reaches = a64_retarget(&word, at, target);
    memcpy(out, &word, INSN);
    return reaches && size == INSN;
}

static void pad(isa_code *c, uint32_t bytes) { a64_nop(c, bytes); }

static size_t mark_size(const uint8_t *bytes, size_t size)
{
    isa_insn in;
    return isa_aarch64.decode(bytes, size, 0, &in) == ISA_OK && a64_is_landing(&in) ? INSN : 0;
}

const move_isa move_isa_here = {
    .isa = &isa_aarch64,
    .unit = INSN,
    .far_jump = INSN,
    .jump = jump,
    .filler = 0, /* udf */
    .pad = pad,
    .forms = forms,
    .link = link,
    .lower = lower,
    .jump_to = jump_to,
    .copy_far = copy_far,
    .needs_weaver = needs_weaver,
    .asks_where = asks_where,
    .checks_stack = move_a64_checks_stack,
    .kept = 0x1ff80000, /* x19 to x28 */
    .table_fits = move_a64_table_fits,
    .names_table_only = move_a64_names_table_only,
    .reaim = move_a64_reaim,
    .mark_size = mark_size,
};
