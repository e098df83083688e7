/* Single-stepping of x86-64: EFLAGS.TF. */
#include "isa/x86_64/x86.h"
#include "jit/core.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

#include <string.h>

enum { TF = 0x100, ZF = 0x40, OP_PUSHF = 0x9c, REP = 0xf3, REPNE = 0xf2 };

bool jit_steps(const weave_context *c) { return c->flags & TF; }

static bool decode_at(uint64_t app, isa_insn *in)
{
    uint8_t bytes[ISA_MAX_INSN];
    size_t left = run_safe_copy(bytes, (const void *)app, sizeof bytes);
    isa_result r = isa_x86_64.decode(bytes, sizeof bytes - left, app, in);
    return r != ISA_TRUNCATED && r != ISA_INVALID;
}

bool jit_step_guards(uint64_t pc, uint64_t app)
{
    static const uint8_t ud2[] = {0x0f, 0x0b};
    isa_insn in;
    return !memcmp((const void *)pc, ud2, sizeof ud2) && decode_at(app, &in) && x86_is_popf(&in);
}

bool jit_step_sets(const isa_insn *in) { return x86_is_popf(in); }

static bool compares(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at] & 0xfe;
    return op == 0xa6 || op == 0xae;
}

static uint8_t repeats(const isa_insn *in)
{
    uint8_t prefix = 0, op = in->raw[in->opcode_at];
    bool is_string = (op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf);
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == REP || in->raw[i] == REPNE) prefix = in->raw[i];
    return is_string && x86_is_one_byte(in, op) ? prefix : 0;
}

static bool by_ecx(const isa_insn *in) { return memchr(in->raw, 0x67, in->opcode_at) != NULL; }

/* mov %..., %ss: the processor holds back what would come behind it, since it is half of a change of stacks. */
static bool loads_ss(const isa_insn *in)
{
    enum { OP_MOV_SEGMENT = 0x8e, SS = 2 };
    return x86_is_one_byte(in, OP_MOV_SEGMENT) && (in->raw[in->opcode_at + 1] >> 3 & 7) == SS;
}

void jit_step_prepare(run_thread *t, jit_stepping *s)
{
    isa_insn in = {0};
    weave_context *c = &t->ctx;
    s->program = c->flags & TF;
    c->flags &= ~(uint64_t)TF;
    s->kind = 0;
    s->rest = 0;
    s->again = false;
    if (!decode_at(s->pc, &in)) return;
    switch (in.flow) {
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND:
    case ISA_FLOW_RETURN: s->kind = JIT_STEP_INDIRECT; break;
    case ISA_FLOW_SYSCALL: s->kind = JIT_STEP_INDIRECT | JIT_STEP_CALLS; break;
    default: break;
    }
    if (loads_ss(&in)) s->kind |= JIT_STEP_SILENT;
    if (x86_is_popf(&in)) s->kind |= JIT_STEP_POPS;
    if (x86_is_one_byte(&in, OP_PUSHF)) s->kind |= JIT_STEP_PUSHES;
    uint64_t count = by_ecx(&in) ? (uint32_t)c->gpr[RUN_RCX] : c->gpr[RUN_RCX];
    if (!s->program || !repeats(&in) || count < 2) return;
    s->rest = count - 1;
    c->gpr[RUN_RCX] = 1;
}

/* The flag that was hidden is shown again, also where the instruction has stored it. */
void jit_step_restore(run_thread *t, jit_stepping *s, bool done)
{
    weave_context *c = &t->ctx;
    uint8_t byte;
    isa_insn in;
    if (!s->program) return;
    if (!(done && s->kind & JIT_STEP_POPS)) c->flags |= TF;
    if (done && s->kind & JIT_STEP_CALLS) c->gpr[RUN_R11] |= TF;
    if (done && s->kind & JIT_STEP_PUSHES && run_read(&byte, run_sp(c) + 1, 1)) {
        byte |= TF >> 8;
        run_write(run_sp(c) + 1, &byte, 1);
    }
    if (!s->rest) return;
    c->gpr[RUN_RCX] += s->rest;
    if (!done || !decode_at(s->pc, &in)) return;
    bool equal = c->flags & ZF, ended = compares(&in) && equal != (repeats(&in) == REP);
    if (ended) return;
    c->pc = s->pc;
    s->again = true;
}
