/* AArch64: what snippets at points say and do, one thing at a time: counts, values, edges, calls, buffers, the thread
 * pointer. weave_a64_random.c mixes them. */
#include "weave_a64.h"

#include "weave/weaver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11 };
static machine start, native, woven;
static uint64_t words[16];

static snippet *node(unsigned kind, const snippet *a)
{
    snippet *s = snippet_new(&bench.arena, (snippet_kind)kind);
    s->a = a;
    return s;
}

static const snippet *constant(uint64_t v)
{
    snippet *s = node(SNIPPET_CONST, NULL);
    s->value = v;
    return s;
}

static const snippet *reg(unsigned r)
{
    snippet *s = node(SNIPPET_REG, NULL);
    s->reg = (uint8_t)r;
    return s;
}

static const snippet *count(unsigned counter, const snippet *amount)
{
    snippet *s = node(SNIPPET_COUNT, amount);
    s->index = counter;
    return s;
}

static const snippet *indexed(unsigned kind, unsigned index)
{
    snippet *s = node(kind, NULL);
    s->index = index;
    return s;
}

static const snippet *keep(unsigned word, const snippet *v)
{
    snippet *s = node(SNIPPET_STORE, constant((uintptr_t)&words[word]));
    s->b = v, s->size = 8;
    return s;
}

static const snippet *call(void (*fn)(void), unsigned n, const snippet *const *given)
{
    snippet *s = node(SNIPPET_CALL, NULL);
    const snippet **args = inl_arena_alloc(&bench.arena, SNIPPET_MAX_ARGS * sizeof *args);
    for (unsigned i = 0; i < n; i++) args[i] = given[i];
    s->fn = fn, s->nargs = (uint8_t)n, s->args = args;
    return s;
}
#define CALL(fn, ...)                                                                                                  \
    call((void (*)(void))(fn), sizeof((const snippet *[]){__VA_ARGS__}) / sizeof(snippet *),                           \
         (const snippet *[]){__VA_ARGS__})

static void insert(weave_run *run, weave_where where, uint32_t i, const snippet *s)
{
    const char *why = "";
    if (!weave_insert_at(run, where, i, s, false, &why)) fail_msg("%s", why);
}

static weave_run *program(void (*make)(isa_code *))
{
    isa_code c = harness_program();
    make(&c);
    harness_random_state(&start);
    start.gpr[X1] = (uintptr_t)bench.data + 1024;
    return harness_run(&c);
}

/* With what is dead left alone, then with everything saved. */
static void run_both(const weave_run *run)
{
    static const weave_options all[] = {
        {0}, {.stress = WEAVE_STRESS_NO_DEAD}, {.stress = 1, .seed = 5}, {.save_all = true}};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        memset(words, 0, sizeof words);
        memset(bench.counters, 0, COUNTERS * 8);
        harness_both(run, &all[i], &start, &native, &woven);
        harness_same(run, &native, &woven);
    }
}

static void sums(isa_code *c)
{
    a64_arith_rr(c, A64_ARITH_ADDS, 8, X0, X2, X3, 0);
    a64_load(c, 8, X4, a64_at(X1, 16));
    a64_csel(c, 8, X5, X6, X7, A64_HI);
    a64_store(c, 4, a64_indexed(X1, A64_ZR, false), X4);
    a64_arith_ri(c, A64_ARITH_SUB, 8, A64_SP, A64_SP, 32);
    a64_store_pair(c, 8, a64_at(A64_SP, 16), X4, X5);
}

static void counts_are_exact(void **state)
{
    (void)state;
    weave_run *run = program(sums);
    for (uint32_t i = 0; i < run->insn_count; i++) insert(run, WEAVE_BEFORE, i, count(1, constant(1)));
    insert(run, WEAVE_ANYWHERE, 0, count(2, constant(1)));
    insert(run, WEAVE_BEFORE, 2, count(3, constant(0x123456789abcdefull)));
    insert(run, WEAVE_BEFORE, 3, count(4, constant(-5ull)));
    insert(run, WEAVE_BEFORE, 3, count(5, reg(X3)));
    run_both(run);
    assert_int_equal(bench.counters[1], run->insn_count);
    assert_int_equal(bench.counters[2], 1);
    assert_int_equal(bench.counters[3], 0x123456789abcdefull);
    assert_int_equal(bench.counters[4], -5ull);
    assert_int_equal(bench.counters[5], start.gpr[X3]);
}

/* Counters far from the frame. */
static void high_counters(void **state)
{
    (void)state;
    static const unsigned which[] = {511, 4095, 1 << 20, (1 << 22) - 1};
    for (unsigned i = 0; i < 4; i++) {
        weave_run *run = program(sums);
        bench.counters[which[i]] = 0;
        insert(run, WEAVE_BEFORE, 1, count(which[i], constant(3)));
        insert(run, WEAVE_BEFORE, 2, keep(0, indexed(SNIPPET_COUNTER, which[i])));
        run_both(run);
        assert_int_equal(bench.counters[which[i]], 12);
        assert_int_equal(words[0], 12);
    }
}

static void additions_of_each_size(void **state)
{
    (void)state;
    weave_run *run = program(sums);
    for (unsigned i = 0; i < 4; i++) {
        snippet *add = node(SNIPPET_ADD_TO, constant((uintptr_t)&words[i]));
        add->b = constant(0x7f7f7f7f7f7f7f7f), add->size = (uint8_t)(1 << i);
        insert(run, WEAVE_BEFORE, 1, keep(i, constant(~0ull)));
        insert(run, WEAVE_BEFORE, 2, keep(4 + i, add));
    }
    run_both(run);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t mask = i == 3 ? ~0ull : (1ull << (8 << i)) - 1, by = 0x7f7f7f7f7f7f7f7f & mask;
        assert_int_equal(words[i], ~mask | ((mask + by) & mask));
        assert_int_equal(words[4 + i], mask);
    }
}

static void values(void **state)
{
    (void)state;
    weave_run *run = program(sums);
    insert(run, WEAVE_BEFORE, 1, keep(0, indexed(SNIPPET_EA, 0)));
    insert(run, WEAVE_BEFORE, 1, keep(1, indexed(SNIPPET_MEM_VALUE, 0)));
    insert(run, WEAVE_BEFORE, 1, keep(2, indexed(SNIPPET_ACCESS_SIZE, 0)));
    insert(run, WEAVE_BEFORE, 2, keep(3, node(SNIPPET_FLAGS, NULL)));
    insert(run, WEAVE_BEFORE, 2, keep(4, node(SNIPPET_PC, NULL)));
    insert(run, WEAVE_BEFORE, 2, keep(5, node(SNIPPET_THREAD, NULL)));
    insert(run, WEAVE_BEFORE, 4, keep(6, reg(A64_SP)));
    insert(run, WEAVE_AFTER, 4, keep(7, reg(A64_SP)));
    insert(run, WEAVE_BEFORE, 5, keep(8, indexed(SNIPPET_EA, 0)));
    insert(run, WEAVE_BEFORE, 5, keep(9, indexed(SNIPPET_ARG, 2)));
    insert(run, WEAVE_BEFORE, 5, keep(10, node(SNIPPET_RETADDR, NULL)));
    insert(run, WEAVE_BEFORE, 5, keep(11, node(SNIPPET_SYSCALL_NR, NULL)));
    insert(run, WEAVE_AFTER, 1, keep(12, reg(X4)));
    insert(run, WEAVE_BEFORE, 3, keep(13, indexed(SNIPPET_EA, 0)));
    run_both(run);
    machine at = start;
    harness_native(run, 1, &at);
    assert_int_equal(words[0], start.gpr[X1] + 16);
    assert_int_equal(words[1], native.gpr[X4]);
    assert_int_equal(words[2], 8);
    assert_int_equal(words[3] & A64_NZCV, at.flags & A64_NZCV);
    assert_int_equal(words[4], run->insns[2].in.addr);
    assert_int_equal(words[5], 7);
    assert_int_equal(words[6], start.gpr[A64_SP]);
    assert_int_equal(words[7], start.gpr[A64_SP] - 32);
    assert_int_equal(words[8], start.gpr[A64_SP] - 16);
    assert_int_equal(words[9], start.gpr[X2]);
    assert_int_equal(words[10], start.gpr[A64_LR]);
    assert_int_equal(words[11], start.gpr[X8]);
    assert_int_equal(words[12], native.gpr[X4]);
    assert_int_equal(words[13], start.gpr[X1]);
}

/* --- edges --- */

static unsigned branch_kind;

static void branches(isa_code *c)
{
    a64_arith_ri(c, A64_ARITH_SUBS, 8, A64_ZR, X0, 5);
    switch (branch_kind) {
    case 0: a64_bcond(c, A64_EQ, harness_exit(1)); break;
    case 1: a64_cbz(c, false, 8, X2, harness_exit(1)); break;
    case 2: a64_cbz(c, true, 4, X2, harness_exit(1)); break;
    case 3: a64_tbz(c, false, X2, 1, harness_exit(1)); break;
    default: a64_tbz(c, true, X2, 40, harness_exit(1)); break;
    }
    a64_mov_ri(c, X9, 1);
}

static void branches_are_seen_as_they_go(void **state)
{
    (void)state;
    static const uint64_t tried[] = {0, 1, 2, 3, 1ull << 32, 1ull << 40, ~0ull, 0xffffffff00000000ull};
    for (branch_kind = 0; branch_kind < 5; branch_kind++)
        for (unsigned i = 0; i < 32; i++) {
            weave_run *run = program(branches);
            weave_options options = {.cold_exits = i & 8};
            bench.apart = i & 16;
            start.gpr[X0] = i & 1 ? 5 : 6;
            start.gpr[X2] = tried[i & 7];
            insert(run, WEAVE_BEFORE, 1, keep(0, node(SNIPPET_TAKEN, NULL)));
            insert(run, WEAVE_BEFORE, 1, keep(1, node(SNIPPET_TARGET, NULL)));
            insert(run, WEAVE_TAKEN, 1, count(1, constant(1)));
            insert(run, WEAVE_TAKEN, 1, keep(2, reg(X2)));
            for (uint32_t k = 0; k < 3; k++) insert(run, WEAVE_BEFORE, k, count(2, constant(1)));
            memset(words, 0, sizeof words);
            memset(bench.counters, 0, COUNTERS * 8);
            harness_both(run, &options, &start, &native, &woven);
            harness_same(run, &native, &woven);
            bool taken = native.exit == 1;
            assert_int_equal(words[0], taken);
            assert_int_equal(words[1], harness_exit(1));
            assert_int_equal(bench.counters[1], taken);
            assert_int_equal(words[2], taken ? start.gpr[X2] : 0);
            assert_int_equal(bench.counters[2], taken ? 2 : 3);
        }
    bench.apart = false;
}

/* Counts of stretches with side exits between are one, which an exit makes up for. */
static void exits_on_the_way(isa_code *c)
{
    for (unsigned i = 0; i < 4; i++) {
        a64_arith_ri(c, A64_ARITH_SUBS, 8, X0, X0, 1);
        a64_bcond(c, A64_EQ, harness_exit(1 + i));
    }
    a64_arith_ri(c, A64_ARITH_SUBS, 8, X0, X0, 1);
}

static void chains_of_counts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        weave_run *run = program(exits_on_the_way);
        weave_options options = {.cold_exits = true, .stress = i >= 12 ? WEAVE_STRESS_NO_DEAD : 0};
        bench.apart = i & 1;
        unsigned leaves = i / 2 % 6;
        start.gpr[X0] = leaves;
        for (uint32_t k = 0; k < run->insn_count; k++) insert(run, WEAVE_BEFORE, k, count(2, constant(1)));
        memset(bench.counters, 0, COUNTERS * 8);
        harness_both(run, &options, &start, &native, &woven);
        harness_same(run, &native, &woven);
        assert_int_equal(bench.counters[2], leaves >= 1 && leaves <= 4 ? 2 * leaves : 9);
    }
    bench.apart = false;
}

/* --- calls --- */

static uint64_t seen[SNIPPET_MAX_ARGS];
static void (*volatile hidden)(uint64_t *, uint64_t);
static void put(uint64_t *at, uint64_t v) { *at = v; }
static __thread uint64_t calls_here;

/* Not to be analysed; needs the thread pointer, writes vectors. */
static uint64_t unknown(uint64_t a, uint64_t b, uint64_t c)
{
    double d = (double)(int64_t)a * 1.5;
    calls_here += d > 0 || d <= 0;
    hidden(&seen[0], a);
    hidden(&seen[1], b);
    hidden(&seen[2], c);
    __asm__ volatile("movi v0.16b, #7\n movi v31.16b, #9\n cmp sp, #0\n" ::: "v0", "v31", "cc");
    return a + 3 * b + c;
}

static uint64_t ten(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
                    uint64_t i, uint64_t j)
{
    uint64_t v[] = {a, b, c, d, e, f, g, h, i, j};
    for (unsigned k = 0; k < 10; k++) hidden(&seen[k], v[k]);
    return i - j;
}

static uint64_t leaf_word;
static __attribute__((noinline)) void leaf(uint64_t a, uint64_t b) { leaf_word += a - b; }

static double seen_double[2];
static void floating(double a, uint64_t i, double b) { seen_double[0] = a, seen_double[1] = b, seen[0] = i; }

static void calls_get_their_arguments(void **state)
{
    (void)state;
    hidden = put;
    weave_run *run = program(sums);
    insert(run, WEAVE_BEFORE, 1, keep(0, CALL(unknown, reg(X3), constant(1ull << 40), indexed(SNIPPET_EA, 0))));
    run_both(run);
    assert_int_equal(seen[0], start.gpr[X3]);
    assert_int_equal(seen[1], 1ull << 40);
    assert_int_equal(seen[2], start.gpr[X1] + 16);
    assert_int_equal(words[0], seen[0] + 3 * seen[1] + seen[2]);
    assert_true(calls_here >= 4);
    assert_int_equal(bench.frame->in_tool, 0);

    run = program(sums);
    insert(run, WEAVE_BEFORE, 2,
           keep(1, CALL(ten, reg(X7), reg(X6), reg(X5), reg(X4), reg(X3), reg(X2), reg(X1), reg(X0), reg(A64_LR),
                        reg(A64_SP))));
    run_both(run);
    for (unsigned i = 0; i < 8; i++)
        if (i != 3 && i != 7) assert_int_equal(seen[i], start.gpr[7 - i]);
    assert_int_equal(seen[3], native.gpr[X4]);
    assert_int_equal(seen[7], native.gpr[X0]);
    assert_int_equal(seen[8], start.gpr[A64_LR]);
    assert_int_equal(seen[9], start.gpr[A64_SP]);
    assert_int_equal(words[1], seen[8] - seen[9]);

    run = program(sums);
    leaf_word = 0;
    insert(run, WEAVE_BEFORE, 1, CALL(leaf, reg(X2), reg(X3)));
    run_both(run);
    assert_int_equal(leaf_word, 4 * (start.gpr[X2] - start.gpr[X3]));
}

static const snippet *vector(unsigned v)
{
    snippet *s = node(SNIPPET_VEC_ARG, NULL);
    s->reg = (uint8_t)v;
    return s;
}

static void calls_get_floating_point(void **state)
{
    (void)state;
    weave_run *run = program(sums);
    insert(run, WEAVE_BEFORE, 1, CALL(floating, vector(9), reg(X5), vector(0)));
    run_both(run);
    assert_memory_equal(&seen_double[0], start.vec[9], 8);
    assert_memory_equal(&seen_double[1], start.vec[0], 8);
    assert_int_equal(seen[0], start.gpr[X5]);
}

static void nested(void **state)
{
    (void)state;
    hidden = put;
    weave_run *run = program(sums);
    const snippet *inner = CALL(unknown, reg(X2), constant(2), reg(X0));
    insert(run, WEAVE_BEFORE, 3, keep(0, CALL(unknown, reg(X3), inner, CALL(unknown, reg(X9), reg(X10), inner))));
    run_both(run);
    uint64_t in = start.gpr[X2] + 6 + native.gpr[X0];
    assert_int_equal(words[0], start.gpr[X3] + 3 * in + (start.gpr[X9] + 3 * start.gpr[X10] + in));
}

static uint64_t change(uint64_t *p, uint64_t v)
{
    hidden(&seen[0], *p);
    hidden(p, *p + v);
    return 0;
}

static void references(void **state)
{
    (void)state;
    hidden = put;
    inl_error e;
    weave_run *run = program(sums);
    snippet *ref = node(SNIPPET_REG_REF, NULL), *set = node(SNIPPET_SET_REG, constant(1000));
    ref->reg = X2, set->reg = X3;
    insert(run, WEAVE_BEFORE, 0, CALL(change, ref, constant(77)));
    insert(run, WEAVE_BEFORE, 0, set);
    assert_int_equal(harness_weave(run, NULL, &e), INL_OK);
    assert_true(harness_is_valid());
    woven = start;
    harness_woven(&woven);
    assert_int_equal(seen[0], start.gpr[X2]);
    assert_int_equal(woven.gpr[X2], start.gpr[X2] + 77);
    assert_int_equal(woven.gpr[X0], start.gpr[X2] + 1077);
}

/* The stack pointer too, where every register holds something: two are pushed to store it. */
static void reference_to_the_stack_pointer(void **state)
{
    (void)state;
    hidden = put;
    inl_error e;
    for (unsigned i = 0; i < 2; i++) {
        weave_options options = {.stress = i ? WEAVE_STRESS_NO_DEAD : 0};
        weave_run *run = program(sums);
        snippet *ref = node(SNIPPET_REG_REF, NULL);
        ref->reg = A64_SP;
        insert(run, WEAVE_BEFORE, 1, CALL(change, ref, constant(0 - 64ull)));
        assert_int_equal(harness_weave(run, &options, &e), INL_OK);
        assert_true(harness_is_valid());
        native = woven = start;
        harness_native(run, run->insn_count, &native);
        harness_woven(&woven);
        assert_int_equal(seen[0], start.gpr[A64_SP]);
        assert_int_equal(woven.gpr[A64_SP], native.gpr[A64_SP] - 64);
        assert_memory_equal(native.gpr, woven.gpr, 31 * sizeof native.gpr[0]);
        assert_memory_equal(native.vec, woven.vec, sizeof native.vec);
    }
}

static weave_context context;
static uint8_t context_vectors[32][16];
static void look(const weave_context *c)
{
    memcpy(&context, c, sizeof context);
    memcpy(context_vectors, c->vectors, sizeof context_vectors);
}

static void whole_context(void **state)
{
    (void)state;
    weave_run *run = program(sums);
    insert(run, WEAVE_BEFORE, 5, CALL(look, node(SNIPPET_CONTEXT, NULL)));
    run_both(run);
    machine at = start;
    harness_native(run, 5, &at);
    assert_memory_equal(context.gpr, at.gpr, sizeof at.gpr);
    assert_int_equal(context.flags & A64_NZCV, at.flags & A64_NZCV);
    assert_int_equal(context.pc, run->insns[5].in.addr);
    assert_int_equal(context.tls_base, at.tls);
    assert_memory_equal(context_vectors, start.vec, sizeof context_vectors);
}

/* --- buffers --- */

enum { RECORD = 16, RECORDS = 3 };
static uint8_t buffer[RECORD * RECORDS];
static uint64_t drained[64];
static unsigned drained_count;

static void on_full(uint32_t slot)
{
    weave_buffer_slot *b = &bench.frame->buffers[slot];
    for (uint64_t at = b->base; b->base && at < b->next; at += 8)
        memcpy(&drained[drained_count++ & 63], (void *)(uintptr_t)at, 8);
    b->base = b->next = (uintptr_t)buffer;
    b->limit = b->base + sizeof buffer;
}

static void records(void **state)
{
    (void)state;
    static const snippet_buffer b = {2, RECORD, on_full, 0};
    static const uint8_t sizes[] = {8, 4, 4};
    for (unsigned apart = 0; apart < 2; apart++) {
        weave_run *run = program(sums);
        bench.apart = apart;
        for (uint32_t i = 0; i < run->insn_count; i++) {
            snippet *s = node(SNIPPET_APPEND, NULL);
            const snippet **args = inl_arena_alloc(&bench.arena, 3 * sizeof *args);
            args[0] = node(SNIPPET_PC, NULL), args[1] = constant(i), args[2] = constant(0);
            s->args = args, s->nargs = 3, s->arg_sizes = sizes, s->buffer = &b;
            insert(run, WEAVE_BEFORE, i, s);
        }
        memset(&bench.frame->buffers[2], 0, sizeof bench.frame->buffers[2]);
        drained_count = 0;
        run_both(run); /* four times */
        on_full(2);
        assert_int_equal(drained_count, 4 * run->insn_count * 2);
        for (unsigned i = 0; i < 4 * run->insn_count; i++) {
            assert_int_equal(drained[2 * i & 63], run->insns[i % run->insn_count].in.addr);
            assert_int_equal(drained[(2 * i + 1) & 63], i % run->insn_count);
        }
    }
    bench.apart = false;
}

/* --- the program's own instructions --- */

static _Alignas(16) uint64_t new_block[4];

static void set_thread_pointer(isa_code *c)
{
    a64_write_tls(c, X2);
    a64_read_tls(c, X3);
    a64_arith_rr(c, A64_ARITH_ADDS, 8, X4, X5, X6, 0);
}

static void the_frame_follows_the_thread_pointer(void **state)
{
    (void)state;
    inl_error e;
    for (unsigned plain = 0; plain < 2; plain++) {
        weave_run *run = program(set_thread_pointer);
        start.gpr[X2] = (uintptr_t)new_block;
        if (!plain)
            for (uint32_t i = 0; i < 3; i++) insert(run, WEAVE_BEFORE, i, count(1, constant(1)));
        new_block[1] = 0;
        memset(bench.counters, 0, COUNTERS * 8);
        assert_int_equal(harness_weave(run, NULL, &e), INL_OK);
        native = woven = start;
        harness_native(run, 3, &native);
        harness_woven(&woven);
        assert_memory_equal(native.gpr, woven.gpr, sizeof native.gpr);
        assert_int_equal(native.flags, woven.flags);
        assert_int_equal(woven.tls, (uintptr_t)new_block);
        assert_int_equal(new_block[1], (uintptr_t)bench.frame);
        assert_int_equal(bench.counters[1], plain ? 0 : 3);
    }
}

/* A word of code read through the program counter, from too far for its form. */
static void reads_literals(isa_code *c)
{
    static const uint32_t forms[] = {0x58000000, 0x18000000, 0x98000000, 0x9c000000, 0x1c000000};
    for (unsigned i = 0; i < 5; i++) a64_put(c, forms[i] | (256 / 4 + 4 * i) << 5 | (i + 2));
    a64_put(c, 0x10000000 | 64 << 5 | 9); /* adr x9, .+256 */
    a64_arith_rr(c, A64_ARITH_ADDS, 8, X4, X5, X6, 0);
}

static void literals_far_away(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 512; i += 4) {
        uint32_t word = 0x12345678u * (i + 1);
        memcpy(bench.app + 256 + i, &word, 4);
    }
    weave_run *run = program(reads_literals);
    run_both(run);
    insert(run, WEAVE_BEFORE, 4, keep(0, indexed(SNIPPET_MEM_VALUE, 0)));
    insert(run, WEAVE_BEFORE, 3, count(1, constant(1)));
    run_both(run);
    assert_int_equal(bench.counters[1], 1);
    assert_memory_equal(&words[0], native.vec[6], 4);
}

/* Between a load-exclusive and its store stands no count. */
static void exclusive(isa_code *c)
{
    a64_load_exclusive(c, 8, X2, X1);
    a64_mov_ri(c, X9, 1); /* x9 and x10 are dead in front of it: a good place otherwise */
    a64_mov_ri(c, X10, 2);
    a64_arith_ri(c, A64_ARITH_ADD, 8, X2, X2, 1);
    a64_store_exclusive(c, 8, X3, X1, X2);
    a64_cbz(c, true, 4, X3, harness_exit(2));
    a64_nop(c, 4);
}

static void exclusive_pairs_are_not_parted(void **state)
{
    (void)state;
    weave_run *run = program(exclusive);
    for (uint32_t i = 0; i < run->insn_count; i++) insert(run, WEAVE_BEFORE, i, count(1, constant(1)));
    inl_error e; /* not run: the store may fail at any time */
    assert_int_equal(harness_weave(run, NULL, &e), INL_OK);
    const weave_map_entry *map = bench.out.map;
    for (unsigned i = 1; i < 5; i++) assert_int_equal(map[i].code_at, map[0].code_at + 4 * i);
}

/* Nor where a branch leads out between the two: the second block is counted behind the store. */
static void exclusive_with_branch(isa_code *c)
{
    a64_load_exclusive(c, 8, X2, X1);
    a64_mov_ri(c, X9, 1);
    a64_cbz(c, false, 8, X2, harness_exit(3));
    a64_mov_ri(c, X10, 2);
    a64_store_exclusive(c, 8, X3, X1, X2);
    a64_cbz(c, true, 4, X3, harness_exit(2));
    a64_nop(c, 4);
}

static void exclusive_pairs_are_not_parted_by_blocks(void **state)
{
    (void)state;
    weave_run *run = program(exclusive_with_branch);
    assert_int_equal(run->block_count, 3);
    for (uint32_t b = 0; b < run->block_count; b++) insert(run, WEAVE_ANYWHERE, b, count(1 + b, constant(1)));
    inl_error e;
    assert_int_equal(harness_weave(run, NULL, &e), INL_OK);
    const weave_map_entry *map = bench.out.map;
    for (unsigned i = 1; i < 5; i++) assert_int_equal(map[i].code_at, map[i].snippets_at);
    assert_true(map[5].code_at > map[5].snippets_at);
}

/* --- routines --- */

#define ROUTINE(name, code)                                                                                            \
    void name(void);                                                                                                   \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n.p2align 2\n" #name ":\n" code          \
            "\nret\n.popsection")
ROUTINE(plain_routine, "add x0, x0, x1\n mov x9, x0");
ROUTINE(flag_routine, "cmp x0, x1\n cset x0, eq");
ROUTINE(vector_routine, "fadd d1, d2, d3\n movi v20.16b, #0");
ROUTINE(tls_routine, "mrs x0, tpidr_el0\n ldr x0, [x0, #16]");
ROUTINE(jumping_routine, "br x0");

static void routines_are_known_by_what_they_change(void **state)
{
    (void)state;
    const weave_routine *r = weave_routine_of(plain_routine);
    assert_int_equal(r->regs, 1 | 1 << 9);
    assert_false(r->flags || r->unknown || r->tls || r->vecs);
    assert_int_equal(r->inline_len, 12);
    assert_true(weave_routine_of(flag_routine)->flags);
    assert_int_equal(weave_routine_of(vector_routine)->vecs, 1u << 1 | 1u << 20);
    assert_true(weave_routine_of(tls_routine)->tls);
    assert_true(weave_routine_of(jumping_routine)->unknown);
}

static void refused_with_a_reason(void **state)
{
    (void)state;
    inl_error e;
    weave_run *run = program(sums);
    insert(run, WEAVE_BEFORE, 1, count(1, indexed(SNIPPET_REG, 0)));
    ((snippet *)run->insns[1].before.first->code->a)->reg = 40;
    assert_int_equal(harness_weave(run, NULL, &e), INL_ERR_UNSUPPORTED);
    assert_non_null(strstr(e.text, "cannot be read"));
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(high_counters),
        cmocka_unit_test(additions_of_each_size),
        cmocka_unit_test(values),
        cmocka_unit_test(branches_are_seen_as_they_go),
        cmocka_unit_test(chains_of_counts),
        cmocka_unit_test(calls_get_their_arguments),
        cmocka_unit_test(calls_get_floating_point),
        cmocka_unit_test(nested),
        cmocka_unit_test(references),
        cmocka_unit_test(reference_to_the_stack_pointer),
        cmocka_unit_test(whole_context),
        cmocka_unit_test(records),
        cmocka_unit_test(the_frame_follows_the_thread_pointer),
        cmocka_unit_test(literals_far_away),
        cmocka_unit_test(exclusive_pairs_are_not_parted),
        cmocka_unit_test(exclusive_pairs_are_not_parted_by_blocks),
        cmocka_unit_test(routines_are_known_by_what_they_change),
        cmocka_unit_test(refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
