/* A routine's body, decoded once: see body.h. */
#include "weave/x86_64/body.h"

#include <stdlib.h>

#include "isa/x86_64/rename.h"

static bool is_plain_load(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    bool escaped = in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f;
    return (!escaped && (op == 0x8a || op == 0x8b || op == 0x63)) || (escaped && (op & 0xf6) == 0xb6);
}

static void look(body_insn *b)
{
    isa_operand o[ISA_MAX_OPERANDS];
    isa_mem m[ISA_MAX_MEM];
    int n = isa_x86_64.operands(&b->in, o), k = isa_x86_64.memory(&b->in, m);
    for (int i = 0; i < n; i++)
        if (o[i].kind == ISA_OPERAND_REG && o[i].access & ISA_READ) b->operands |= (uint16_t)WEAVE_BIT(o[i].reg);
    b->operands &= (uint16_t)b->fx.reads; /* xor of a register with itself reads none */
    b->partly = (uint16_t)(b->fx.writes & ~b->fx.kills);
    bool touches = k && m[0].access != ISA_ADDRESS_ONLY && m[0].access != ISA_PREFETCH;
    b->pure = !touches && !(b->in.bits & (ISA_BIT_SERIALIZES | ISA_BIT_MEM));
    b->pure = b->pure || (k && m[0].access == ISA_ADDRESS_ONLY);
    if (b->in.raw[b->in.opcode_at] >= 0xf6 && b->fx.flags_undefined && !b->fx.flags_written)
        b->pure = false; /* a division may fault */
    b->loads = is_plain_load(&b->in) && touches;
}

/* nop, endbr64, prefetch */
static bool is_nothing(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    bool escaped = in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f;
    return escaped ? (op & 0xf8) == 0x18 : op == 0x90 && in->opcode_at == 0;
}

/* Tried with all registers exchanged for others, so that it cannot fail later. */
static bool can_rename(body_insn *b)
{
    uint8_t room[32], map[X86_REGS];
    x86_code c = {.write = room, .size = sizeof room};
    x86_addr zero = x86_abs(0);
    isa_mem m[ISA_MAX_MEM];
    if (!x86_fixed_registers(&b->in, &b->fixed)) return false;
    for (unsigned r = 0; r < X86_REGS; r++) map[r] = b->fixed >> r & 1 ? (uint8_t)r : (uint8_t)(r ^ 8);
    map[X86_RSP] = X86_RSP;
    return x86_rename(&c, &b->in, map, isa_x86_64.memory(&b->in, m) ? &zero : NULL);
}

static bool find_targets(weave_body *b, uint64_t end)
{
    for (unsigned i = 0; i < b->count; i++) {
        const isa_insn *in = &b->insns[i].in;
        if (!b->insns[i].jumps) continue;
        uint64_t target = in->flow == ISA_FLOW_RETURN ? end : in->target;
        unsigned t = i + 1;
        while (t < b->count && b->insns[t].in.addr != target) t++;
        if (t == b->count && target != end) return false;
        b->insns[i].target = (uint8_t)t;
    }
    return true;
}

/* False: something that is not for us. */
static bool take_apart(weave_body *b, uint64_t fn, uint32_t len)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)fn;
    isa_insn in;
    for (uint32_t at = 0; at < len; at += in.len) {
        if (isa_x86_64.decode(code + at, len - at, fn + at, &in) != ISA_OK) return false;
        if (in.flow == ISA_FLOW_RETURN && at + in.len == len) return find_targets(b, fn + at);
        if (b->count == BODY_INSNS) return false;
        body_insn *insn = &b->insns[b->count++];
        insn->in = in;
        isa_x86_64.effects(&in, &insn->fx);
        insn->jumps = in.flow != ISA_FLOW_NEXT;
        if (insn->jumps) continue;
        look(insn);
        if ((insn->nothing = is_nothing(&in))) continue;
        if (!can_rename(insn)) return false;
        b->fixed |= insn->fixed;
    }
    return false;
}

static void find_wanted(weave_body *b)
{
    static const weave_known nothing;
    weave_folded f;
    weave_fold(b, 0, &nothing, true, &f);
    b->wanted = (uint16_t)f.entry;
}

const weave_body *weave_body_of(const weave_routine *r, void (*fn)(void))
{
    if (!r->body) {
        weave_body *b = calloc(1, sizeof *b);
        if (b) b->renamable = take_apart(b, (uint64_t)(uintptr_t)fn, r->body_len);
        if (b && b->renamable) find_wanted(b);
        ((weave_routine *)r)->body = b;
    }
    return r->body;
}
