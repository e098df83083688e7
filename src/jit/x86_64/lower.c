/* Control transfers of x86-64, as the cache makes them.
 *
 *   direct jump     jmp rel32                        to the target's body once linked, to a stub before
 *   jcc             jcc rel32                        likewise; falls through in place
 *   loop, jrcxz     the instruction itself over a short jump, then as a direct jump
 *   call            push of the ORIGINAL return address, then a direct jump
 *   indirect        target into rcx (and the return address pushed), rdx = low 16 bits of it, jump
 *                   through the thread's table; what stands there checks, see ibl.c
 *   ret             pop into rcx, then the same
 *   paired          (paired.c) a call and a `ret` of the processor's own take part, on the thread's table of returns
 *   syscall         rcx = address behind it, jump to the gate
 *
 * Flags are never touched, and at every instruction that may fault the program's registers are its own or in their
 * slots (jit_mark says so). Nothing is stored below the program's stack pointer.
 * A return address is pushed by one 64-bit store, since the return's load must be served by it.
 */
#include "isa/x86_64/emit.h"
#include "jit/core.h"
#include "jit/x86_64/layout.h"

#include <string.h>

static x86_addr slot(unsigned reg) { return x86_gs(OFF_SLOT + 8 * (int32_t)reg); }

static void mark(jit_build *b, uint32_t insn, isa_regs spilled)
{
    if (b->mark_count == JIT_MAX_MARKS) return;
    b->marks[b->mark_count++] = (jit_mark){(uint32_t)b->code->at, insn, spilled | b->stored};
}

/* RCX or RDX, which the transfer uses: the program's value may be in the slot already (jit_parks). */
static void park(jit_build *b, unsigned reg)
{
    if (!(b->stored & 1u << reg)) x86_store(b->code, 8, slot(reg), reg);
}

/* The displacement at rel32_at will lead to `target`. */
static bool want_exit(jit_build *b, uint64_t target, size_t rel32_at)
{
    if (b->exit_count == JIT_MAX_EXITS) return false;
    b->exits[b->exit_count++] = (jit_wanted_exit){target, (uint32_t)rel32_at, 0};
    return true;
}

static bool jump_to(jit_build *b, uint64_t target)
{
    /* Any target in reach does until the stub is known. */
    return want_exit(b, target, x86_jmp_rel32(b->code, x86_here(b->code), true));
}

static bool is_outside(const jit_build *b, uint64_t target)
{
    return b->section && (target < b->section->low || target >= b->section->high);
}

/* The same, at an exit from the run: the restartable sequence that it is in is perhaps left. */
static bool go_to(jit_build *b, uint64_t target)
{
    bool done = b->done;
    b->done = false;
    return (!is_outside(b, target) || jit_emit_section_exit(b->code, done)) && jump_to(b, target);
}

/* Where it goes is not known. */
static bool leave_section(jit_build *b) { return !b->section || jit_emit_section_exit(b->code, false); }

static bool lower_cond(jit_build *b, const isa_insn *in)
{
    if (!is_outside(b, in->target))
        return want_exit(b, in->target, x86_jcc_rel32(b->code, in->cond, x86_here(b->code), true));
    x86_label past = x86_jcc_label(b->code, in->cond ^ 1, 4);
    bool ok = go_to(b, in->target);
    return x86_bind(b->code, past) && ok;
}

static bool push_constant(jit_build *b, uint64_t value)
{
    static const uint8_t push_rip[] = {0xff, 0x35, 0, 0, 0, 0};
    if ((int64_t)value == (int32_t)value) {
        isa_note_absolute(b->code);
        return x86_push_i(b->code, (int64_t)value);
    }
    if (b->const_count == JIT_MAX_INSNS) return false;
    x86_bytes(b->code, push_rip, sizeof push_rip);
    b->consts[b->const_count++] = (jit_wanted_const){value, (uint32_t)(b->code->at - 4)};
    return true;
}

/* A call of the processor's own, whose stack is the thread's table of returns; behind it, where the processor's return
 * stack leads, the landing.
 *
 *          mov gs:slot[r10], r10 ; mov r10, rsp ; rsp = the end of the return address's entry
 *          call on
 *          landing of the return address ; jmp there
 *     on:  mov rsp, r10 ; mov r10, gs:slot[r10]
 *
 * (A register waits rather than rsp: its own store and load would delay all that follows.)
 */
static size_t begin_pair(x86_code *c, const jit_arena *a, uint64_t back)
{
    static const uint8_t call[] = {0xe8, 0, 0, 0, 0};
    x86_store(c, 8, slot(X86_R10), X86_R10);
    x86_mov_rr(c, 8, X86_R10, X86_RSP);
    x86_load(c, 8, X86_RSP, x86_gs(OFF_RETURNS));
    x86_lea(c, X86_RSP, x86_at(X86_RSP, 8 * (int32_t)(back & 0xffff) + 8));
    x86_bytes(c, call, sizeof call);
    size_t behind = c->at;
    jit_emit_return_landing(c, a, back);
    return behind;
}

/* What depends on addresses is written again when the pair is elsewhere; the call's distance stays as it is. */
bool jit_emit_pair_again(isa_code *c, const jit_arena *a, uint64_t back)
{
    enum { MOST = 128 };
    uint8_t before[MOST];
    if (c->size > sizeof before) return false;
    memcpy(before, c->write, c->size);
    size_t behind = begin_pair(c, a, back);
    if (c->full || c->unreachable || c->at != c->size) return false;
    memcpy(c->write + behind - 4, before + behind - 4, 4);
    return true;
}

static bool pair_call(jit_build *b, uint64_t back)
{
    x86_code *c = b->code;
    isa_fixups *fixups = c->fixups;
    size_t begin = c->at;
    c->fixups = NULL;
    size_t behind = begin_pair(c, b->arena, back);
    c->fixups = fixups;
    b->pair = (jit_pair){back, (uint32_t)begin, (uint32_t)(c->at - begin)};
    if (!jump_to(b, back)) return false;
    int32_t distance = (int32_t)(c->at - behind);
    if (!c->full) memcpy(c->write + behind - sizeof distance, &distance, sizeof distance);
    x86_mov_rr(c, 8, X86_RSP, X86_R10);
    x86_load(c, 8, X86_R10, slot(X86_R10));
    return true;
}

static bool push_return(jit_build *b, uint64_t back)
{
    return push_constant(b, back) && (!jit_paired_wanted(b) || pair_call(b, back));
}

static void note_kind(x86_code *c, unsigned kind)
{
    if (jit.options.stats) x86_store_imm(c, 8, x86_gs(OFF_KIND), kind);
}

/* The program's rdx is in its slot. */
static void count_indirect(x86_code *c, unsigned kind)
{
    if (!jit.options.stats) return;
    note_kind(c, kind);
    x86_load(c, 8, X86_RDX, x86_gs(OFF_EXECUTED + 8 * (int32_t)kind));
    x86_lea(c, X86_RDX, x86_at(X86_RDX, 1));
    x86_store(c, 8, x86_gs(OFF_EXECUTED + 8 * (int32_t)kind), X86_RDX);
}

/* rcx is the target, the program's rcx is in its slot. */
static void jump_through_table(jit_build *b, unsigned kind, bool paired)
{
    static const uint8_t movzx_edx_cx[] = {0x0f, 0xb7, 0xd1};
    x86_code *c = b->code;
    park(b, X86_RDX);
    count_indirect(c, kind);
    x86_bytes(c, movzx_edx_cx, sizeof movzx_edx_cx);
    x86_addr entry = {ISA_NO_REG, X86_RDX, 8, X86_SEG_GS, false, OFF_IBL};
    if (paired) {
        x86_store(c, 8, slot(X86_R11), X86_R11);
        x86_mov_rr(c, 8, X86_R11, X86_RSP);
        x86_load(c, 8, X86_RSP, x86_gs(OFF_RETURNS));
        x86_lea(c, X86_RSP, x86_indexed(X86_RSP, X86_RDX, 8, 0));
        x86_ret(c);
    } else {
        x86_jmp_m(c, entry);
    }
}

/* --- targets from registers and memory --- */

/* The same memory operand (segment and address-size prefixes included) as the source of
 * `opcode rcx, m64`. Not for RIP-relative operands. */
static void rcx_from_operand(x86_code *c, const isa_insn *in, uint8_t opcode, bool keep_segment)
{
    uint8_t out[24];
    unsigned n = 0, rex = 0;
    for (unsigned i = 0; i < in->opcode_at; i++) {
        uint8_t p = in->raw[i];
        if (p == 0x67 || (keep_segment && (p == 0x64 || p == 0x65))) out[n++] = p;
        if ((p & 0xf0) == 0x40) rex = p; /* the last before the opcode counts; others are legacy */
        else rex = 0;
    }
    out[n++] = (uint8_t)(0x48 | (rex & 3));
    out[n++] = opcode;
    out[n++] = (uint8_t)((in->raw[in->modrm_at] & 0xc7) | X86_RCX << 3);
    unsigned rest = in->len - in->modrm_at - 1u;
    memcpy(out + n, in->raw + in->modrm_at + 1, rest);
    x86_bytes(c, out, n + rest);
}

/* The last segment prefix that means anything in 64-bit mode. */
static unsigned segment_of(const isa_insn *in)
{
    unsigned segment = X86_SEG_NONE;
    for (unsigned i = 0; i < in->opcode_at; i++) {
        if (in->raw[i] == 0x64) segment = X86_SEG_FS;
        if (in->raw[i] == 0x65) segment = X86_SEG_GS;
    }
    return segment;
}

static bool reaches(uint64_t from, uint64_t to)
{
    int64_t d = (int64_t)(to - from);
    return d > -0x7fff0000ll && d < 0x7fff0000ll;
}

isa_regs jit_parks(void *build, const weave_run *run, uint32_t i, isa_regs held)
{
    jit_build *b = build;
    const isa_insn *in = &run->insns[i].in;
    bool indirect = in->flow == ISA_FLOW_JUMP_IND || in->flow == ISA_FLOW_CALL_IND;
    bool parks = in->flow == ISA_FLOW_RETURN || (indirect && segment_of(in) != X86_SEG_GS);
    isa_regs set = parks && !b->section ? 1u << X86_RCX | 1u << X86_RDX : 0;
    b->stored = set & held;
    return set;
}

/* The program's GS base is a field of the frame; its RIP-relative and plain forms alike. */
static void load_from_gs(x86_code *c, const isa_insn *in)
{
    isa_note_absolute(c);
    if (in->bits & ISA_BIT_PCREL_MEM) x86_mov_ri(c, X86_RCX, in->target);
    else rcx_from_operand(c, in, 0x8d, false);
    x86_store(c, 8, slot(X86_RDX), X86_RDX);
    x86_load(c, 8, X86_RDX, x86_gs(OFF_APP_GS));
    x86_load(c, 8, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 0));
    x86_load(c, 8, X86_RDX, slot(X86_RDX));
}

static void load_target(jit_build *b, const isa_insn *in, uint32_t i)
{
    x86_code *c = b->code;
    uint8_t modrm = in->raw[in->modrm_at];
    park(b, X86_RCX);
    if (modrm >> 6 == 3) {
        unsigned rex = in->opcode_at ? in->raw[in->opcode_at - 1] : 0;
        unsigned reg = (modrm & 7) | ((rex & 0xf1) == 0x41 ? 8 : 0);
        if (reg != X86_RCX) x86_mov_rr(c, 8, X86_RCX, reg);
    } else if (segment_of(in) == X86_SEG_GS) {
        load_from_gs(c, in);
        mark(b, i, 1u << X86_RCX | 1u << X86_RDX);
        return;
    } else if (in->bits & ISA_BIT_PCREL_MEM) {
        unsigned segment = segment_of(in);
        if (reaches(x86_here(c), in->target) && segment == X86_SEG_NONE) {
            x86_load(c, 8, X86_RCX, x86_rip(in->target));
        } else {
            x86_mov_ri(c, X86_RCX, in->target);
            isa_note_absolute(c);
            mark(b, i, 1u << X86_RCX);
            x86_load(c, 8, X86_RCX, (x86_addr){X86_RCX, ISA_NO_REG, 1, (uint8_t)segment, false, 0});
        }
    } else {
        rcx_from_operand(c, in, 0x8b, true);
    }
    mark(b, i, 1u << X86_RCX);
}

static bool lower_indirect(jit_build *b, const isa_insn *in, uint32_t i)
{
    load_target(b, in, i);
    bool calls = in->flow == ISA_FLOW_CALL_IND;
    if (calls && !push_return(b, in->addr + in->len)) return false;
    jump_through_table(b, calls ? JIT_KIND_CALL : JIT_KIND_JUMP, false);
    return true;
}

static bool lower_return(jit_build *b, const isa_insn *in, uint32_t i)
{
    x86_code *c = b->code;
    park(b, X86_RCX);
    x86_pop(c, X86_RCX);
    mark(b, i, 1u << X86_RCX);
    if (in->imm_len == 2) x86_lea(c, X86_RSP, x86_at(X86_RSP, in->raw[in->imm_at] | in->raw[in->imm_at + 1] << 8));
    jump_through_table(b, JIT_KIND_RETURN, jit_paired_wanted(b));
    return true;
}

/* --- the others --- */

static bool lower_cond_reg(jit_build *b, const isa_insn *in)
{
    x86_code *c = b->code;
    uint8_t own[ISA_MAX_INSN];
    memcpy(own, in->raw, in->len);
    own[in->len - 1] = b->section ? 5 : 2; /* over the jump */
    x86_bytes(c, own, in->len);
    x86_label past = x86_jmp_label(c, b->section ? 4 : 1);
    bool ok = go_to(b, in->target);
    return x86_bind(c, past) && ok;
}

static void lower_syscall(x86_code *c, const isa_insn *in)
{
    x86_mov_ri(c, X86_RCX, in->addr + in->len);
    isa_note_absolute(c);
    x86_store(c, 8, x86_gs(OFF_SYSCALL_RESUME), X86_RCX);
    note_kind(c, JIT_KIND_SYSCALL);
    x86_jmp_m(c, x86_gs(OFF_SYSCALL_GATE));
}

/* The runtime is told the instruction's address. */
static void lower_special(x86_code *c, const isa_insn *in)
{
    isa_note_absolute(c);
    x86_store_imm(c, 4, x86_gs(CTX_PC), (int32_t)in->addr);
    x86_store_imm(c, 4, x86_gs(CTX_PC + 4), (int32_t)(in->addr >> 32));
    x86_store_imm(c, 8, x86_gs(OFF_LEAVE), RUN_LEAVE_SPECIAL);
    x86_jmp_m(c, x86_gs(OFF_DISPATCH_ENTRY));
}

/* A transaction aborts before it begins, with status 0 (no retry hint): always legal. */
static bool lower_transaction(jit_build *b, const isa_insn *in)
{
    static const uint8_t mov_eax_0[] = {0xb8, 0, 0, 0, 0};
    x86_bytes(b->code, mov_eax_0, sizeof mov_eax_0);
    return jump_to(b, in->target);
}

/* Control leaves the run for good, or for the runtime. */
static bool lower_for_good(jit_build *b, x86_code *c, const isa_insn *in, uint32_t i)
{
    switch (in->flow) {
    case ISA_FLOW_CALL: return push_return(b, in->addr + in->len) && jump_to(b, in->target);
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND: return lower_indirect(b, in, i);
    case ISA_FLOW_RETURN: return lower_return(b, in, i);
    case ISA_FLOW_SYSCALL:
        if (x86_is_syscall(in)) lower_syscall(c, in);
        else lower_special(c, in);
        return true;
    case ISA_FLOW_TX: return lower_transaction(b, in);
    case ISA_FLOW_TRAP: /* faults or traps right here; int3's handler may go on behind it */
        x86_bytes(c, in->raw, in->len);
        return jump_to(b, in->addr + in->len);
    case ISA_FLOW_FAR:
        if (!(in->bits & ISA_BIT_PRIV)) {
            lower_special(c, in);
            return true;
        }
        x86_bytes(c, in->raw, in->len);
        return jump_to(b, in->addr + in->len);
    default: return false;
    }
}

bool jit_lower(void *build, x86_code *c, const weave_run *run, uint32_t i)
{
    jit_build *b = build;
    const isa_insn *in = &run->insns[i].in;
    b->code = c;
    switch (in->flow) {
    case ISA_FLOW_JUMP: return go_to(b, in->target);
    case ISA_FLOW_COND: return lower_cond(b, in);
    case ISA_FLOW_COND_REG: return lower_cond_reg(b, in);
    default: break;
    }
    bool done = leave_section(b) && lower_for_good(b, c, in, i);
    b->stored = 0;
    return done;
}

static bool to_dispatcher(jit_build *b, uint64_t target)
{
    bool ok = go_to(b, target);
    if (ok) b->exits[b->exit_count - 1].told_by = b->told_by;
    return ok;
}

/* The run's last instruction has stored an address, which may be the cache's: if it is not 0, the dispatcher looks. */
static bool exit_told(jit_build *b, const weave_run *run, uint64_t target)
{
    uint32_t i = run->insn_count - 1;
    const isa_insn *in = &run->insns[i].in;
    const unsigned segment = segment_of(in);
    const jit_pointer_place field = jit_pointer_told(in);
    x86_code *c = b->code;
    if (segment == X86_SEG_GS) return to_dispatcher(b, target); /* which is Inlay's here */
    x86_store(c, 8, slot(X86_RCX), X86_RCX);
    if (in->bits & ISA_BIT_PCREL_MEM) {
        isa_note_absolute(c);
        x86_mov_ri(c, X86_RCX, in->target);
    } else {
        rcx_from_operand(c, in, 0x8d, false);
    }
    mark(b, i, 1u << X86_RCX);
    x86_load(c, field.width, X86_RCX, (x86_addr){X86_RCX, ISA_NO_REG, 1, (uint8_t)segment, false, field.at});
    x86_label none = x86_jrcxz_label(c);
    x86_load(c, 8, X86_RCX, slot(X86_RCX));
    bool ok = to_dispatcher(b, target) && x86_bind(c, none);
    x86_load(c, 8, X86_RCX, slot(X86_RCX));
    return ok && go_to(b, target);
}

bool jit_lower_exit(void *build, x86_code *c, uint64_t target)
{
    jit_build *b = build;
    b->code = c;
    return go_to(b, target);
}

bool jit_lower_end(void *build, x86_code *c, uint64_t target)
{
    jit_build *b = build;
    b->code = c;
    return b->told_by ? exit_told(b, &jit.now.run, target) : go_to(b, target);
}
