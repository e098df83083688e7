/* Instructions of x86-64 in their new place, with native control flow.
 *
 *   jmp, jcc        the same, to the target's new place if it has moved; the short form where it reaches
 *   loop, jrcxz     the same, or over a short jump to a long one
 *   call            the same: the return address is the new one
 *   indirect, ret   copied; RIP-relative operands re-aimed
 *   syscall         copied, or by way of the gate where the tool has to know of it:
 *                       lea behind(%rip),%rcx ; jmp *%gs:gate ; behind:
 *                   (the instruction destroys rcx and r11 anyway)
 *   others          copied
 */
#include "move/x86_64/machine.h"
#include "isa/x86_64/emit.h"

#include <string.h>

enum { REL32, REL8 }; /* forms */

static const move_form forms[] = {
    [REL32] = {.size = 4, .from = 4, .low = INT32_MIN, .high = INT32_MAX, .shorter = REL8},
    [REL8] = {.size = 1, .from = 1, .low = INT8_MIN, .high = INT8_MAX, .is_short = true, .shorter = MOVE_NO_FORM},
};

static bool link(uint8_t *bytes, uint64_t at, unsigned form, uint64_t target)
{
    int64_t d = (int64_t)(target - (at + forms[form].from));
    memcpy(bytes, &d, forms[form].size);
    return d >= forms[form].low && d <= forms[form].high;
}

static bool jump_to(move_work *w, isa_code *c, uint64_t target, bool was_short)
{
    uint32_t site;
    if (move_branch_is_short(w, target, move_here(w, c) + 2, REL8, was_short, &site)) {
        static const uint8_t bytes[] = {0xeb, 0};
        x86_bytes(c, bytes, sizeof bytes);
        return c->full || move_note_branch(w, target, move_here(w, c) - 1, REL8, site);
    }
    size_t at = x86_jmp_rel32(c, x86_here(c), false);
    return c->full || move_note_branch(w, target, move_place(w, c, at), REL32, site);
}

static bool jump_if(move_work *w, isa_code *c, const isa_insn *in)
{
    uint32_t site;
    if (move_branch_is_short(w, in->target, move_here(w, c) + 2, REL8, in->len <= 3, &site)) {
        uint8_t bytes[] = {(uint8_t)(0x70 | in->cond), 0};
        x86_bytes(c, bytes, sizeof bytes);
        return c->full || move_note_branch(w, in->target, move_here(w, c) - 1, REL8, site);
    }
    size_t at = x86_jcc_rel32(c, in->cond, x86_here(c), false);
    return c->full || move_note_branch(w, in->target, move_place(w, c, at), REL32, site);
}

/* loop, loope, loopne, jrcxz and jecxz have the short form only. */
static bool jump_on_register(move_work *w, isa_code *c, const isa_insn *in)
{
    uint8_t bytes[16];
    uint32_t site;
    bool is_short = move_branch_is_short(w, in->target, move_here(w, c) + in->len, REL8, true, &site);
    memcpy(bytes, in->raw, in->len);
    bytes[in->len - 1] = is_short ? 0 : 2;
    x86_bytes(c, bytes, in->len);
    if (is_short) return c->full || move_note_branch(w, in->target, move_here(w, c) - 1, REL8, site);
    x86_label past = x86_jmp_label(c, 1);
    size_t at = x86_jmp_rel32(c, x86_here(c), false);
    bool ok = c->full || move_note_branch(w, in->target, move_place(w, c, at), REL32, site);
    return x86_bind(c, past) && ok;
}

/* Anything with a 32-bit displacement at its end: call, xbegin. */
static bool with_rel32(move_work *w, isa_code *c, const isa_insn *in, const uint8_t *head, unsigned n)
{
    static const uint8_t zero[4];
    x86_bytes(c, head, n);
    x86_bytes(c, zero, sizeof zero);
    return c->full || move_note_branch(w, in->target, move_here(w, c) - 4, REL32, MOVE_NO_SITE);
}

/* --- system calls --- */

static bool sets_rax(const isa_insn *in, long *nr)
{
    const uint8_t *op = in->raw + in->opcode_at;
    int32_t imm;
    if (in->opcode_at == 0 && op[0] == 0xb8 && in->imm_len == 4) {
        memcpy(&imm, in->raw + in->imm_at, 4);
        *nr = (long)(uint32_t)imm;
        return true;
    }
    if (in->opcode_at == 1 && in->raw[0] == 0x48 && op[0] == 0xc7 && op[1] == 0xc0) {
        memcpy(&imm, in->raw + in->imm_at, 4);
        *nr = imm;
        return true;
    }
    if (in->opcode_at == 0 && (op[0] == 0x31 || op[0] == 0x33) && op[1] == 0xc0) {
        *nr = 0;
        return true;
    }
    return false;
}

/* The call's number where the run's own instructions before it say so, else -1. */
static long call_number(const weave_run *run, uint32_t i)
{
    while (i-- > 0) {
        const isa_insn *in = &run->insns[i].in;
        isa_effects fx;
        long nr;
        if (sets_rax(in, &nr)) return nr;
        run->isa->effects(in, &fx);
        if (in->flow != ISA_FLOW_NEXT || fx.writes & 1u << X86_RAX) return -1;
    }
    return -1;
}

static bool lower_syscall(move_work *w, isa_code *c, const weave_run *run, uint32_t i)
{
    const isa_insn *in = &run->insns[i].in;
    bool early = w->runs_early && w->runs_early[w->proc];
    if (!w->instruments || early || !x86_is_syscall(in) || !w->client->gate.matters ||
        !w->client->gate.matters(call_number(run, i))) {
        x86_bytes(c, in->raw, in->len);
        return true;
    }
    x86_addr gate = x86_gs(w->client->gate.at);
    isa_code probe = {.write = (uint8_t[16]){0}, .exec = x86_here(c), .size = 16};
    x86_jmp_m(&probe, gate);
    x86_lea(c, X86_RCX, x86_rip(x86_here(c) + 7 + probe.at)); /* lea with a displacement: 7 bytes */
    x86_jmp_m(c, gate);
    w->plan.has_syscalls = w->plan.uses_frame = true;
    return true;
}

/* --- calls that stay in place --- */

static bool call_in_place(move_work *w, isa_code *c, const isa_insn *in)
{
    size_t at = x86_jmp_rel32(c, x86_here(c), false);
    return c->full || move_link(w, (uint32_t)move_place(w, c, at), REL32, in->addr);
}

static bool call_from_old(move_work *w, isa_code *c, const isa_insn *in)
{
    static const uint8_t exchange[] = {0x48, 0x87, 0x04, 0x24}; /* xchg %rax,(%rsp) */
    x86_push(c, X86_RAX);
    x86_lea(c, X86_RAX, x86_rip(in->addr + in->len));
    x86_bytes(c, exchange, sizeof exchange);
    if (in->flow == ISA_FLOW_CALL) return jump_to(w, c, in->target, false);
    x86_jmp_m(c, x86_rip(in->target));
    return true;
}

static bool lower(move_work *w, isa_code *c, const weave_run *run, uint32_t i)
{
    static const uint8_t call[] = {0xe8}, xbegin[] = {0xc7, 0xf8};
    const isa_insn *in = &run->insns[i].in;
    switch (in->flow) {
    case ISA_FLOW_JUMP: return jump_to(w, c, in->target, in->len <= 3);
    case ISA_FLOW_COND: return jump_if(w, c, in);
    case ISA_FLOW_COND_REG: return jump_on_register(w, c, in);
    case ISA_FLOW_CALL: return with_rel32(w, c, in, call, sizeof call);
    case ISA_FLOW_TX: return with_rel32(w, c, in, xbegin, sizeof xbegin);
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND:
    case ISA_FLOW_RETURN: return move_copied(c, run->isa, in);
    case ISA_FLOW_SYSCALL: return lower_syscall(w, c, run, i);
    default: return move_copied(c, run->isa, in);
    }
}

enum { FAR_JUMP = 5, NEAR_JUMP = 2, INT3 = 0xcc };

static bool needs_weaver(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x65) return true;
    if (op == 0xa9 && in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f) return true; /* pop gs */
    if (op == 0x8e && (in->raw[in->modrm_at] >> 3 & 7) == 5) return true;               /* mov gs */
    return x86_is_rdfsbase_family(in);
}

static bool asks_where(const isa_insn *in) { return in->flow == ISA_FLOW_CALL && in->target == in->addr + in->len; }

static bool jump(uint64_t at, uint64_t target, unsigned size, uint8_t *out)
{
    int64_t d = (int64_t)(target - (at + size));
    if (size == NEAR_JUMP) {
        out[0] = 0xeb;
        out[1] = (uint8_t)d;
        return d == (int8_t)d;
    }
    int32_t narrow = (int32_t)d;
    out[0] = 0xe9;
    memcpy(out + 1, &narrow, 4);
    return d == narrow;
}

static void pad(isa_code *c, uint32_t bytes)
{
    for (uint32_t n; bytes; bytes -= n) {
        n = bytes < 9 ? bytes : 9;
        x86_nop(c, n);
    }
}

const move_isa move_isa_here = {
    .isa = &isa_x86_64,
    .unit = 1,
    .far_jump = FAR_JUMP,
    .near_jump = NEAR_JUMP,
    .near_back = 128,
    .near_on = 127,
    .jump = jump,
    .filler = INT3,
    .pad = pad,
    .forms = forms,
    .link = link,
    .lower = lower,
    .jump_to = jump_to,
    .call_in_place = call_in_place,
    .call_from_old = call_from_old,
    .needs_weaver = needs_weaver,
    .asks_where = asks_where,
    .takes_return = move_x86_takes_return,
    .checks_stack = move_x86_checks_stack,
    .checks_limit = move_x86_checks_limit,
    .keeps_everything = move_x86_keeps_everything,
    .asks_piece = move_x86_asks_piece,
    .kept = 0xf008, /* rbx, r12 to r15 */
    .table_fits = move_x86_table_fits,
    .names_table = move_x86_names_table,
    .names_table_only = move_x86_names_table_only,
    .reaim = move_x86_reaim,
    .reloc = move_x86_reloc,
    .find_name = move_x86_find_name,
    .is_name = move_x86_is_name,
    .aim = move_x86_aim,
    .mark_size = move_x86_mark_size,
};
