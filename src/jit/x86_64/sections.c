/* Restartable sequences: the pieces of code in and around translated critical sections. See jit/sections.c. All keep
 * the flags; rcx and rdx are in their slots wherever one of them may be left by the kernel's hand. */
#include "isa/x86_64/emit.h"
#include "isa/x86_64/x86.h"
#include "jit/core.h"
#include "jit/x86_64/layout.h"
#include "weave/isa.h"

#include <string.h>

#define AT(field, off) _Static_assert(offsetof(jit_own, field) + OFF_ENGINE == (off), #field)
AT(sequence_field, OFF_SEQUENCE_FIELD);
AT(sequence_self, OFF_SEQUENCE_SELF);
AT(sequence_minus, OFF_SEQUENCE_MINUS);
AT(sequence.start, OFF_SEQUENCE_START);
AT(sequence.length, OFF_SEQUENCE_LENGTH);
AT(section, OFF_SECTION);
AT(armed, OFF_SECTION_ARMED);
AT(section_abort, OFF_SECTION_ABORT);
AT(whole, OFF_SECTION_WHOLE);
_Static_assert(JIT_SECTION_ABORTED == 0 && RUN_LEAVE_SECTION == LEAVE_SECTION, "dispatch.S says so");

enum { OP_LEA = 0x8d, OP_MOV_REG = 0xb8, OP_MOV_MEM = 0xc7, LOWEST = 1 << 16, ADDRESS_BITS = 56 };

static x86_addr slot(unsigned reg) { return x86_gs(OFF_SLOT + 8 * (int32_t)reg); }

/* --- what names a descriptor --- */

static uint64_t immediate(const isa_insn *in)
{
    int64_t value = 0;
    int32_t half;
    if (in->imm_len == 8) memcpy(&value, in->raw + in->imm_at, 8);
    if (in->imm_len != 4) return (uint64_t)value;
    memcpy(&half, in->raw + in->imm_at, 4);
    return (uint64_t)(int64_t)half;
}

uint64_t jit_section_named(const isa_insn *in)
{
    uint64_t value = 0;
    uint8_t op = in->raw[in->opcode_at];
    if (in->bits & ISA_BIT_PCREL_MEM) value = x86_is_one_byte(in, OP_LEA) ? in->target : 0;
    else if (x86_is_one_byte(in, op) && ((op & 0xf8) == OP_MOV_REG || op == OP_MOV_MEM)) value = immediate(in);
    return value < LOWEST || value >> ADDRESS_BITS ? 0 : value; /* others are numbers */
}

/* --- looks --- */

static void spill(x86_code *c)
{
    x86_store(c, 8, slot(X86_RCX), X86_RCX);
    x86_store(c, 8, slot(X86_RDX), X86_RDX);
}

static void unspill(x86_code *c)
{
    x86_load(c, 8, X86_RCX, slot(X86_RCX));
    x86_load(c, 8, X86_RDX, slot(X86_RDX));
}

static void leave(x86_code *c, uint64_t arg)
{
    unspill(c);
    x86_store_imm(c, 8, x86_gs(OFF_LEAVE), RUN_LEAVE_SECTION);
    x86_store_imm(c, 8, x86_gs(OFF_LEAVE_ARG), (int64_t)arg);
    x86_jmp_m(c, x86_gs(OFF_DISPATCH_ENTRY));
}

/* A jump is taken if the thread's descriptor still stands in the program's area. */
static x86_label still_armed(x86_code *c)
{
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SEQUENCE_FIELD));
    x86_load(c, 8, X86_RCX, x86_at(X86_RCX, 0));
    x86_load(c, 8, X86_RDX, x86_gs(OFF_SEQUENCE_MINUS));
    x86_lea(c, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 0));
    return x86_jrcxz_label(c);
}

/* --- the entry of a fragment --- */

/* At the first instruction: the program has just stored the descriptor. */
static bool enter_first(x86_code *c, const jit_section *s, uint64_t slow)
{
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SEQUENCE_FIELD));
    x86_label unregistered = x86_jrcxz_label(c);
    x86_load(c, 8, X86_RDX, x86_at(X86_RCX, 0));
    x86_mov_ri(c, X86_RCX, -s->descriptor);
    x86_lea(c, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 0));
    x86_label stored = x86_jrcxz_label(c);
    x86_jmp_to(c, slow);
    bool ok = x86_bind(c, stored);
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SEQUENCE_FIELD));
    x86_load(c, 8, X86_RDX, x86_gs(OFF_SEQUENCE_SELF));
    x86_store(c, 8, x86_at(X86_RCX, 0), X86_RDX);
    x86_mov_ri(c, X86_RDX, (uint64_t)(uintptr_t)s);
    x86_store(c, 8, x86_gs(OFF_SECTION), X86_RDX);
    x86_store(c, 8, x86_gs(OFF_SECTION_ARMED), X86_RDX);
    return x86_bind(c, unregistered) && ok;
}

/* Further on: it comes from inside, and nothing has interrupted it. */
static bool enter_further(x86_code *c, uint64_t slow)
{
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SEQUENCE_FIELD));
    x86_label unregistered = x86_jrcxz_label(c);
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SECTION));
    x86_label outside = x86_jrcxz_label(c);
    x86_label armed = still_armed(c);
    bool ok = x86_bind(c, outside);
    x86_jmp_to(c, slow);
    return x86_bind(c, armed) && x86_bind(c, unregistered) && ok;
}

bool jit_emit_section_entry(x86_code *c, const jit_section *s, uint64_t app, bool continues)
{
    spill(c);
    x86_label past = x86_jmp_label(c, 1);
    uint64_t slow = x86_here(c);
    x86_store_imm(c, 4, x86_gs(CTX_PC), (int32_t)app);
    x86_store_imm(c, 4, x86_gs(CTX_PC + 4), (int32_t)(app >> 32));
    leave(c, JIT_SECTION_ENTERED + (uint64_t)continues);
    bool ok = x86_bind(c, past);
    ok = (app == s->low ? enter_first(c, s, slow) : enter_further(c, slow)) && ok;
    unspill(c);
    return ok;
}

/* --- the way out --- */

bool jit_emit_section_exit(x86_code *c, bool done)
{
    bool ok = true;
    if (!done) {
        spill(c);
        x86_load(c, 8, X86_RCX, x86_gs(OFF_SECTION));
        x86_label outside = x86_jrcxz_label(c);
        x86_label armed = still_armed(c);
        leave(c, JIT_SECTION_LEFT);
        ok = x86_bind(c, armed) && x86_bind(c, outside);
        unspill(c);
    }
    x86_store_imm(c, 8, x86_gs(OFF_SECTION), 0);
    return ok;
}

/* --- guards --- */

/* Its translation may take a register for an operand that does not reach: then all wait in their slots. */
static bool needs_whole(const isa_insn *in)
{
    return in->bits & (ISA_BIT_PCREL_MEM | ISA_BIT_UNKNOWN) || memchr(in->raw, 0x65, in->opcode_at);
}

bool jit_guard_begin(void *build, x86_code *c, const weave_run *run, uint32_t i)
{
    jit_build *b = build;
    const weave_isa *w = weave_isa_of(run->isa);
    bool whole = needs_whole(&run->insns[i].in);
    spill(c);
    for (unsigned r = 0; whole && r < w->reg_count; r++)
        if ((w->all & ~w->reserved) >> r & 1 && r != X86_RCX && r != X86_RDX) x86_store(c, 8, slot(r), r);
    x86_store_imm(c, 8, x86_gs(OFF_SECTION_WHOLE), whole);
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SECTION));
    x86_label outside = x86_jrcxz_label(c);
    x86_store_imm(c, 8, x86_gs(OFF_SEQUENCE_START), 0);
    x86_store_imm(c, 8, x86_gs(OFF_SEQUENCE_LENGTH), 0);
    b->guard_from = (uint32_t)c->at; /* the length is what has been written last */
    x86_lea(c, X86_RCX, x86_rip(x86_here(c)));
    x86_store(c, 8, x86_gs(OFF_SEQUENCE_START), X86_RCX);
    x86_label armed = still_armed(c);
    x86_jmp_m(c, x86_gs(OFF_SECTION_ABORT));
    bool ok = x86_bind(c, armed) && x86_bind(c, outside);
    unspill(c);
    return ok;
}

bool jit_guard_end(void *build, x86_code *c, const weave_run *run, uint32_t i)
{
    jit_build *b = build;
    uint32_t length = (uint32_t)c->at - b->guard_from;
    if (c->full) return true;
    memcpy(c->write + b->guard_from - sizeof length, &length, sizeof length);
    b->done = i + 1 == run->insn_count;
    return true;
}

void jit_emit_section_abort(x86_code *c) { x86_jmp_m(c, x86_gs(OFF_SECTION_ABORT)); }
