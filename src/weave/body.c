/* A routine's body, decoded once: see body.h. */
#include "weave/body.h"

#include <stdlib.h>

static bool is_plain_load(const weave_form *f)
{
    bool moves = f->kind == WEAVE_FORM_MOVE || f->kind == WEAVE_FORM_SIGN || f->kind == WEAVE_FORM_ZERO;
    return moves && f->dst.kind == ISA_OPERAND_REG && f->a.kind == ISA_OPERAND_MEM;
}

static void look(const weave_isa *m, body_insn *b)
{
    isa_operand o[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    int n = m->isa->operands(&b->in, o), k = m->isa->memory(&b->in, mem);
    for (int i = 0; i < n; i++)
        if (o[i].kind == ISA_OPERAND_REG && o[i].access & ISA_READ) b->operands |= WEAVE_BIT(o[i].reg);
    b->operands &= b->fx.reads; /* xor of a register with itself reads none */
    b->partly = b->fx.writes & ~b->fx.kills;
    bool touches = k && mem[0].access != ISA_ADDRESS_ONLY && mem[0].access != ISA_PREFETCH;
    b->pure = !touches && !(b->in.bits & (ISA_BIT_SERIALIZES | ISA_BIT_MEM));
    b->pure = b->pure || (k && mem[0].access == ISA_ADDRESS_ONLY);
    if (m->may_fault(&b->in)) b->pure = false;
    b->loads = is_plain_load(&b->form) && touches;
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
    const weave_isa *m = b->isa;
    const uint8_t *code = (const uint8_t *)(uintptr_t)fn;
    isa_insn in;
    for (uint32_t at = 0; at < len; at += in.len) {
        if (m->isa->decode(code + at, len - at, fn + at, &in) != ISA_OK) return false;
        if (in.flow == ISA_FLOW_RETURN && at + in.len == len) return find_targets(b, fn + at);
        if (b->count == BODY_INSNS) return false;
        body_insn *insn = &b->insns[b->count++];
        insn->in = in;
        m->isa->effects(&in, &insn->fx);
        insn->jumps = in.flow != ISA_FLOW_NEXT;
        if (insn->jumps) continue;
        m->form(&in, &insn->form);
        look(m, insn);
        if (insn->form.kind == WEAVE_FORM_NOTHING) continue;
        if (!m->can_rename(&in, &insn->fixed)) return false;
        if (in.bits & ISA_BIT_LOCK) insn->form.kind = WEAVE_FORM_OTHER; /* to be written as it is */
        b->fixed |= insn->fixed;
    }
    return false;
}

static void find_wanted(weave_body *b)
{
    static const weave_known nothing;
    weave_folded f;
    weave_fold(b, 0, &nothing, true, &f);
    b->wanted = f.entry;
}

const weave_body *weave_body_of(const weave_routine *r, void (*fn)(void))
{
    if (!r->body) {
        weave_body *b = calloc(1, sizeof *b);
        if (b) b->isa = weave_isa_here();
        if (b) b->renamable = take_apart(b, (uint64_t)(uintptr_t)fn, r->body_len);
        if (b && b->renamable) find_wanted(b);
        ((weave_routine *)r)->body = b;
    }
    return r->body;
}
