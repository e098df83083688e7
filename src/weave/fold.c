/* A body with some arguments known: see body.h. Forward, what is known goes into addresses, immediates and
 * conditions; backward, what nobody wants is dropped, until nothing changes. */
#include "weave/body.h"

typedef struct state {
    bool reached;
    isa_regs known;
    uint64_t value[WEAVE_MAX_REGS];
    bool compared; /* the flags are those of a `op` b */
    uint8_t op, width;
    uint64_t a, b;
} state;

typedef struct folder {
    const weave_isa *isa;
    const weave_body *body;
    weave_folded *out;
    uint32_t flags_behind[BODY_INSNS]; /* that the body as it is looks at */
    state now, at[BODY_INSNS + 1];     /* at jump targets */
    bool sets;                         /* what the instruction leaves in a register is known */
    uint8_t set_reg;
    uint64_t set_value;
} folder;

static uint64_t cut(uint64_t v, unsigned width) { return width >= 8 ? v : v & ((1ull << 8 * width) - 1); }

static uint64_t extended(uint64_t v, unsigned width)
{
    unsigned shift = 64 - 8 * width;
    return (uint64_t)((int64_t)(v << shift) >> shift);
}

/* --- values --- */

static bool operand_value(const state *s, const isa_operand *o, uint64_t *v)
{
    if (o->kind == ISA_OPERAND_IMM) *v = (uint64_t)o->imm;
    else if (o->kind == ISA_OPERAND_REG && !o->high_byte && s->known >> o->reg & 1) *v = s->value[o->reg];
    else return false;
    return true;
}

static uint64_t operate(unsigned op, unsigned width, uint64_t a, uint64_t b)
{
    uint64_t v = 0;
    switch (op) {
    case SNIPPET_ADD: v = a + b; break;
    case SNIPPET_SUB: v = a - b; break;
    case SNIPPET_AND: v = a & b; break;
    case SNIPPET_OR: v = a | b; break;
    case SNIPPET_XOR: v = a ^ b; break;
    default: break;
    }
    return cut(v, width);
}

static uint64_t shift(unsigned op, unsigned width, uint64_t a, unsigned count)
{
    if (op == SNIPPET_SHL) return cut(a << count, width);
    if (op == SNIPPET_SHR) return cut(a, width) >> count;
    return cut((uint64_t)((int64_t)extended(a, width) >> count), width);
}

static void meet(const weave_isa *isa, state *to, const state *from)
{
    if (!from->reached) return;
    if (!to->reached) {
        *to = *from;
        return;
    }
    to->known &= from->known;
    for (unsigned r = 0; r < isa->reg_count; r++)
        if (to->value[r] != from->value[r]) to->known &= ~WEAVE_BIT(r);
    to->compared = false;
}

/* --- one instruction --- */

static isa_regs address_variables(const weave_address *a)
{
    return (a->base < BODY_VARIABLES ? WEAVE_BIT(a->base) : 0) | (a->index < BODY_VARIABLES ? WEAVE_BIT(a->index) : 0);
}

/* Takes what is known of a register out of the address. */
static bool fold_register(const state *s, uint8_t *reg, unsigned scale, uint64_t *disp)
{
    if (*reg >= WEAVE_MAX_REGS || !(s->known >> *reg & 1)) return false;
    *disp += s->value[*reg] * scale;
    *reg = ISA_NO_REG;
    return true;
}

static bool fold_address(const folder *f, const isa_insn *in, weave_address *out)
{
    isa_mem m[ISA_MAX_MEM];
    if (!f->isa->isa->memory(in, m)) return false;
    weave_address whole = {m[0].base, m[0].index, m[0].scale ? m[0].scale : 1, m[0].disp}, a = whole;
    uint64_t disp = (uint64_t)a.disp;
    fold_register(&f->now, &a.base, 1, &disp);
    if (fold_register(&f->now, &a.index, a.scale, &disp)) a.scale = 1;
    a.disp = (int64_t)disp;
    bool absolute = a.base == ISA_NO_REG && a.index == ISA_NO_REG;
    *out = absolute || f->isa->reaches(a.disp) ? a : whole;
    return true;
}

static void effects_of(const folder *f, item *it)
{
    const body_insn *b = it->of;
    uint32_t flags = f->isa->flags;
    it->flags_read = b->fx.flags_read & flags;
    it->flags_written = (b->fx.flags_written | b->fx.flags_undefined) & flags;
    it->flags_kill = b->fx.flags_kill & flags;
    it->writes = b->fx.writes;
    it->kills = b->fx.kills;
    it->reads = b->operands | b->partly;
    if (it->has_mem) it->reads |= address_variables(&it->mem);
    bool anchored = it->has_mem && it->mem.base == ISA_NO_REG && it->mem.index == ISA_NO_REG;
    it->pure = b->pure || (b->loads && anchored);
}

static void drop(item *it) { *it = (item){.kind = ITEM_GONE}; }

static void become_const(item *it, unsigned reg, uint64_t v)
{
    *it = (item){.kind = ITEM_CONST,
                 .dst = (uint8_t)reg,
                 .imm = v,
                 .of = it->of,
                 .pure = true,
                 .writes = WEAVE_BIT(reg),
                 .kills = WEAVE_BIT(reg)};
}

/* What the destination, a whole register, holds is known. */
static void result_is(folder *f, unsigned i, const weave_form *m, uint64_t v)
{
    item *it = &f->out->items[i];
    v = cut(v, m->dst.size);
    if (!(it->flags_written & f->flags_behind[i])) become_const(it, m->dst.reg, v);
    f->sets = true;
    f->set_reg = m->dst.reg, f->set_value = v;
}

static bool is_whole(const isa_operand *o) { return o->kind == ISA_OPERAND_REG && o->size >= 4; }

/* Its last operand becomes a constant, where the instruction set can write that. */
static void with_immediate(const folder *f, item *it, unsigned kind, const weave_form *m, unsigned width, uint64_t v)
{
    bool in_memory = kind == ITEM_STORE || kind == ITEM_ALU_MI || kind == ITEM_COMPARE_MI;
    v = extended(v, width);
    if (!f->isa->takes_immediate(kind, m->op, width, v)) return;
    it->kind = (uint8_t)kind;
    it->op = m->op;
    it->width = (uint8_t)width;
    it->imm = v;
    it->reads = in_memory ? address_variables(&it->mem) : WEAVE_BIT(m->a.reg);
    if (in_memory) return;
    it->src = m->a.reg;
    it->dst = kind == ITEM_COMPARE_RI ? m->a.reg : m->dst.reg;
}

static void fold_alu(folder *f, unsigned i, const weave_form *m)
{
    item *it = &f->out->items[i];
    bool compares = m->kind == WEAVE_FORM_COMPARE;
    unsigned width = m->a.size;
    uint64_t a = 0, b = 0;
    bool left = operand_value(&f->now, &m->a, &a), right = operand_value(&f->now, &m->b, &b);
    bool cleared = !compares && m->a.kind == ISA_OPERAND_REG && m->b.kind == ISA_OPERAND_REG && m->a.reg == m->b.reg &&
                   (m->op == SNIPPET_XOR || m->op == SNIPPET_SUB);
    if (cleared) a = b = 0, left = right = true;
    if (left && right && it->flags_written && m->op != SNIPPET_ADD) {
        f->now.compared = true;
        f->now.op = m->op, f->now.width = (uint8_t)width;
        f->now.a = a, f->now.b = b;
    }
    if (left && right && !compares && is_whole(&m->dst)) {
        result_is(f, i, m, operate(m->op, width, a, b));
        return;
    }
    if (!right || m->b.kind == ISA_OPERAND_MEM) return;
    bool first_in_memory = m->a.kind == ISA_OPERAND_MEM;
    if (m->a.kind == ISA_OPERAND_REG) with_immediate(f, it, compares ? ITEM_COMPARE_RI : ITEM_ALU_RI, m, width, b);
    else if (first_in_memory && m->b.kind == ISA_OPERAND_REG && !(compares && m->op == SNIPPET_AND))
        with_immediate(f, it, compares ? ITEM_COMPARE_MI : ITEM_ALU_MI, m, width, b);
}

static void fold_move(folder *f, unsigned i, const weave_form *m)
{
    uint64_t v;
    if (!operand_value(&f->now, &m->a, &v)) return;
    if (is_whole(&m->dst)) result_is(f, i, m, v);
    else if (m->dst.kind == ISA_OPERAND_MEM) with_immediate(f, &f->out->items[i], ITEM_STORE, m, m->dst.size, v);
}

static void fold_shift(folder *f, unsigned i, const weave_form *m)
{
    unsigned width = m->dst.size;
    uint64_t a, n;
    if (!is_whole(&m->dst) || !operand_value(&f->now, &m->b, &n)) return;
    n &= width == 8 ? 63 : 31;
    if (operand_value(&f->now, &m->a, &a)) result_is(f, i, m, shift(m->op, width, a, (unsigned)n));
    else if (n && m->a.kind == ISA_OPERAND_REG && m->b.kind == ISA_OPERAND_REG)
        with_immediate(f, &f->out->items[i], ITEM_SHIFT, m, width, n);
}

static void fold_unary(folder *f, unsigned i, const weave_form *m)
{
    uint64_t a;
    if (!is_whole(&m->dst) || !operand_value(&f->now, &m->a, &a)) return;
    if (m->kind == WEAVE_FORM_STEP) a = m->op == SNIPPET_ADD ? a + 1 : a - 1;
    else a = m->kind == WEAVE_FORM_NOT ? ~a : 0 - a;
    result_is(f, i, m, a);
}

static void fold_multiply(folder *f, unsigned i, const weave_form *m)
{
    uint64_t a, b;
    if (!is_whole(&m->dst)) return;
    if (operand_value(&f->now, &m->a, &a) && operand_value(&f->now, &m->b, &b)) result_is(f, i, m, a * b);
}

static void fold_extension(folder *f, unsigned i, const weave_form *m)
{
    item *it = &f->out->items[i];
    uint64_t v;
    if (!is_whole(&m->dst) || m->a.kind != ISA_OPERAND_REG) return;
    unsigned from = m->a.size;
    if (operand_value(&f->now, &m->a, &v)) {
        result_is(f, i, m, m->kind == WEAVE_FORM_ZERO ? cut(v, from) : extended(v, from));
    } else if (from == 4 && m->dst.size == 8 && m->kind == WEAVE_FORM_SIGN) {
        it->kind = ITEM_SX;
        it->dst = m->dst.reg, it->src = m->a.reg;
    }
}

static void fold_lea(folder *f, unsigned i, const weave_form *m)
{
    const item *it = &f->out->items[i];
    bool absolute = it->mem.base == ISA_NO_REG && it->mem.index == ISA_NO_REG;
    if (absolute && is_whole(&m->dst)) result_is(f, i, m, (uint64_t)it->mem.disp);
}

static void fold_insn(folder *f, unsigned i)
{
    item *it = &f->out->items[i];
    const body_insn *b = it->of;
    const weave_form *m = &b->form;
    it->kind = ITEM_COPY;
    it->has_mem = fold_address(f, &b->in, &it->mem);
    effects_of(f, it);
    state *s = &f->now;
    f->sets = false;
    if (it->flags_written) s->compared = false;
    switch (m->kind) {
    case WEAVE_FORM_MOVE: fold_move(f, i, m); break;
    case WEAVE_FORM_ALU:
    case WEAVE_FORM_COMPARE: fold_alu(f, i, m); break;
    case WEAVE_FORM_SHIFT: fold_shift(f, i, m); break;
    case WEAVE_FORM_STEP:
    case WEAVE_FORM_NOT:
    case WEAVE_FORM_NEGATE: fold_unary(f, i, m); break;
    case WEAVE_FORM_MULTIPLY: fold_multiply(f, i, m); break;
    case WEAVE_FORM_SIGN:
    case WEAVE_FORM_ZERO: fold_extension(f, i, m); break;
    case WEAVE_FORM_ADDRESS: fold_lea(f, i, m); break;
    default: break;
    }
    s->known &= ~b->fx.writes;
    if (!f->sets) return;
    s->known |= WEAVE_BIT(f->set_reg);
    s->value[f->set_reg] = f->set_value;
}

/* --- the whole --- */

/* What the flags tell of a condition, where what they compare is known. */
static bool decide(const folder *f, unsigned cond, bool *taken)
{
    const state *s = &f->now;
    return s->compared && f->isa->holds(cond, s->op, s->width, s->a, s->b, taken);
}

static void fold_jump(folder *f, unsigned i)
{
    item *it = &f->out->items[i];
    const body_insn *b = it->of;
    bool taken = true, always = b->in.flow != ISA_FLOW_COND;
    *it = (item){.kind = ITEM_JUMP,
                 .op = b->in.cond,
                 .target = b->target,
                 .of = b,
                 .flags_read = b->fx.flags_read & f->isa->flags};
    if (!always && !decide(f, b->in.cond, &taken)) {
        meet(f->isa, &f->at[b->target], &f->now);
    } else if (taken) {
        *it = (item){.kind = ITEM_ALWAYS, .target = b->target, .of = b};
        meet(f->isa, &f->at[b->target], &f->now);
        f->now.reached = false;
    } else {
        drop(it);
    }
}

static void forward(folder *f, uint64_t mask, const weave_known *known)
{
    const weave_body *body = f->body;
    f->now.reached = true;
    f->now.known = known->which;
    for (unsigned r = 0; r < f->isa->reg_count; r++) f->now.value[r] = known->value[r];
    for (unsigned i = 0; i <= body->count; i++) {
        meet(f->isa, &f->now, &f->at[i]);
        if (i == body->count) break;
        item *it = &f->out->items[i];
        const body_insn *b = it->of = &body->insns[i];
        if (!f->now.reached || b->form.kind == WEAVE_FORM_NOTHING || mask >> i & 1) drop(it);
        else if (b->jumps) fold_jump(f, i);
        else fold_insn(f, i);
    }
}

/* Before anything is changed: which flags are looked at behind each instruction. */
static void find_flags(folder *f)
{
    const weave_body *body = f->body;
    uint32_t in[BODY_INSNS + 1];
    in[body->count] = 0;
    for (unsigned i = body->count; i-- > 0;) {
        const body_insn *b = &body->insns[i];
        uint32_t out = in[i + 1];
        if (b->jumps) out = in[b->target] | (b->in.flow == ISA_FLOW_COND ? out : 0);
        f->flags_behind[i] = out;
        in[i] = (out & ~b->fx.flags_kill) | (b->fx.flags_read & f->isa->flags);
    }
}

static bool skips_nothing(const weave_folded *out, unsigned i)
{
    for (unsigned k = i + 1; k < out->items[i].target; k++)
        if (out->items[k].kind != ITEM_GONE) return false;
    return true;
}

/* One round backward; true when something was dropped. */
static bool sweep(weave_folded *out, isa_regs at_end)
{
    isa_regs regs[BODY_INSNS + 1];
    uint32_t flags[BODY_INSNS + 1];
    bool dropped = false;
    regs[out->count] = at_end, flags[out->count] = 0;
    for (unsigned i = out->count; i-- > 0;) {
        item *it = &out->items[i];
        isa_regs r = regs[i + 1];
        uint32_t fl = flags[i + 1];
        bool jumps = it->kind == ITEM_JUMP || it->kind == ITEM_ALWAYS;
        bool useless = jumps ? skips_nothing(out, i) : it->pure && !(it->writes & r) && !(it->flags_written & fl);
        if (it->kind != ITEM_GONE && useless) {
            drop(it);
            dropped = true;
        } else if (jumps) {
            bool always = it->kind == ITEM_ALWAYS;
            r = regs[it->target] | (always ? 0 : r);
            fl = flags[it->target] | (always ? 0 : fl);
        }
        regs[i] = (r & ~it->kills) | it->reads;
        flags[i] = (fl & ~it->flags_kill) | it->flags_read;
    }
    out->entry = regs[0];
    return dropped;
}

static void sum_up(weave_folded *out)
{
    out->used = out->entry;
    out->written = out->fixed = 0;
    out->flags = false;
    for (unsigned i = 0; i < out->count; i++) {
        const item *it = &out->items[i];
        out->used |= it->reads | it->writes;
        out->written |= it->writes;
        if (it->kind == ITEM_COPY) out->fixed |= it->of->fixed;
        if (it->flags_written) out->flags = true;
    }
}

void weave_fold(const weave_body *body, uint64_t mask, const weave_known *known, bool wanted, weave_folded *out)
{
    folder f;
    unsigned result = body->isa->abi.result;
    f.isa = body->isa, f.body = body, f.out = out;
    f.now.compared = false;
    for (unsigned i = 0; i <= body->count; i++) f.at[i].reached = false; /* nothing else is looked at before */
    *out = (weave_folded){.count = body->count};
    find_flags(&f);
    forward(&f, mask, known);
    out->result_known = f.now.reached && f.now.known >> result & 1;
    out->result = f.now.value[result];
    isa_regs at_end = wanted && !out->result_known ? WEAVE_BIT(result) : 0;
    while (sweep(out, at_end)) {}
    sum_up(out);
}
