/* Random snippets, the routines they call, and a model that says what they must do. */
#include "weave_gen.h"

#include <string.h>

effects_log real_effects, model_effects;
static unsigned any(unsigned n) { return harness_random() % n; }

static void note(effects_log *l, uint64_t v)
{
    if (l->used < LOG_SIZE) l->log[l->used++] = v;
}

static uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15u; }

/* Not to be analysed: calls through a pointer, uses the thread pointer and vector registers. */
static void (*volatile note_pointer)(effects_log *, uint64_t) = note;
static __thread uint64_t calls_here;

static uint64_t routine_unknown(uint64_t a, uint64_t b, uint64_t c)
{
    double d = (double)(int64_t)a * 1.5;
    char text[64];
    memset(text, (int)b, sizeof text);
    calls_here += d > 0;
    note_pointer(&real_effects, a);
    note_pointer(&real_effects, b);
    note_pointer(&real_effects, c);
    return mix(mix(a, b), c);
}

static uint64_t routine_eight(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                              uint64_t h)
{
    uint64_t v[] = {a, b, c, d, e, f, g, h}, sum = 0;
    for (unsigned i = 0; i < 8; i++) note_pointer(&real_effects, v[i]), sum = mix(sum, v[i]);
    return sum;
}

/* Its clobbers can be read off: all caller-saved registers, flags, two vector registers. */
__asm__(".text\nroutine_known:\n mov real_used(%rip), %rax\n mov (%rax), %ecx\n"
        " mov real_log(%rip), %rax\n mov %rdi, (%rax,%rcx,8)\n mov %rsi, 8(%rax,%rcx,8)\n"
        " add $2, %ecx\n mov real_used(%rip), %rax\n mov %ecx, (%rax)\n"
        " lea (%rdi,%rsi,2), %rax\n xor %edx, %edx\n mov %rdx, %rcx\n mov %rdx, %rdi\n"
        " mov %rdx, %rsi\n mov %rdx, %r8\n mov %rdx, %r9\n mov %rdx, %r10\n mov %rdx, %r11\n"
        " pxor %xmm3, %xmm3\n vpxor %xmm9, %xmm9, %xmm9\n sub $1, %rdx\n ret\n"
        ".data\nreal_used: .quad real_effects_used\nreal_log: .quad real_effects\n"
        ".set real_effects_used, real_effects + 4096*8 + 16*8 + 4*8\n.text\n");
uint64_t routine_known(uint64_t, uint64_t);
_Static_assert(offsetof(effects_log, used) == 4096 * 8 + 16 * 8 + 4 * 8, "as in the assembly");

/* A small leaf. */
static uint64_t __attribute__((noinline)) routine_leaf(uint64_t a, uint64_t b)
{
    if (a > b) real_effects.words[15] += a;
    else real_effects.words[14] ^= b + a;
    return a - b;
}

static snippet *node(unsigned kind) { return snippet_new(&bench.arena, (snippet_kind)kind); }
const snippet *gen_const(uint64_t v)
{
    snippet *s = node(SNIPPET_CONST);
    s->value = v;
    return s;
}

static const snippet *binary(unsigned op, const snippet *a, const snippet *b)
{
    snippet *s = node(SNIPPET_BINARY);
    s->op = (uint8_t)op;
    s->a = a, s->b = b;
    s->is_signed = any(2);
    return s;
}

/* How many locals are in sight; the outer ones have the lower numbers. */
static unsigned locals;

static snippet *local_node(unsigned kind, unsigned index, const snippet *a, const snippet *b)
{
    snippet *s = node(kind);
    s->index = index;
    s->a = a, s->b = b;
    return s;
}

static const snippet *leaf(const weave_insn *insn)
{
    isa_mem mem[ISA_MAX_MEM];
    snippet *s;
    int n = isa_x86_64.memory(&insn->in, mem);
    switch (any(14)) {
    case 0: return gen_const(any(2) ? any(5) : (uint64_t)harness_random() << 20);
    case 1: s = node(SNIPPET_FLAGS); return binary(SNIPPET_AND, s, gen_const(X86_ARITH | X86_DF));
    case 2: return node(SNIPPET_PC);
    case 3: return node(SNIPPET_THREAD);
    case 4: return node(SNIPPET_FALLTHROUGH);
    case 5:
        s = node(SNIPPET_COUNTER);
        s->index = any(GEN_COUNTERS);
        return s;
    case 6: return node(SNIPPET_REP_COUNT);
    case 7: return locals ? local_node(SNIPPET_LOCAL, any(locals), NULL, NULL) : node(SNIPPET_EXECUTES);
    case 8:
    case 9:
        if (n > 0) {
            s = node(SNIPPET_EA);
            s->index = any((unsigned)n);
            if (any(2) && mem[s->index].size <= 8 && (mem[s->index].size & (mem[s->index].size - 1)) == 0 &&
                mem[s->index].size && mem[s->index].access != ISA_ADDRESS_ONLY) {
                s->kind = SNIPPET_MEM_VALUE;
                if (insn->in.bits & ISA_BIT_REP) s->kind = SNIPPET_EA;
            }
            return s;
        } /* fall through */
    case 10:
        if (insn->in.flow == ISA_FLOW_COND || insn->in.flow == ISA_FLOW_COND_REG)
            return node(any(3) ? SNIPPET_TAKEN : SNIPPET_TARGET); /* fall through */
    default:
        s = node(SNIPPET_REG);
        s->reg = (uint8_t)any(16);
        return s;
    }
}

static const snippet *word_address(const weave_insn *insn, bool after, unsigned depth)
{
    const snippet *i = binary(SNIPPET_AND, gen_value(insn, after, depth), gen_const(7 * 8));
    return binary(SNIPPET_ADD, i, gen_const((uintptr_t)real_effects.words));
}

static const snippet *gen_atomic(const weave_insn *insn, bool after, unsigned depth)
{
    snippet *s = node(SNIPPET_ADD_TO);
    s->size = (uint8_t)(1 << any(4));
    s->a = word_address(insn, after, depth ? depth - 1 : 0);
    s->b = gen_value(insn, after, depth);
    return s;
}

static const snippet *gen_call(const weave_insn *insn, bool after, unsigned depth)
{
    static const struct {
        void (*fn)(void);
        unsigned nargs;
    } routines[] = {
        {(void (*)(void))routine_unknown, 3}, {(void (*)(void))routine_known, 2}, {(void (*)(void))routine_known, 2},
        {(void (*)(void))routine_leaf, 2},    {(void (*)(void))routine_leaf, 2},  {(void (*)(void))routine_eight, 8},
    };
    unsigned which = any(6);
    snippet *s = node(SNIPPET_CALL);
    s->fn = routines[which].fn;
    s->nargs = (uint8_t)routines[which].nargs;
    const snippet **args = inl_arena_alloc(&bench.arena, 8 * sizeof *args);
    for (unsigned i = 0; i < s->nargs; i++) args[i] = gen_value(insn, after, depth ? depth - 1 : 0);
    s->args = args;
    return s;
}

/* A local that the body may look at and set. */
static const snippet *gen_let(const weave_insn *insn, bool after, unsigned depth, bool effect)
{
    const snippet *value = gen_value(insn, after, depth - (depth > 0));
    if (locals == 3) return value;
    locals++;
    const snippet *body = effect ? gen_snippet(insn, after, depth - (depth > 0))
                                 : gen_value(insn, after, depth - (depth > 0));
    if (any(2)) {
        snippet *both = node(SNIPPET_SEQ);
        both->a = local_node(SNIPPET_SET_LOCAL, any(locals), gen_value(insn, after, 0), NULL);
        both->b = body;
        body = both;
    }
    locals--;
    return local_node(SNIPPET_LET, locals, value, body);
}

/* The loop ends early where this holds. */
static const snippet *gen_break(const weave_insn *insn, bool after, unsigned depth)
{
    snippet *leave = node(SNIPPET_IF), *both = node(SNIPPET_SEQ), *all = node(SNIPPET_SEQ);
    both->a = gen_snippet(insn, after, depth), both->b = node(SNIPPET_BREAK);
    leave->a = gen_value(insn, after, depth), leave->b = both;
    all->a = leave, all->b = gen_snippet(insn, after, depth);
    return snippet_has(all, SNIPPET_WHILE) ? node(SNIPPET_BREAK) : all;
}

/* An assignment that changes nothing; it moves the value from its slot to its register all the same. */
static const snippet *gen_set_reg(void)
{
    snippet *s = node(SNIPPET_SET_REG), *value = node(SNIPPET_REG);
    do s->reg = value->reg = (uint8_t)any(16);
    while (s->reg == X86_RSP);
    s->a = value;
    return s;
}

/* An operand stays where it is, but the instruction is written anew. */
static const snippet *gen_set_ea(const weave_insn *insn, bool after)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = isa_x86_64.memory(&insn->in, mem);
    if (n == 0 || after) return gen_set_reg();
    uint32_t k = any((unsigned)n);
    return local_node(SNIPPET_SET_EA, k, local_node(SNIPPET_EA, k, NULL, NULL), NULL);
}

const snippet *gen_value(const weave_insn *insn, bool after, unsigned depth)
{
    snippet *s;
    if (depth == 0) return leaf(insn);
    switch (any(9)) {
    case 8: return gen_let(insn, after, depth, false);
    case 0: return leaf(insn);
    case 1:
        s = node(SNIPPET_UNARY);
        s->op = (uint8_t)(SNIPPET_NEG + any(4));
        s->size = (uint8_t)(1 << any(4)), s->is_signed = any(2);
        s->a = gen_value(insn, after, depth - 1);
        return s;
    case 2:
        s = node(SNIPPET_LOAD);
        s->size = (uint8_t)(1 << any(4));
        s->is_signed = any(2);
        s->a = word_address(insn, after, depth - 1);
        return s;
    case 3:
        s = node(SNIPPET_IF);
        s->a = gen_value(insn, after, depth - 1);
        s->b = gen_value(insn, after, depth - 1);
        s->c = any(3) ? gen_value(insn, after, depth - 1) : NULL;
        return s;
    case 4:
        if (any(4) == 0) return gen_call(insn, after, depth - 1); /* fall through */
    default: return binary(any(SNIPPET_LOR + 1), gen_value(insn, after, depth - 1), gen_value(insn, after, depth - 1));
    }
}

/* words[w] counts down from at most 3 */
static const snippet *gen_loop(const weave_insn *insn, bool after)
{
    const snippet *at = gen_const((uintptr_t)&real_effects.words[10]);
    snippet *load = node(SNIPPET_LOAD), *init = node(SNIPPET_STORE), *step = node(SNIPPET_STORE);
    load->size = 8, load->a = at;
    init->size = 8, init->a = at;
    init->b = binary(SNIPPET_AND, gen_value(insn, after, 1), gen_const(3));
    step->size = 8, step->a = at, step->b = binary(SNIPPET_SUB, load, gen_const(1));
    snippet *body = node(SNIPPET_SEQ), *loop = node(SNIPPET_WHILE), *all = node(SNIPPET_SEQ);
    body->a = gen_snippet(insn, after, 1), body->b = step;
    if (any(3) == 0) body->a = gen_break(insn, after, 1);
    loop->a = load, loop->b = body;
    if (snippet_has(body->a, SNIPPET_WHILE)) body->a = gen_const(0);
    all->a = init, all->b = loop;
    return all;
}

const snippet *gen_snippet(const weave_insn *insn, bool after, unsigned depth)
{
    snippet *s;
    switch (any(13)) {
    case 9: return gen_let(insn, after, depth, true);
    case 10: return gen_set_reg();
    case 11:
    case 12: return gen_set_ea(insn, after);
    case 0:
    case 1:
        s = node(SNIPPET_COUNT);
        s->index = any(GEN_COUNTERS);
        s->a = any(3) ? gen_const(1 + any(3)) : gen_value(insn, after, depth);
        return s;
    case 2:
    case 3:
        s = node(any(4) ? SNIPPET_STORE : SNIPPET_ADD_TO);
        s->size = (uint8_t)(1 << any(4));
        s->a = word_address(insn, after, depth ? depth - 1 : 0);
        s->b = any(6) ? gen_value(insn, after, depth) : gen_atomic(insn, after, depth);
        return s;
    case 4:
        s = node(SNIPPET_IF);
        s->a = gen_value(insn, after, depth);
        s->b = gen_snippet(insn, after, depth ? depth - 1 : 0);
        s->c = any(2) ? gen_snippet(insn, after, depth ? depth - 1 : 0) : NULL;
        return s;
    case 5:
        s = node(SNIPPET_SEQ);
        s->a = gen_snippet(insn, after, depth ? depth - 1 : 0);
        s->b = gen_snippet(insn, after, depth ? depth - 1 : 0);
        return s;
    case 6: return gen_loop(insn, after);
    default: return gen_call(insn, after, depth);
    }
}

/* --- the model --- */

static unsigned addr32(const isa_insn *in)
{
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x67) return 1;
    return 0;
}

static bool holds(unsigned cond, uint64_t f)
{
    bool cf = f & X86_CF, zf = f & X86_ZF, sf = f & X86_SF, of = f & X86_OF, pf = f & X86_PF, v;
    switch (cond >> 1) {
    case 0: v = of; break;
    case 1: v = cf; break;
    case 2: v = zf; break;
    case 3: v = cf || zf; break;
    case 4: v = sf; break;
    case 5: v = pf; break;
    case 6: v = sf != of; break;
    default: v = zf || sf != of; break;
    }
    return v != (cond & 1);
}

static bool taken(const isa_insn *in, const machine *m)
{
    if (in->flow == ISA_FLOW_COND) return holds(in->cond, m->flags);
    uint64_t rcx = m->gpr[X86_RCX];
    if (addr32(in)) rcx = (uint32_t)rcx;
    bool zf = m->flags & X86_ZF;
    switch (in->raw[in->opcode_at]) {
    case 0xe0: return rcx != 1 && !zf;
    case 0xe1: return rcx != 1 && zf;
    case 0xe2: return rcx != 1;
    default: return rcx == 0;
    }
}

bool model_executes(const weave_insn *insn, const machine *before)
{
    const isa_insn *in = &insn->in;
    if (in->bits & ISA_BIT_REP) return before->gpr[X86_RCX] != 0;
    if (in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f && (in->raw[in->opcode_at] & 0xf0) == 0x40)
        return holds(in->raw[in->opcode_at] & 15, before->flags);
    return true;
}

static uint64_t address_of(const weave_insn *insn, unsigned index, const machine *m, unsigned *size)
{
    isa_mem mem[ISA_MAX_MEM];
    isa_x86_64.memory(&insn->in, mem);
    const isa_mem *o = &mem[index];
    *size = o->size;
    uint64_t at = (uint64_t)o->disp;
    if (o->base != ISA_NO_REG) at += m->gpr[o->base];
    if (o->index != ISA_NO_REG) at += m->gpr[o->index] * o->scale;
    return at;
}

static uint64_t widen(uint64_t v, unsigned size, bool is_signed)
{
    unsigned bits = 64 - 8 * size;
    if (!bits) return v;
    return is_signed ? (uint64_t)((int64_t)(v << bits) >> bits) : v << bits >> bits;
}

static uint8_t *shadow(uint64_t at) { return (uint8_t *)model_effects.words + (at - (uintptr_t)real_effects.words); }

static uint64_t fold(const snippet *s, uint64_t a, uint64_t b)
{
    snippet x = {.kind = SNIPPET_CONST, .value = a}, y = {.kind = SNIPPET_CONST, .value = b};
    snippet t = *s;
    t.a = &x, t.b = s->kind == SNIPPET_BINARY ? &y : NULL;
    return snippet_simplify(&bench.arena, &t)->value;
}

static uint64_t model_call(const snippet *s, const uint64_t *v)
{
    if (s->fn == (void (*)(void))routine_leaf) {
        if (v[0] > v[1]) model_effects.words[15] += v[0];
        else model_effects.words[14] ^= v[1] + v[0];
        return v[0] - v[1];
    }
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->nargs; i++) {
        note(&model_effects, v[i]);
        sum = i == 0 && s->nargs == 3 ? v[0] : mix(sum, v[i]);
    }
    return s->fn == (void (*)(void))routine_known ? v[0] + 2 * v[1] : sum;
}

static uint64_t model_insn_value(const snippet *s, const weave_insn *insn, const machine *before, const machine *now)
{
    unsigned size;
    uint64_t at, v = 0;
    switch (s->kind) {
    case SNIPPET_EA: return address_of(insn, s->index, before, &size);
    case SNIPPET_MEM_VALUE:
        at = address_of(insn, s->index, before, &size);
        memcpy(&v, (void *)(uintptr_t)at, size);
        return v;
    case SNIPPET_TAKEN: return taken(&insn->in, now);
    case SNIPPET_TARGET: return insn->in.target;
    case SNIPPET_REP_COUNT: return insn->in.bits & ISA_BIT_REP ? before->gpr[X86_RCX] : 1;
    default: return model_executes(insn, before);
    }
}

static uint64_t model_locals[8];
static bool broken; /* a loop is being left */

uint64_t model_run(const snippet *s, const weave_insn *insn, const machine *before, const machine *now)
{
#define RUN(x) model_run((x), insn, before, now)
    uint64_t a, b, v[SNIPPET_MAX_ARGS];
    switch (s->kind) {
    case SNIPPET_CONST: return s->value;
    case SNIPPET_REG: return now->gpr[s->reg];
    case SNIPPET_FLAGS: return now->flags;
    case SNIPPET_PC: return insn->in.addr;
    case SNIPPET_FALLTHROUGH: return insn->in.addr + insn->in.len;
    case SNIPPET_THREAD: return bench.frame->thread_number;
    case SNIPPET_COUNTER: return model_effects.counters[s->index];
    case SNIPPET_LOAD:
        a = RUN(s->a), b = 0;
        memcpy(&b, shadow(a), s->size);
        return widen(b, s->size, s->is_signed);
    case SNIPPET_STORE:
    case SNIPPET_ADD_TO:
        a = RUN(s->a), b = RUN(s->b), v[0] = 0;
        if (s->kind == SNIPPET_ADD_TO) memcpy(&v[0], shadow(a), s->size);
        b += v[0], memcpy(shadow(a), &b, s->size);
        return v[0];
    case SNIPPET_UNARY: return fold(s, RUN(s->a), 0);
    case SNIPPET_BINARY:
        a = RUN(s->a);
        if (s->op == SNIPPET_LAND) return a ? RUN(s->b) != 0 : 0;
        if (s->op == SNIPPET_LOR) return a ? 1 : RUN(s->b) != 0;
        b = RUN(s->b);
        return fold(s, a, b);
    case SNIPPET_IF: return RUN(s->a) ? RUN(s->b) : s->c ? RUN(s->c) : 0;
    case SNIPPET_SEQ: RUN(s->a); return broken ? 0 : RUN(s->b);
    case SNIPPET_WHILE:
        while (!broken && RUN(s->a)) RUN(s->b);
        broken = false;
        return 0;
    case SNIPPET_BREAK: broken = true; return 0;
    case SNIPPET_LET: model_locals[s->index] = RUN(s->a); return RUN(s->b);
    case SNIPPET_LOCAL: return model_locals[s->index];
    case SNIPPET_SET_LOCAL: model_locals[s->index] = RUN(s->a); return 0;
    case SNIPPET_SET_REG:
    case SNIPPET_SET_EA: RUN(s->a); return 0;
    case SNIPPET_COUNT:
        a = RUN(s->a);
        model_effects.counters[s->index] += a;
        return 0;
    case SNIPPET_CALL:
        for (unsigned i = 0; i < s->nargs; i++) { /* stack arguments come first */
            unsigned k = s->nargs <= 6 ? i : (i + 6) % s->nargs;
            v[k] = RUN(s->args[k]);
        }
        return model_call(s, v);
    default: return model_insn_value(s, insn, before, now);
    }
#undef RUN
}
