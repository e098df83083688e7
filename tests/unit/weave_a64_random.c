/* AArch64: the weaver disturbs nothing, and snippets compute what they say. Random programs with random snippets, woven
 * with every stress option, against the native run and a model of the snippets. */
#include "weave_a64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_INSNS = 24, LOG = 4096, WORDS = 16, ACROSS = 10, LEAF_WORDS = 14 };

typedef struct effects {
    uint64_t log[LOG], words[WORDS], counters[COUNTERS];
    uint32_t used;
} effects;
static effects real, model;
static uint32_t seed_now;

static unsigned any(unsigned n) { return harness_random() % n; }

/* --- programs: two registers hold addresses of data throughout --- */

static unsigned base0, base1;

static unsigned source(void) { return any(31); }

static unsigned dst(void)
{
    unsigned r;
    do r = any(31);
    while (r == base0 || r == base1);
    return r;
}

static unsigned base(void) { return any(2) ? base0 : base1; }
static unsigned width(void) { return any(2) ? 8 : 4; }

static void put_memory(isa_code *c)
{
    unsigned w = 1u << any(4), b = base(), r = dst();
    a64_addr at = any(3) ? a64_at(b, (int)(any(40) * w)) : a64_at(b, (int)any(200) - 100);
    if (any(6) == 0) at = a64_post(b, 8 - 8 * (int)any(3));
    else if (any(6) == 0) at = a64_pre(b, 8 - 8 * (int)any(3));
    else if (any(8) == 0) at = a64_at(A64_SP, (int)(any(20) * w));
    switch (any(6)) {
    case 0: a64_load_sx(c, w, r, at); break;
    case 1:
    case 2: a64_load(c, w, r, at); break;
    case 3: a64_store_vec(c, 16, a64_at(b, 16 * (int)any(10)), any(32)); break;
    case 4: a64_load_vec(c, w, any(32), at); break;
    default:
        if (at.post || at.pre) at = a64_at(b, 0); /* what is stored might be the base */
        a64_store(c, w, at, source());
    }
}

static void put_pair(isa_code *c)
{
    unsigned a = dst(), b = dst();
    int off = 8 * (int)any(30);
    switch (any(4)) {
    case 0:
        if (a != b) a64_load_pair(c, 8, a, b, a64_at(base(), off));
        break;
    case 1: a64_store_pair(c, 8, a64_at(base(), off), source(), source()); break;
    case 2: a64_store_pair(c, 8, a64_pre(A64_SP, -16), source(), source()); break;
    default: a64_load_exclusive(c, 8, a, base0); /* whether a store succeeds is the processor's to say */
    }
}

static void put_indexed(isa_code *c)
{
    unsigned index = dst();
    a64_mov_ri(c, index, any(40));
    a64_load(c, 8, dst(), a64_indexed(base(), index, any(2)));
    a64_mov_ri(c, index, 0xffffffff - any(40));
    a64_put(c, 0xb860c800 | index << 16 | base() << 5 | dst()); /* ldr w, [base, windex, sxtw] */
}

static void put_branch(isa_code *c)
{
    uint64_t to = harness_exit(1 + any(END - 1));
    switch (any(4)) {
    case 0:
    case 1: a64_bcond(c, (enum a64_cond)any(14), to); break;
    case 2: a64_cbz(c, any(2), width(), source(), to); break;
    default: a64_tbz(c, any(2), source(), any(64), to); break;
    }
}

static void put_arith(isa_code *c)
{
    unsigned w = width(), d = dst(), a = source(), b = source();
    switch (any(12)) {
    case 0:
    case 1: a64_arith_rr(c, (a64_arith)any(4), w, d, a, b, any(8 * w)); break;
    case 2: a64_arith_ri(c, (a64_arith)any(4), w, d, a, any(4096)); break;
    case 3: a64_logic_rr(c, (a64_logic)any(8), w, d, a, b, any(8 * w)); break;
    case 4: a64_madd(c, w, d, a, b, source()); break;
    case 5: a64_div(c, any(2), w, d, a, b); break;
    case 6: a64_csel(c, w, d, a, b, (enum a64_cond)any(14)); break;
    case 7: a64_cset(c, d, (enum a64_cond)any(14)); break;
    case 8: a64_shift_rr(c, (a64_shift)any(4), w, d, a, b); break;
    case 9: a64_arith_rr(c, A64_ARITH_SUBS, w, A64_ZR, a, b, 0); break;
    case 10: a64_mov_ri(c, d, (uint64_t)harness_random() << any(33)); break;
    default: a64_arith_rr(c, A64_ARITH_ADDS, w, d, A64_ZR, b, any(4)); break;
    }
}

static void put_misc(isa_code *c)
{
    switch (any(5)) {
    case 0: a64_read_flags(c, dst()); break;
    case 1: a64_put(c, 0xd51b4200 | source()); break;                                /* msr nzcv */
    case 2: a64_put(c, 0x4ee08400 | any(32) << 16 | any(32) << 5 | any(32)); break;  /* add v.2d */
    case 3: a64_address(c, dst(), (uintptr_t)bench.data + 8 * any(100)); break;      /* adr */
    default: a64_put(c, 0x1e602800 | any(32) << 16 | any(32) << 5 | any(32)); break; /* fadd d */
    }
}

static isa_code gen_program(unsigned count)
{
    isa_code c = harness_program();
    base0 = any(31);
    do base1 = any(31);
    while (base1 == base0);
    while (c.at / 4 < count) {
        unsigned kind = any(20);
        if (kind < 8) put_arith(&c);
        else if (kind < 13) put_memory(&c);
        else if (kind < 15) put_pair(&c);
        else if (kind < 16) put_indexed(&c);
        else if (kind < 18) put_misc(&c);
        else put_branch(&c);
    }
    return c;
}

/* --- routines --- */

static void note(effects *l, uint64_t v)
{
    if (l->used < LOG) l->log[l->used++] = v;
}

static uint64_t mix(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15u; }

static void (*volatile note_pointer)(effects *, uint64_t) = note;
static __thread uint64_t calls_here;

/* Not to be analysed; uses the thread pointer and vectors. */
static uint64_t unknown(uint64_t a, uint64_t b, uint64_t c)
{
    double d = (double)(int64_t)a * 1.5;
    char text[64];
    memset(text, (int)b, sizeof text);
    calls_here += d > 0;
    note_pointer(&real, a);
    note_pointer(&real, b);
    note_pointer(&real, c);
    __asm__ volatile("movi v7.16b, #7\n movi v16.16b, #9\n" ::"r"(text) : "v7", "v16", "memory");
    return mix(mix(a, b), c);
}

static uint64_t ten(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
                    uint64_t i, uint64_t j)
{
    uint64_t v[] = {a, b, c, d, e, f, g, h, i, j}, sum = 0;
    for (unsigned k = 0; k < 10; k++) note_pointer(&real, v[k]), sum = mix(sum, v[k]);
    return sum;
}

/* Its clobbers can be read off: registers that a call need not keep, flags, two vector registers. */
__asm__(".text\n.p2align 2\n.globl weave_test_known\nweave_test_known:\n mov x9, x0\n add x0, x0, x1, lsl 1\n"
        " mov x1, 0\n mov x2, 1\n mov x3, 2\n mov x4, 3\n mov x5, 4\n mov x6, 5\n mov x7, 6\n mov x8, 7\n mov x10, 8\n"
        " mov x11, 9\n mov x12, 10\n mov x13, 11\n mov x14, 12\n mov x15, 13\n mov x16, 14\n mov x17, 15\n"
        " movi v3.2d, #0\n movi v17.2d, #0\n cmp x1, #1\n ret\n");
uint64_t weave_test_known(uint64_t, uint64_t);

/* A small leaf. */
static uint64_t __attribute__((noinline)) leaf_routine(uint64_t a, uint64_t b)
{
    if (a > b) real.words[LEAF_WORDS + 1] += a;
    else real.words[LEAF_WORDS] ^= b + a;
    return a - b;
}

/* --- snippets --- */

static snippet *node(unsigned kind) { return snippet_new(&bench.arena, (snippet_kind)kind); }

static const snippet *constant(uint64_t v)
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

static unsigned locals; /* in sight; the outer ones have the lower numbers */

static snippet *local_node(unsigned kind, unsigned index, const snippet *a, const snippet *b)
{
    snippet *s = node(kind);
    s->index = index, s->a = a, s->b = b;
    return s;
}

static const snippet *gen_value(const weave_insn *insn, unsigned depth);
static const snippet *gen_snippet(const weave_insn *insn, unsigned depth);

static const snippet *gen_memory(const weave_insn *insn)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = isa_aarch64.memory(&insn->in, mem);
    if (n <= 0) return NULL;
    snippet *s = node(SNIPPET_EA);
    s->index = any((unsigned)n);
    const isa_mem *m = &mem[s->index];
    bool small = m->size && m->size <= 8 && !(m->size & (m->size - 1)) && m->access != ISA_ADDRESS_ONLY;
    if (small && any(2)) s->kind = SNIPPET_MEM_VALUE;
    else if (any(4) == 0) s->kind = SNIPPET_ACCESS_SIZE;
    return s;
}

static const snippet *gen_leaf(const weave_insn *insn)
{
    snippet *s;
    const snippet *m;
    bool branches = insn->in.flow == ISA_FLOW_COND || insn->in.flow == ISA_FLOW_COND_REG;
    switch (any(14)) {
    case 0: return constant(any(2) ? any(5) : (uint64_t)harness_random() << any(33));
    case 1: return binary(SNIPPET_AND, node(SNIPPET_FLAGS), constant(A64_NZCV));
    case 2: return node(SNIPPET_PC);
    case 3: return node(SNIPPET_THREAD);
    case 4: return node(SNIPPET_FALLTHROUGH);
    case 5: s = node(SNIPPET_COUNTER), s->index = any(COUNTERS); return s;
    case 6: return locals ? local_node(SNIPPET_LOCAL, any(locals), NULL, NULL) : node(SNIPPET_EXECUTES);
    case 7:
    case 8:
    case 9:
        if ((m = gen_memory(insn))) return m;
        if (branches) return node(any(3) ? SNIPPET_TAKEN : SNIPPET_TARGET); /* fall through */
    default: s = node(SNIPPET_REG), s->reg = (uint8_t)any(32); return s;
    }
}

static const snippet *word_address(const weave_insn *insn, unsigned depth)
{
    const snippet *i = binary(SNIPPET_AND, gen_value(insn, depth), constant(7 * 8));
    return binary(SNIPPET_ADD, i, constant((uintptr_t)real.words));
}

static const snippet *gen_call(const weave_insn *insn, unsigned depth)
{
    static const struct {
        void (*fn)(void);
        unsigned nargs;
    } routines[] = {{(void (*)(void))unknown, 3},
                    {(void (*)(void))weave_test_known, 2},
                    {(void (*)(void))leaf_routine, 2},
                    {(void (*)(void))ten, 10}};
    unsigned which = any(4);
    snippet *s = node(SNIPPET_CALL);
    s->fn = routines[which].fn;
    s->nargs = (uint8_t)routines[which].nargs;
    const snippet **args = inl_arena_alloc(&bench.arena, 10 * sizeof *args);
    for (unsigned i = 0; i < s->nargs; i++) args[i] = gen_value(insn, depth ? depth - 1 : 0);
    s->args = args;
    return s;
}

/* A local that the body may look at and set. */
static const snippet *gen_let(const weave_insn *insn, unsigned depth, bool effect)
{
    const snippet *value = gen_value(insn, depth - (depth > 0));
    if (locals++ == 3) return locals--, value;
    const snippet *body = effect ? gen_snippet(insn, depth - (depth > 0)) : gen_value(insn, depth - (depth > 0));
    if (any(2)) {
        snippet *both = node(SNIPPET_SEQ);
        both->a = local_node(SNIPPET_SET_LOCAL, any(locals), gen_value(insn, 0), NULL), both->b = body;
        body = both;
    }
    locals--;
    return local_node(SNIPPET_LET, locals, value, body);
}

/* The loop ends early where this holds. */
static const snippet *gen_break(const weave_insn *insn, unsigned depth)
{
    snippet *leave = node(SNIPPET_IF), *both = node(SNIPPET_SEQ), *all = node(SNIPPET_SEQ);
    both->a = gen_snippet(insn, depth), both->b = node(SNIPPET_BREAK);
    leave->a = gen_value(insn, depth), leave->b = both;
    all->a = leave, all->b = gen_snippet(insn, depth);
    return snippet_has(all, SNIPPET_WHILE) ? node(SNIPPET_BREAK) : all;
}

/* An assignment that changes nothing; it moves the value from its slot to its register all the same. */
static const snippet *gen_set_reg(void)
{
    snippet *s = local_node(SNIPPET_SET_REG, 0, node(SNIPPET_REG), NULL);
    s->reg = ((snippet *)s->a)->reg = (uint8_t)any(31);
    return s;
}

static const snippet *gen_value(const weave_insn *insn, unsigned depth)
{
    snippet *s;
    if (depth == 0) return gen_leaf(insn);
    switch (any(9)) {
    case 8: return gen_let(insn, depth, false);
    case 0: return gen_leaf(insn);
    case 1:
        s = node(SNIPPET_UNARY);
        s->op = (uint8_t)(SNIPPET_NEG + any(4));
        s->size = (uint8_t)(1 << any(4)), s->is_signed = any(2);
        s->a = gen_value(insn, depth - 1);
        return s;
    case 2:
        s = node(SNIPPET_LOAD);
        s->size = (uint8_t)(1 << any(4));
        s->is_signed = any(2);
        s->a = word_address(insn, depth - 1);
        return s;
    case 3:
        s = node(SNIPPET_IF);
        s->a = gen_value(insn, depth - 1);
        s->b = gen_value(insn, depth - 1);
        s->c = any(3) ? gen_value(insn, depth - 1) : NULL;
        return s;
    case 4:
        if (any(4) == 0) return gen_call(insn, depth - 1); /* fall through */
    default: return binary(any(SNIPPET_LOR + 1), gen_value(insn, depth - 1), gen_value(insn, depth - 1));
    }
}

/* One word counts down from at most 3. */
static const snippet *gen_loop(const weave_insn *insn)
{
    const snippet *at = constant((uintptr_t)&real.words[ACROSS]);
    snippet *load = node(SNIPPET_LOAD), *init = node(SNIPPET_STORE), *step = node(SNIPPET_STORE);
    load->size = 8, load->a = at;
    init->size = 8, init->a = at;
    init->b = binary(SNIPPET_AND, gen_value(insn, 1), constant(3));
    step->size = 8, step->a = at, step->b = binary(SNIPPET_SUB, load, constant(1));
    snippet *body = node(SNIPPET_SEQ), *loop = node(SNIPPET_WHILE), *all = node(SNIPPET_SEQ);
    body->a = gen_snippet(insn, 1), body->b = step;
    if (any(3) == 0) body->a = gen_break(insn, 1);
    if (snippet_has(body->a, SNIPPET_WHILE)) body->a = constant(0);
    loop->a = load, loop->b = body;
    all->a = init, all->b = loop;
    return all;
}

static const snippet *gen_snippet(const weave_insn *insn, unsigned depth)
{
    snippet *s;
    switch (any(10)) {
    case 8: return gen_let(insn, depth, true);
    case 9: return gen_set_reg();
    case 0:
    case 1:
        s = node(SNIPPET_COUNT);
        s->index = any(COUNTERS);
        s->a = any(3) ? constant(1 + any(3)) : gen_value(insn, depth);
        return s;
    case 2:
    case 3:
        s = node(SNIPPET_STORE);
        s->size = (uint8_t)(1 << any(4));
        s->a = word_address(insn, depth);
        s->b = gen_value(insn, depth);
        return s;
    case 4:
        s = node(SNIPPET_IF);
        s->a = gen_value(insn, depth);
        s->b = gen_snippet(insn, depth ? depth - 1 : 0);
        s->c = any(2) ? gen_snippet(insn, depth ? depth - 1 : 0) : NULL;
        return s;
    case 5: return gen_loop(insn);
    default: return gen_call(insn, depth);
    }
}

/* --- the model --- */

static bool holds(unsigned cond, uint64_t f)
{
    bool n = f & A64_N, z = f & A64_Z, c = f & A64_C, v = f & A64_V;
    const bool so[] = {z, c, n, v, c && !z, n == v, !z && n == v, true};
    return so[cond >> 1 & 7] != (cond & 1);
}

static bool taken(const isa_insn *in, const machine *m)
{
    uint32_t word = a64_word(in);
    if (in->flow == ISA_FLOW_COND) return holds(in->cond, m->flags);
    uint64_t v = (word & 31) == 31 ? 0 : m->gpr[word & 31];
    bool nonzero = word >> 24 & 1;
    if ((word & 0x7e000000) == 0x36000000) return (v >> (word >> 31 << 5 | (word >> 19 & 31)) & 1) == nonzero;
    return (word >> 31 ? v != 0 : (uint32_t)v != 0) == nonzero;
}

static uint64_t address_of(const weave_insn *insn, unsigned index, const machine *m, unsigned *size)
{
    isa_mem mem[ISA_MAX_MEM];
    isa_aarch64.memory(&insn->in, mem);
    const isa_mem *o = &mem[index];
    uint64_t at = (uint64_t)o->disp;
    *size = o->size;
    if (o->base < A64_REGS) at += m->gpr[o->base];
    if (o->index >= A64_REGS) return at;
    uint64_t i = m->gpr[o->index];
    if (o->index_low) i = o->index_signed ? (uint64_t)(int32_t)i : (uint32_t)i;
    return at + i * o->scale;
}

static uint64_t widen(uint64_t v, unsigned size, bool is_signed)
{
    unsigned bits = 64 - 8 * size;
    if (!bits) return v;
    return is_signed ? (uint64_t)((int64_t)(v << bits) >> bits) : v << bits >> bits;
}

static uint8_t *shadow(uint64_t at) { return (uint8_t *)model.words + (at - (uintptr_t)real.words); }

static uint64_t fold(const snippet *s, uint64_t a, uint64_t b)
{
    snippet x = {.kind = SNIPPET_CONST, .value = a}, y = {.kind = SNIPPET_CONST, .value = b};
    snippet t = *s;
    t.a = &x, t.b = s->kind == SNIPPET_BINARY ? &y : NULL;
    return snippet_simplify(&bench.arena, &t)->value;
}

static uint64_t model_call(const snippet *s, const uint64_t *v)
{
    uint64_t sum = 0;
    if (s->fn == (void (*)(void))leaf_routine) {
        if (v[0] > v[1]) model.words[LEAF_WORDS + 1] += v[0];
        else model.words[LEAF_WORDS] ^= v[1] + v[0];
        return v[0] - v[1];
    }
    if (s->fn == (void (*)(void))weave_test_known) return v[0] + 2 * v[1];
    for (unsigned i = 0; i < s->nargs; i++) {
        note(&model, v[i]);
        sum = i == 0 && s->nargs == 3 ? v[0] : mix(sum, v[i]);
    }
    return sum;
}

static uint64_t model_locals[8];
static bool broken; /* a loop is being left */
static uint64_t run_model(const snippet *s, const weave_insn *insn, const machine *before, const machine *now_at);

static uint64_t model_insn_value(const snippet *s, const weave_insn *insn, const machine *before, const machine *at)
{
    unsigned size;
    uint64_t where, v = 0;
    switch (s->kind) {
    case SNIPPET_EA: return address_of(insn, s->index, before, &size);
    case SNIPPET_ACCESS_SIZE: address_of(insn, s->index, before, &size); return size;
    case SNIPPET_MEM_VALUE:
        where = address_of(insn, s->index, before, &size);
        memcpy(&v, (void *)(uintptr_t)where, size);
        return v;
    case SNIPPET_TAKEN: return taken(&insn->in, at);
    case SNIPPET_TARGET: return insn->in.target;
    default: return 1; /* it executes */
    }
}

static uint64_t run_model(const snippet *s, const weave_insn *insn, const machine *before, const machine *at)
{
#define RUN(x) run_model((x), insn, before, at)
    uint64_t a, b, v[SNIPPET_MAX_ARGS];
    switch (s->kind) {
    case SNIPPET_CONST: return s->value;
    case SNIPPET_REG: return at->gpr[s->reg];
    case SNIPPET_FLAGS: return at->flags;
    case SNIPPET_PC: return insn->in.addr;
    case SNIPPET_FALLTHROUGH: return insn->in.addr + 4;
    case SNIPPET_THREAD: return bench.frame->thread_number;
    case SNIPPET_COUNTER: return model.counters[s->index];
    case SNIPPET_LOAD:
        a = RUN(s->a), b = 0;
        memcpy(&b, shadow(a), s->size);
        return widen(b, s->size, s->is_signed);
    case SNIPPET_STORE:
        a = RUN(s->a), b = RUN(s->b);
        memcpy(shadow(a), &b, s->size);
        return 0;
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
    case SNIPPET_SET_REG: RUN(s->a); return 0;
    case SNIPPET_COUNT:
        a = RUN(s->a);
        model.counters[s->index] += a;
        return 0;
    case SNIPPET_CALL:
        for (unsigned i = 0; i < s->nargs; i++) { /* stack arguments come first */
            unsigned k = s->nargs <= 8 ? i : (i + 8) % s->nargs;
            v[k] = RUN(s->args[k]);
        }
        return model_call(s, v);
    default: return model_insn_value(s, insn, before, at);
    }
#undef RUN
}

static void model_list(const weave_list *list, const weave_insn *insn, const machine *before, const machine *at)
{
    for (const weave_insert *n = list->first; n; n = n->next) run_model(n->code, insn, before, at);
}

/* Instruction by instruction, with the memory that is there. */
static void model_all(const weave_run *run, const machine *start)
{
    machine before, at = *start;
    memset(&model, 0, sizeof model);
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        const weave_block *block = &run->blocks[insn->block];
        before = at, at = *start;
        harness_fill_memory();
        harness_native(run, i, &at);
        if (at.exit != END) return;
        if (i) model_list(&insn[-1].after, &insn[-1], &before, &at);
        if (block->first == i) model_list(&block->anywhere, insn, &at, &at);
        model_list(&insn->before, insn, &at, &at);
    }
    before = at, at = *start;
    harness_fill_memory();
    harness_native(run, run->insn_count, &at);
    const weave_insn *last = &run->insns[run->insn_count - 1];
    if (at.exit == END) model_list(&last->after, last, &before, &at);
}

/* --- together --- */

static void describe(const weave_run *run)
{
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_list *lists[] = {&run->insns[i].before, &run->insns[i].after};
        for (unsigned l = 0; l < 2; l++)
            for (const weave_insert *n = lists[l]->first; n; n = n->next) {
                char tree[1024];
                snippet_print(n->code, tree, sizeof tree);
                fprintf(stderr, "%3u %s %s\n", i, l ? "after" : "before", tree);
            }
    }
}

static void compare_effects(const weave_run *run)
{
    memcpy(real.counters, bench.counters, sizeof real.counters);
    if (real.used == model.used && !memcmp(real.log, model.log, model.used * sizeof *model.log) &&
        !memcmp(real.words, model.words, sizeof real.words) &&
        !memcmp(real.counters, model.counters, sizeof real.counters))
        return;
    describe(run);
    for (unsigned i = 0; i < COUNTERS; i++)
        if (real.counters[i] != model.counters[i])
            fprintf(stderr, "counter %u: %#lx, should be %#lx\n", i, (long)real.counters[i], (long)model.counters[i]);
    for (unsigned i = 0; i < WORDS; i++)
        if (real.words[i] != model.words[i])
            fprintf(stderr, "word %u: %#lx, should be %#lx\n", i, (long)real.words[i], (long)model.words[i]);
    fail_msg("seed %u: what the snippets did (%u values noted, should be %u)", seed_now, real.used, model.used);
}

static void insert(weave_run *run, weave_where where, uint32_t i, const snippet *s)
{
    const char *why;
    s = snippet_simplify(&bench.arena, s);
    if (!snippet_check(s, &why)) fail_msg("%s", why);
    weave_insert_at(run, where, i, s, false, &why); /* refusals are fine */
}

static const snippet *plain_count(void)
{
    snippet *s = node(SNIPPET_COUNT);
    s->index = any(COUNTERS);
    s->a = constant(1 + any(3));
    return s;
}

static void insert_all(weave_run *run, unsigned density, bool counts_only)
{
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        for (unsigned k = 0; k < 2; k++) {
            if (any(8) >= density) continue;
            bool after = !counts_only && insn->in.flow == ISA_FLOW_NEXT && any(3) == 0;
            insert(run, after ? WEAVE_AFTER : WEAVE_BEFORE, i, counts_only ? plain_count() : gen_snippet(insn, any(4)));
        }
    }
    for (uint32_t b = 0; b < run->block_count; b++)
        if (any(8) < density) insert(run, WEAVE_ANYWHERE, b, plain_count());
}

static bool one(uint32_t seed, unsigned density, bool counts_only, const weave_options *options)
{
    machine start, native, woven;
    inl_error e;
    seed_now = seed;
    harness_seed(seed);
    isa_code c = gen_program(3 + any(MOST_INSNS - 8));
    harness_random_state(&start);
    start.gpr[base0] = (uintptr_t)bench.data + 1600;
    start.gpr[base1] = (uintptr_t)bench.data + 2400;
    weave_run *run = harness_run(&c);
    insert_all(run, density, counts_only);
    if (harness_weave(run, options, &e)) {
        if (e.code == INL_ERR_UNSUPPORTED && strstr(e.text, "more registers")) return false;
        describe(run);
        fail_msg("seed %u: %s", seed, e.text);
    }
    model_all(run, &start);
    memset(&real, 0, sizeof real);
    memset(bench.counters, 0, COUNTERS * 8);
    harness_both(run, options, &start, &native, &woven);
    harness_same(run, &native, &woven);
    compare_effects(run);
    return true;
}

static unsigned number(const char *name, unsigned otherwise)
{
    const char *s = getenv(name);
    return s ? (unsigned)atoi(s) : otherwise;
}

static void sweep(unsigned density, bool counts_only, weave_options options)
{
    unsigned rounds = number("WEAVE_ROUNDS", 250), first = number("WEAVE_SEED", 1), woven = 0;
    for (unsigned i = 0; i < rounds; i++) {
        options.seed = first + i;
        options.cold_exits = i & 1;
        bench.apart = i & 2;
        woven += one(first + i, density, counts_only, &options);
    }
    bench.apart = false;
    assert_true(woven >= rounds - rounds / 4); /* the others run out of registers */
}

/* clang-format off */
static void bare_runs(void **state) { (void)state; sweep(0, true, (weave_options){0}); }
static void counts(void **state) { (void)state; sweep(5, true, (weave_options){0}); }
static void sparse_snippets(void **state) { (void)state; sweep(2, false, (weave_options){0}); }
static void dense_snippets(void **state) { (void)state; sweep(6, false, (weave_options){0}); }
static void random_registers(void **state)
{
    (void)state;
    sweep(4, false, (weave_options){.stress = WEAVE_STRESS_RANDOM_REGS});
}
static void nothing_dead(void **state)
{
    (void)state;
    sweep(4, false, (weave_options){.stress = WEAVE_STRESS_NO_DEAD});
    sweep(4, true, (weave_options){.stress = WEAVE_STRESS_NO_DEAD});
}
static void save_everything(void **state) { (void)state; sweep(3, false, (weave_options){.save_all = true}); }
/* clang-format on */

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_runs),       cmocka_unit_test(counts),           cmocka_unit_test(sparse_snippets),
        cmocka_unit_test(dense_snippets),  cmocka_unit_test(random_registers), cmocka_unit_test(nothing_dead),
        cmocka_unit_test(save_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
