/* Counts of a chain of blocks: one addition on the straight way, made up for at every side exit. */
#include "weave_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BLOCKS = 0, INSNS = 1, ONCE = 2, LEAVES = 4 }; /* counters; value of rdi that leaves nowhere */

static machine start, native, woven;
static weave_places *places; /* NULL: counters have one bank */

/* Joint counters: those behind the test's own. */
enum { TAKEN = 3, FIRST_JOINT = 8, JOINTS = 24 };
static struct joint {
    weave_term terms[8];
    uint32_t count;
} joints[JOINTS];
static uint32_t joint_count;
static bool joins; /* there are joint counters */

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

static uint32_t joint(const weave_term *terms, uint32_t count)
{
    assert_true(count > 1 && count <= 8);
    if (joint_count == JOINTS) return 0;
    struct joint *j = &joints[joint_count];
    memcpy(j->terms, terms, count * sizeof *terms);
    j->count = count;
    return FIRST_JOINT + joint_count++;
}

static void weave_counts(weave_run *run, bool cold)
{
    weave_options options = {.cold_exits = cold, .places = places, .joint = joins ? joint : NULL};
    joint_count = 0;
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
    memset((char *)bench.counters - WEAVE_BANKS_SIZE, 0, WEAVE_BANKS_SIZE + (FIRST_JOINT + JOINTS) * 8);
    native = woven = start;
    harness_native(run, run->insn_count, &native);
    harness_woven(&woven);
    for (unsigned r = 0; r < 16; r++) assert_int_equal(native.gpr[r], woven.gpr[r]);
    assert_int_equal(native.flags & X86_ARITH, woven.flags & X86_ARITH);
    if (woven.exit == (uintptr_t)bench.app - 5) woven.exit = harness_exit(MAX_EXITS - 1); /* a hop there */
    assert_int_equal(native.exit, woven.exit);
}

static uint64_t in_bank(unsigned counter, unsigned bank)
{
    return *(uint64_t *)((char *)bench.counters + weave_counter_at(0, counter, bank));
}

static uint64_t counted(unsigned counter)
{
    uint64_t sum = 0;
    for (unsigned bank = 0; bank < WEAVE_BANKS; bank++) sum += in_bank(counter, bank);
    for (uint32_t k = 0; k < joint_count; k++)
        for (uint32_t i = 0; i < joints[k].count; i++)
            if (joints[k].terms[i].counter == counter)
                sum += (uint64_t)joints[k].terms[i].amount * in_bank(FIRST_JOINT + k, 0);
    return sum;
}

static void same_counts(uint64_t blocks, uint64_t insns, uint64_t once)
{
    assert_int_equal(counted(BLOCKS), blocks);
    assert_int_equal(counted(INSNS), insns);
    assert_int_equal(counted(ONCE), once);
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

/* What one place after the other adds to goes to one bank after the other, and back to the first. */
static void banks(void **state)
{
    enum { TIMES = 11, LAST = WEAVE_BANKED - 1 };
    weave_places all = {0};
    unsigned filled = 0;
    (void)state;
    harness_catch_faults();
    places = &all;
    for (unsigned i = 0; i < TIMES; i++) {
        weave_run *run = program(false);
        weave_counts(run, true);
        every_way_out(run);
        for (unsigned bank = 0; bank < WEAVE_BANKS; bank++) filled |= (in_bank(BLOCKS, bank) != 0) << bank;
    }
    places = NULL;
    assert_int_equal(filled, (1u << WEAVE_BANKS) - 1);
    assert_int_equal(weave_counter_at(WEAVE_COUNTERS, LAST, WEAVE_BANKS - 1), WEAVE_COUNTERS - 8);
    assert_int_equal(weave_counter_at(WEAVE_COUNTERS, 0, 1), WEAVE_COUNTERS - WEAVE_BANKS_SIZE);
}

/* A fault takes off what was not executed, whichever bank it has been added to. */
static void fault_with_banks(void **state)
{
    weave_places all = {0};
    (void)state;
    harness_catch_faults();
    places = &all;
    for (unsigned i = 0; i < WEAVE_BANKS; i++) {
        weave_run *run = program(false);
        weave_counts(run, true);
        run_with(run, LEAVES, (uintptr_t)bench.bad);
        same_counts(2, 4, 10);
    }
    places = NULL;
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

/* --- snippets on the way out of a chain --- */

static uint64_t seen[3];
static unsigned times_seen;

static void look(void)
{
    for (unsigned k = 0; k < 3; k++) seen[k] = counted(k);
    times_seen++;
}

static void insert_look(weave_run *run, uint32_t i)
{
    const char *why = "";
    snippet *s = snippet_new(&bench.arena, SNIPPET_CALL);
    s->fn = look;
    if (!weave_insert_at(run, WEAVE_TAKEN, i, s, false, &why)) fail_msg("%s", why);
}

static void saw(uint64_t blocks, uint64_t insns, uint64_t once)
{
    assert_int_equal(times_seen, 1);
    assert_int_equal(seen[BLOCKS], blocks);
    assert_int_equal(seen[INSNS], insns);
    assert_int_equal(seen[ONCE], once);
}

/* What is called on a taken edge finds everything counted; the chain ends in front of it. */
static void taken_snippets_see_counts(void **state)
{
    harness_catch_faults();
    (void)state;
    for (uint32_t i = 1; i < 4; i++) {
        static const uint32_t branches[] = {0, 1, 3, 6};
        static const uint64_t expected[4][3] = {{0}, {1, 2, 0}, {2, 4, 10}, {3, 7, 10}};
        weave_run *run = program(false);
        insert_look(run, branches[i]);
        weave_counts(run, true);
        assert_int_equal(additions(BLOCKS), 2);
        every_way_out(run);
        times_seen = 0;
        run_with(run, i, (uintptr_t)bench.data);
        same_counts(expected[i][BLOCKS], expected[i][INSNS], expected[i][ONCE]);
        saw(expected[i][BLOCKS], expected[i][INSNS], expected[i][ONCE]);
        times_seen = 0;
        run_with(run, LEAVES, (uintptr_t)bench.data);
        assert_int_equal(times_seen, 0);
    }
}

static void taken_counts(void **state)
{
    harness_catch_faults();
    (void)state;
    weave_run *run = program(false);
    insert_count(run, WEAVE_TAKEN, 3, TAKEN, 5);
    insert_count(run, WEAVE_TAKEN, 3, BLOCKS, 100);
    weave_counts(run, true);
    for (unsigned i = 1; i <= LEAVES; i++) {
        run_with(run, i, (uintptr_t)bench.data);
        same_counts(i == 2 ? 102 : i, i < 3 ? 2 * i : i + 4, i == 1 ? 0 : 10);
        assert_int_equal(counted(TAKEN), i == 2 ? 5 : 0);
    }
}

/* --- joint counters --- */

/* Which words were added to, and what was added to them. */
static unsigned words_written(uint64_t *added)
{
    unsigned n = 0;
    *added = 0;
    for (unsigned k = 0; k < FIRST_JOINT + JOINTS; k++) {
        n += in_bank(k, 0) != 0;
        *added += in_bank(k, 0);
    }
    return n;
}

/* Each way through the run adds 1 to one word; the third one to two, since the end's place is before the last branch,
 * where the flags are dead. */
static void one_for_each_way(void **state)
{
    (void)state;
    harness_catch_faults();
    joins = true;
    for (unsigned back = 0; back < 2; back++) {
        weave_run *run = program(back);
        insert_count(run, WEAVE_TAKEN, 1, TAKEN, 5);
        insert_count(run, WEAVE_TAKEN, 3, TAKEN, 6);
        insert_count(run, WEAVE_TAKEN, 6, TAKEN, 7);
        weave_counts(run, true);
        every_way_out(run);
        for (unsigned i = 1; i <= LEAVES; i++) {
            uint64_t added;
            run_with(run, i, (uintptr_t)bench.data);
            assert_int_equal(counted(TAKEN), i < LEAVES ? 4 + i : 0);
            assert_int_equal(words_written(&added), i == 3 ? 2 : 1);
            assert_int_equal(added, i == 3 ? 2 : 1);
        }
        assert_int_equal(joint_count, 4);
    }
    joins = false;
}

/* Counters are what they are without joint ones. */
static void joint_or_not(void **state)
{
    joins = true;
    one_addition(state);
    none_without_cold_exits(state);
    fault_within(state);
    fault_with_banks(state);
    taken_snippets_see_counts(state);
    taken_counts(state);
    joins = false;
}

static void a_taken_edge_that_looks_joins_nothing(void **state)
{
    (void)state;
    harness_catch_faults();
    joins = true;
    weave_run *run = program(false);
    insert_count(run, WEAVE_TAKEN, 3, TAKEN, 5);
    insert_look(run, 3);
    weave_counts(run, true);
    times_seen = 0;
    run_with(run, 2, (uintptr_t)bench.data);
    same_counts(2, 4, 10);
    assert_int_equal(times_seen, 1);
    assert_int_equal(counted(TAKEN), 5);
    joins = false;
}

/* A jump that the run follows: in the middle of a chain, unless something on it looks. */
static void followed_jump(void **state)
{
    static uint8_t bytes[64];
    x86_code c = {.write = bytes, .exec = (uintptr_t)bench.app, .size = sizeof bytes};
    harness_catch_faults();
    (void)state;
    x86_alu_ri(&c, X86_ADD, 8, X86_RAX, 5);
    x86_jmp_rel32(&c, c.exec + c.at + 5, false);
    x86_alu_ri(&c, X86_ADD, 8, X86_RAX, 6);
    x86_alu_ri(&c, X86_ADD, 8, X86_RBX, 7);
    for (unsigned with = 0; with < 2; with++) {
        weave_run *run = harness_run(bytes, c.at);
        assert_int_equal(run->block_count, 2);
        run->insns[1].elided = 1;
        if (with) insert_look(run, 1);
        weave_counts(run, true);
        assert_int_equal(additions(BLOCKS), with ? 2 : 1);
        times_seen = 0;
        run_with(run, 0, 0);
        same_counts(2, 4, 10);
        if (with) saw(1, 2, 0);
    }
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_addition),
        cmocka_unit_test(none_without_cold_exits),
        cmocka_unit_test(banks),
        cmocka_unit_test(fault_with_banks),
        cmocka_unit_test(back_edge),
        cmocka_unit_test(fault_within),
        cmocka_unit_test(taken_snippets_see_counts),
        cmocka_unit_test(taken_counts),
        cmocka_unit_test(one_for_each_way),
        cmocka_unit_test(joint_or_not),
        cmocka_unit_test(a_taken_edge_that_looks_joins_nothing),
        cmocka_unit_test(followed_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
