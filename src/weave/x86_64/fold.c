/* A body with some arguments known: see body.h. Forward, what is known goes into addresses, immediates and
 * conditions; backward, what nobody wants is dropped, until nothing changes. */
#include "weave/x86_64/body.h"

typedef struct state {
    bool reached;
    uint32_t known;
    uint64_t value[X86_REGS];
    bool compared; /* the flags are those of a `op` b */
    uint8_t op, width;
    uint64_t a, b;
} state;

typedef struct folder {
    const weave_body *body;
    weave_folded *out;
    uint32_t flags_behind[BODY_INSNS]; /* that the body as it is looks at */
    state now, at[BODY_INSNS + 1];     /* at jump targets */
    bool sets;                         /* what the instruction leaves in a register is known */
    uint8_t set_reg;
    uint64_t set_value;
} folder;

/* clang-format off */
typedef enum form_kind { FORM_OTHER, FORM_MOV, FORM_ALU, FORM_TEST, FORM_LEA, FORM_SHIFT, FORM_STEP, FORM_NOT,
                         FORM_NEG, FORM_SX, FORM_ZX, FORM_MUL } form_kind;
enum { TEST = 16 }; /* beside the operations of x86_alu */

typedef struct form {
    uint8_t kind, op;
    const isa_operand *dst, *src, *third; /* the explicit operands */
} form;
/* clang-format on */

static bool fits32(uint64_t v) { return v == (uint64_t)(int64_t)(int32_t)v; }

static uint64_t cut(uint64_t v, unsigned width) { return width >= 8 ? v : v & ((1ull << 8 * width) - 1); }

static uint64_t extended(uint64_t v, unsigned width)
{
    unsigned shift = 64 - 8 * width;
    return (uint64_t)((int64_t)(v << shift) >> shift);
}

/* --- which instruction it is --- */

static void of_group(uint8_t op, unsigned field, form *f)
{
    if (op == 0xf6 || op == 0xf7) {
        f->kind = field < 2 ? FORM_TEST : field == 2 ? FORM_NOT : field == 3 ? FORM_NEG : FORM_OTHER;
    } else if (op == 0xfe || op == 0xff) {
        f->kind = field < 2 ? FORM_STEP : FORM_OTHER;
        f->op = field ? X86_SUB : X86_ADD;
    } else { /* c0, c1, d0 to d3 */
        f->kind = field == X86_SHL || field == X86_SHR || field == X86_SAR ? FORM_SHIFT : FORM_OTHER;
        f->op = (uint8_t)field;
    }
}

static void of_opcode(const isa_insn *in, form *f)
{
    uint8_t op = in->raw[in->opcode_at];
    unsigned field = in->modrm_at ? in->raw[in->modrm_at] >> 3 & 7 : 0;
    if (in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f) {
        f->kind = op == 0xb6 || op == 0xb7   ? FORM_ZX
                  : op == 0xbe || op == 0xbf ? FORM_SX
                  : op == 0xaf               ? FORM_MUL
                                             : FORM_OTHER;
        return;
    }
    if (op < 0x40 && (op & 7) < 6) *f = (form){FORM_ALU, op >> 3, 0, 0, 0};
    else if (op >= 0x80 && op <= 0x83 && op != 0x82) *f = (form){FORM_ALU, (uint8_t)field, 0, 0, 0};
    else if ((op & 0xfe) == 0x84 || (op & 0xfe) == 0xa8) f->kind = FORM_TEST;
    else if ((op & 0xfc) == 0x88 || (op & 0xfe) == 0xc6 || (op & 0xf0) == 0xb0) f->kind = FORM_MOV;
    else if (op == 0x8d) f->kind = FORM_LEA;
    else if (op == 0x63 || op == 0x98) f->kind = FORM_SX;
    else if (op == 0x69 || op == 0x6b) f->kind = FORM_MUL;
    else if ((op & 0xfe) == 0xc0 || (op & 0xfc) == 0xd0 || (op & 0xfe) == 0xf6 || (op & 0xfe) == 0xfe)
        of_group(op, field, f);
}

/* Takes the operands from `o`. */
static form form_of(const isa_insn *in, isa_operand o[ISA_MAX_OPERANDS])
{
    form f = {FORM_OTHER, 0, 0, 0, 0};
    const isa_operand *explicit[3] = {0, 0, 0};
    unsigned k = 0;
    int n = isa_x86_64.operands(in, o);
    for (int i = 0; i < n && k < 3; i++)
        if (!o[i].implicit) explicit[k++] = &o[i];
    if (in->bits & ISA_BIT_LOCK) return f;
    of_opcode(in, &f);
    f.dst = explicit[0], f.src = explicit[1], f.third = explicit[2];
    for (int i = 0; i < n && in->raw[in->opcode_at] == 0x98; i++) { /* cdqe: rax, eax */
        if (o[i].kind == ISA_OPERAND_REG && o[i].size == 8) f.dst = &o[i];
        if (o[i].kind == ISA_OPERAND_REG && o[i].size == 4) f.src = &o[i];
    }
    bool binary = f.kind == FORM_MOV || f.kind == FORM_ALU || f.kind == FORM_TEST || f.kind == FORM_SX ||
                  f.kind == FORM_ZX;
    if (!f.dst || (binary && !f.src)) f.kind = FORM_OTHER;
    return f;
}

/* --- values --- */

static bool operand_value(const state *s, const isa_operand *o, uint64_t *v)
{
    if (!o) return false;
    if (o->kind == ISA_OPERAND_IMM) *v = (uint64_t)o->imm;
    else if (o->kind == ISA_OPERAND_REG && s->known >> o->reg & 1) *v = s->value[o->reg];
    else return false;
    return true;
}

static uint64_t operate(unsigned op, unsigned width, uint64_t a, uint64_t b)
{
    uint64_t v = 0;
    switch (op) {
    case X86_ADD: v = a + b; break;
    case X86_SUB:
    case X86_CMP: v = a - b; break;
    case X86_AND:
    case TEST: v = a & b; break;
    case X86_OR: v = a | b; break;
    case X86_XOR: v = a ^ b; break;
    default: break;
    }
    return cut(v, width);
}

static uint64_t shift(unsigned op, unsigned width, uint64_t a, unsigned count)
{
    if (op == X86_SHL) return cut(a << count, width);
    if (op == X86_SHR) return cut(a, width) >> count;
    return cut((uint64_t)((int64_t)extended(a, width) >> count), width);
}

/* Flags of a `op` b, op being of subtraction or logic. */
static uint32_t flags_of(const state *s)
{
    uint64_t a = cut(s->a, s->width), b = cut(s->b, s->width), v = operate(s->op, s->width, a, b);
    uint64_t top = 1ull << (8 * s->width - 1);
    bool subtracts = s->op == X86_SUB || s->op == X86_CMP;
    uint32_t flags = v ? 0 : X86_ZF;
    if (v & top) flags |= X86_SF;
    if (subtracts && a < b) flags |= X86_CF;
    if (subtracts && (a ^ b) & (a ^ v) & top) flags |= X86_OF;
    return flags;
}

static bool decide(const state *s, unsigned cond, bool *taken)
{
    if (!s->compared || x86_cond_flags(cond) & X86_PF) return false;
    uint32_t f = flags_of(s);
    bool less = !(f & X86_SF) != !(f & X86_OF), yes;
    switch (cond >> 1) {
    case 0: yes = f & X86_OF; break;
    case 1: yes = f & X86_CF; break;
    case 2: yes = f & X86_ZF; break;
    case 3: yes = f & (X86_CF | X86_ZF); break;
    case 4: yes = f & X86_SF; break;
    case 6: yes = less; break;
    default: yes = less || f & X86_ZF;
    }
    *taken = yes ^ (cond & 1);
    return true;
}

static void meet(state *to, const state *from)
{
    if (!from->reached) return;
    if (!to->reached) {
        *to = *from;
        return;
    }
    to->known &= from->known;
    for (unsigned r = 0; r < X86_REGS; r++)
        if (to->value[r] != from->value[r]) to->known &= ~(1u << r);
    to->compared = false;
}

/* --- one instruction --- */

static uint32_t address_variables(const x86_addr *a)
{
    return (a->base < BODY_VARIABLES ? 1u << a->base : 0) | (a->index < BODY_VARIABLES ? 1u << a->index : 0);
}

static bool fold_address(const state *s, const isa_insn *in, x86_addr *out)
{
    isa_mem m[ISA_MAX_MEM];
    if (!isa_x86_64.memory(in, m)) return false;
    x86_addr whole = {m[0].base, m[0].index, m[0].scale ? m[0].scale : 1, 0, false, m[0].disp};
    x86_addr a = whole;
    uint64_t disp = (uint64_t)a.disp;
    if (a.base < X86_REGS && s->known >> a.base & 1) {
        disp += s->value[a.base];
        a.base = ISA_NO_REG;
    }
    if (a.index < X86_REGS && s->known >> a.index & 1) {
        disp += s->value[a.index] * a.scale;
        a.index = ISA_NO_REG, a.scale = 1;
    }
    a.disp = (int64_t)disp;
    bool absolute = a.base == ISA_NO_REG && a.index == ISA_NO_REG;
    *out = absolute || fits32(disp) ? a : whole;
    return true;
}

static void effects_of(item *it)
{
    const body_insn *b = it->of;
    it->flags_read = b->fx.flags_read & X86_ARITH;
    it->flags_written = (b->fx.flags_written | b->fx.flags_undefined) & X86_ARITH;
    it->flags_kill = b->fx.flags_kill & X86_ARITH;
    it->writes = (uint32_t)b->fx.writes;
    it->kills = (uint32_t)b->fx.kills;
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
                 .writes = 1u << reg,
                 .kills = 1u << reg};
}

/* What the destination, a whole register, holds is known. */
static void result_is(folder *f, unsigned i, const form *m, uint64_t v)
{
    item *it = &f->out->items[i];
    v = cut(v, m->dst->size);
    if (!(it->flags_written & f->flags_behind[i])) become_const(it, m->dst->reg, v);
    f->sets = true;
    f->set_reg = m->dst->reg, f->set_value = v;
}

static bool is_whole(const isa_operand *o) { return o->kind == ISA_OPERAND_REG && o->size >= 4; }

static void with_immediate(item *it, uint8_t kind, const form *m, unsigned op, uint64_t v)
{
    it->kind = kind;
    it->op = (uint8_t)op;
    it->width = (uint8_t)m->dst->size;
    it->imm = extended(v, it->width);
    bool stores = kind == ITEM_STORE || kind == ITEM_ALU_MI;
    if (!stores) it->dst = m->dst->reg;
    it->reads = stores ? address_variables(&it->mem) : 1u << m->dst->reg;
}

static void fold_alu(folder *f, unsigned i, const form *m)
{
    item *it = &f->out->items[i];
    bool tests = m->kind == FORM_TEST;
    unsigned op = tests ? TEST : m->op, width = m->dst->size;
    uint64_t a = 0, b = 0;
    if (op == X86_ADC || op == X86_SBB) return;
    bool left = operand_value(&f->now, m->dst, &a), right = operand_value(&f->now, m->src, &b);
    bool cleared = !tests && m->src->kind == ISA_OPERAND_REG && m->dst->kind == ISA_OPERAND_REG &&
                   m->src->reg == m->dst->reg && (op == X86_XOR || op == X86_SUB);
    if (cleared) a = b = 0, left = right = true;
    if (left && right && op != X86_ADD) {
        f->now.compared = true;
        f->now.op = (uint8_t)op, f->now.width = (uint8_t)width;
        f->now.a = a, f->now.b = b;
    }
    if (left && right && is_whole(m->dst) && op != X86_CMP && !tests) {
        result_is(f, i, m, operate(op, width, a, b));
        return;
    }
    if (!right || m->src->kind == ISA_OPERAND_MEM || !fits32(extended(b, width))) return;
    if (m->dst->kind == ISA_OPERAND_REG) with_immediate(it, tests ? ITEM_TEST_RI : ITEM_ALU_RI, m, op, b);
    else if (!tests && m->src->kind == ISA_OPERAND_REG) with_immediate(it, ITEM_ALU_MI, m, op, b);
}

static void fold_mov(folder *f, unsigned i, const form *m)
{
    item *it = &f->out->items[i];
    uint64_t v;
    if (!operand_value(&f->now, m->src, &v)) return;
    if (is_whole(m->dst)) result_is(f, i, m, v);
    else if (m->dst->kind == ISA_OPERAND_MEM && fits32(extended(v, m->dst->size)))
        with_immediate(it, ITEM_STORE, m, 0, v);
}

static void fold_shift(folder *f, unsigned i, const form *m)
{
    item *it = &f->out->items[i];
    unsigned width = m->dst->size;
    uint64_t a, n = 1;
    if (!is_whole(m->dst) || (m->src && !operand_value(&f->now, m->src, &n))) return;
    n &= width == 8 ? 63 : 31;
    if (operand_value(&f->now, m->dst, &a)) {
        result_is(f, i, m, shift(m->op, width, a, (unsigned)n));
    } else if (n && m->src && m->src->kind == ISA_OPERAND_REG) {
        with_immediate(it, ITEM_SHIFT, m, m->op, n);
    }
}

static void fold_unary(folder *f, unsigned i, const form *m)
{
    uint64_t a;
    if (!is_whole(m->dst) || !operand_value(&f->now, m->dst, &a)) return;
    if (m->kind == FORM_STEP) a = m->op == X86_ADD ? a + 1 : a - 1;
    else a = m->kind == FORM_NOT ? ~a : 0 - a;
    result_is(f, i, m, a);
}

static void fold_multiply(folder *f, unsigned i, const form *m)
{
    uint64_t a, b;
    if (!m->src || !is_whole(m->dst)) return;
    if (operand_value(&f->now, m->third ? m->third : m->dst, &a) && operand_value(&f->now, m->src, &b))
        result_is(f, i, m, a * b);
}

static void fold_extension(folder *f, unsigned i, const form *m)
{
    item *it = &f->out->items[i];
    uint64_t v;
    if (!is_whole(m->dst)) return;
    const isa_operand *src = m->src;
    if (src->kind != ISA_OPERAND_REG) return;
    unsigned from = src->size;
    if (operand_value(&f->now, src, &v)) {
        result_is(f, i, m, m->kind == FORM_ZX ? cut(v, from) : extended(v, from));
    } else if (from == 4 && m->dst->size == 8 && m->kind == FORM_SX) {
        it->kind = ITEM_SX;
        it->dst = m->dst->reg, it->src = src->reg;
    }
}

static void fold_lea(folder *f, unsigned i, const form *m)
{
    const item *it = &f->out->items[i];
    bool absolute = it->mem.base == ISA_NO_REG && it->mem.index == ISA_NO_REG;
    if (absolute && is_whole(m->dst)) result_is(f, i, m, (uint64_t)it->mem.disp);
}

static void fold_insn(folder *f, unsigned i)
{
    isa_operand o[ISA_MAX_OPERANDS];
    item *it = &f->out->items[i];
    const body_insn *b = it->of;
    it->kind = ITEM_COPY;
    it->has_mem = fold_address(&f->now, &b->in, &it->mem);
    effects_of(it);
    form m = form_of(&b->in, o);
    state *s = &f->now;
    f->sets = false;
    if (it->flags_written) s->compared = false;
    switch (m.kind) {
    case FORM_MOV: fold_mov(f, i, &m); break;
    case FORM_ALU:
    case FORM_TEST: fold_alu(f, i, &m); break;
    case FORM_SHIFT: fold_shift(f, i, &m); break;
    case FORM_STEP:
    case FORM_NOT:
    case FORM_NEG: fold_unary(f, i, &m); break;
    case FORM_MUL: fold_multiply(f, i, &m); break;
    case FORM_SX:
    case FORM_ZX: fold_extension(f, i, &m); break;
    case FORM_LEA: fold_lea(f, i, &m); break;
    default: break;
    }
    s->known &= ~(uint32_t)b->fx.writes;
    if (!f->sets) return;
    s->known |= 1u << f->set_reg;
    s->value[f->set_reg] = f->set_value;
}

/* --- the whole --- */

static void fold_jump(folder *f, unsigned i)
{
    item *it = &f->out->items[i];
    const body_insn *b = it->of;
    bool taken = true, always = b->in.flow != ISA_FLOW_COND;
    *it = (item){
        .kind = ITEM_JUMP, .op = b->in.cond, .target = b->target, .of = b, .flags_read = b->fx.flags_read & X86_ARITH};
    if (!always && !decide(&f->now, b->in.cond, &taken)) {
        meet(&f->at[b->target], &f->now);
    } else if (taken) {
        *it = (item){.kind = ITEM_ALWAYS, .target = b->target, .of = b};
        meet(&f->at[b->target], &f->now);
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
    for (unsigned r = 0; r < X86_REGS; r++) f->now.value[r] = known->value[r];
    for (unsigned i = 0; i <= body->count; i++) {
        meet(&f->now, &f->at[i]);
        if (i == body->count) break;
        item *it = &f->out->items[i];
        const body_insn *b = it->of = &body->insns[i];
        if (!f->now.reached || b->nothing || mask >> i & 1) drop(it);
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
        in[i] = (out & ~b->fx.flags_kill) | (b->fx.flags_read & X86_ARITH);
    }
}

static bool skips_nothing(const weave_folded *out, unsigned i)
{
    for (unsigned k = i + 1; k < out->items[i].target; k++)
        if (out->items[k].kind != ITEM_GONE) return false;
    return true;
}

/* One round backward; true when something was dropped. */
static bool sweep(weave_folded *out, uint32_t at_end)
{
    uint32_t regs[BODY_INSNS + 1], flags[BODY_INSNS + 1];
    bool dropped = false;
    regs[out->count] = at_end, flags[out->count] = 0;
    for (unsigned i = out->count; i-- > 0;) {
        item *it = &out->items[i];
        uint32_t r = regs[i + 1], fl = flags[i + 1];
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
    out->used = (uint16_t)out->entry;
    out->written = out->fixed = 0;
    out->flags = false;
    for (unsigned i = 0; i < out->count; i++) {
        const item *it = &out->items[i];
        out->used |= (uint16_t)(it->reads | it->writes);
        out->written |= (uint16_t)it->writes;
        if (it->kind == ITEM_COPY) out->fixed |= it->of->fixed;
        if (it->flags_written) out->flags = true;
    }
}

void weave_fold(const weave_body *body, uint64_t mask, const weave_known *known, bool wanted, weave_folded *out)
{
    folder f = {.body = body, .out = out};
    *out = (weave_folded){.count = body->count};
    find_flags(&f);
    forward(&f, mask, known);
    out->result_known = f.now.reached && f.now.known >> X86_RAX & 1;
    out->result = f.now.value[X86_RAX];
    uint32_t at_end = wanted && !out->result_known ? WEAVE_BIT(X86_RAX) : 0;
    while (sweep(out, at_end)) {}
    sum_up(out);
}
