/* Counts of a chain of blocks: one addition on the straight way, made up for at every side exit. */
#include "weave_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BLOCKS = 0, INSNS = 1, ONCE = 2, LEAVES = 4 }; /* counters; value of rdi that leaves nowhere */

static machine start, native, woven;

/* Three blocks, each left when rdi says so, a load in the last of them, and an end. */
static weave_run *program(bool back)
{
    static uint8_t bytes[256];
    x86_code c = {.write = bytes, .exec = (uintptr_t)bench.app, .size = sizeof bytes};
    for (unsigned i = 1; i < LEAVES; i++) {
        if (i == 3) x86_load(&c, 8, X86_RAX, x86_at(X86_RSI, 8));
        x86_alu_ri(&c, X86_CMP, 8, X86_RDI, i);
        x86_jcc_rel32(&c, X86_E, back && i == 2 ? (uintptr_t)bench.app - 5 : harness_exit(i), false);
    }
    x86_lea(&c, X86_RBX, x86_at(X86_RBX, 1));
    assert_false(c.full || c.unreachable);
    return harness_run(bytes, c.at);
}

static void insert_count(weave_run *run, weave_where where, uint32_t i, unsigned counter, uint64_t amount)
{
    const char *why = "";
    snippet *s = snippet_new(&bench.arena, SNIPPET_COUNT);
    s->a = gen_const(amount), s->index = counter;
    if (!weave_insert_at(run, where, i, s, false, &why)) fail_msg("%s", why);
}

static void weave_counts(weave_run *run, bool cold)
{
    weave_options options = {.cold_exits = cold};
    inl_error e;
    for (uint32_t b = 0; b < run->block_count; b++) insert_count(run, WEAVE_ANYWHERE, b, BLOCKS, 1);
    for (uint32_t i = 0; i < run->insn_count; i++) insert_count(run, WEAVE_BEFORE, i, INSNS, 1);
    insert_count(run, WEAVE_ANYWHERE, 1, ONCE, 10);
    if (harness_weave(run, &options, false, &e)) fail_msg("%s", e.text);
}

static void run_with(const weave_run *run, uint64_t rdi, uint64_t rsi)
{
    harness_random_state(&start);
    start.gpr[X86_RDI] = rdi;
    start.gpr[X86_RSI] = rsi;
    memset(bench.counters, 0, GEN_COUNTERS * 8);
    native = woven = start;
    harness_native(run, run->insn_count, &native);
    harness_woven(&woven);
    for (unsigned r = 0; r < 16; r++) assert_int_equal(native.gpr[r], woven.gpr[r]);
    assert_int_equal(native.flags & X86_ARITH, woven.flags & X86_ARITH);
    if (woven.exit == (uintptr_t)bench.app - 5) woven.exit = harness_exit(MAX_EXITS - 1); /* a hop there */
    assert_int_equal(native.exit, woven.exit);
}

static void same_counts(uint64_t blocks, uint64_t insns, uint64_t once)
{
    assert_int_equal(bench.counters[BLOCKS], blocks);
    assert_int_equal(bench.counters[INSNS], insns);
    assert_int_equal(bench.counters[ONCE], once);
}

static void every_way_out(const weave_run *run)
{
    uint64_t good = (uintptr_t)bench.data;
    run_with(run, 1, good), same_counts(1, 2, 0);
    run_with(run, 2, good), same_counts(2, 4, 10);
    run_with(run, 3, good), same_counts(3, 7, 10);
    run_with(run, LEAVES, good), same_counts(4, 8, 10);
}

static uint32_t additions(unsigned counter)
{
    uint32_t n = 0, last = UINT32_MAX;
    for (uint32_t i = 0; i < bench.out.count_count; i++) {
        const weave_count *g = &bench.out.counts[i];
        if (g->counter != counter || g->position == last) continue;
        last = g->position;
        n++;
    }
    return n;
}

static void one_addition(void **state)
{
    (void)state;
    harness_catch_faults();
    weave_run *run = program(false);
    weave_counts(run, true);
    assert_int_equal(additions(BLOCKS), 1);
    assert_int_equal(additions(INSNS), 1);
    assert_int_equal(additions(ONCE), 1);
    assert_true(bench.out.cold_at < bench.code.at);
    every_way_out(run);
}

static void none_without_cold_exits(void **state)
{
    (void)state;
    harness_catch_faults();
    weave_run *run = program(false);
    weave_counts(run, false);
    assert_int_equal(additions(BLOCKS), 4);
    every_way_out(run);
}

/* A branch back ends a chain. */
static void back_edge(void **state)
{
    (void)state;
    harness_catch_faults();
    weave_run *run = program(true);
    weave_counts(run, true);
    assert_int_equal(additions(BLOCKS), 2);
    every_way_out(run);
}

static void fault_within(void **state)
{
    (void)state;
    harness_catch_faults();
    weave_run *run = program(false);
    weave_counts(run, true);
    run_with(run, LEAVES, (uintptr_t)bench.bad);
    assert_int_equal(woven.fault_pc, run->insns[4].in.addr);
    same_counts(2, 4, 10); /* a block counts with its first instruction */
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_addition),
        cmocka_unit_test(none_without_cold_exits),
        cmocka_unit_test(back_edge),
        cmocka_unit_test(fault_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
