/* The weaver disturbs nothing, and snippets compute what they say: random programs with random
 * snippets, woven with every stress option, against the native run and a model of the snippets. */
#include "weave_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint32_t seed_now;

static void describe(const weave_run *run)
{
    char text[128];
    for (uint32_t i = 0; i < run->insn_count; i++) {
        isa_x86_64.format(&run->insns[i].in, text, sizeof text);
        fprintf(stderr, "%3u  %s\n", i, text);
        const weave_list *lists[] = {&run->insns[i].before, &run->insns[i].after};
        for (unsigned l = 0; l < 2; l++)
            for (const weave_insert *n = lists[l]->first; n; n = n->next) {
                char tree[1024];
                snippet_print(n->code, tree, sizeof tree);
                fprintf(stderr, "       %s%s %s\n", l ? "after" : "before", n->predicated ? "?" : "", tree);
            }
    }
}

static void complain(const weave_run *run, const char *what)
{
    fprintf(stderr, "seed %u: %s\n", seed_now, what);
    describe(run);
    const char *file = getenv("WEAVE_DUMP");
    FILE *f = file ? fopen(file, "wb") : NULL;
    if (f) fwrite(bench.code.write, 1, bench.code.at, f), fclose(f);
    fail();
}

static uint64_t exit_of(uint64_t at) { return at == (uintptr_t)bench.app - 5 ? harness_exit(MAX_EXITS - 1) : at; }

static void compare(const weave_run *run, const machine *native, const machine *woven)
{
    static const uint32_t flags = X86_ARITH | X86_DF;
    char text[160];
    if (exit_of(native->exit) != exit_of(woven->exit)) {
        snprintf(text, sizeof text, "left at %#lx, natively at %#lx", (long)woven->exit, (long)native->exit);
        complain(run, text);
    }
    for (unsigned r = 0; r < 16; r++)
        if (native->gpr[r] != woven->gpr[r]) {
            snprintf(text, sizeof text, "%s is %#lx, natively %#lx", isa_x86_64.reg_name(r), (long)woven->gpr[r],
                     (long)native->gpr[r]);
            complain(run, text);
        }
    if ((native->flags ^ woven->flags) & flags) {
        snprintf(text, sizeof text, "flags %#lx, natively %#lx", (long)woven->flags, (long)native->flags);
        complain(run, text);
    }
    if (!native->fault_pc && memcmp(native->ymm, woven->ymm, sizeof native->ymm))
        complain(run, "vector registers differ");
    if (!native->fault_pc && native->mxcsr != woven->mxcsr) complain(run, "mxcsr differs");
    if (memcmp(bench.native_memory, bench.woven_memory, sizeof bench.native_memory)) complain(run, "memory differs");
}

static void compare_effects(const weave_run *run)
{
    char text[160];
    for (unsigned i = 0; i < GEN_COUNTERS; i++) real_effects.counters[i] = bench.counters[i];
    for (unsigned i = 0; i < GEN_COUNTERS; i++)
        if (real_effects.counters[i] != model_effects.counters[i]) {
            snprintf(text, sizeof text, "counter %u is %#lx, should be %#lx", i, (long)real_effects.counters[i],
                     (long)model_effects.counters[i]);
            complain(run, text);
        }
    if (real_effects.used != model_effects.used) complain(run, "number of calls differs");
    for (unsigned i = 0; i < real_effects.used; i++)
        if (real_effects.log[i] != model_effects.log[i]) {
            snprintf(text, sizeof text, "argument %u is %#lx, should be %#lx", i, (long)real_effects.log[i],
                     (long)model_effects.log[i]);
            complain(run, text);
        }
    if (memcmp(real_effects.words, model_effects.words, sizeof real_effects.words))
        complain(run, "tool memory differs");
}

static void insert(weave_run *run, weave_where where, uint32_t i, const snippet *s, bool predicated)
{
    const char *why;
    s = snippet_simplify(&bench.arena, s);
    if (!snippet_check(s, &why)) fail_msg("%s", why);
    weave_insert_at(run, where, i, s, predicated, &why); /* refusals are fine */
}

static const snippet *plain_count(void)
{
    snippet *s = snippet_new(&bench.arena, SNIPPET_COUNT);
    s->index = harness_random() % GEN_COUNTERS;
    s->a = gen_const(1 + harness_random() % 3);
    return s;
}

static void insert_all(weave_run *run, unsigned density, bool counts_only)
{
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        for (unsigned k = 0; k < 2; k++) {
            if (harness_random() % 8 >= density) continue;
            bool after = insn->in.flow == ISA_FLOW_NEXT && harness_random() % 3 == 0;
            const snippet *s = counts_only ? plain_count() : gen_snippet(insn, after, harness_random() % 4);
            insert(run, after && !counts_only ? WEAVE_AFTER : WEAVE_BEFORE, i, s,
                   !counts_only && harness_random() % 4 == 0);
        }
    }
    for (uint32_t b = 0; b < run->block_count; b++)
        if (harness_random() % 8 < density) insert(run, WEAVE_ANYWHERE, b, plain_count(), false);
}

static void model_list(const weave_list *list, const weave_insn *insn, const machine *before, const machine *now)
{
    for (const weave_insert *n = list->first; n; n = n->next)
        if (!n->predicated || model_executes(insn, before)) model_run(n->code, insn, before, now);
}

/* Runs the program natively up to each of its instructions, and the snippets on the model there.
 * A count at a faulting instruction is not to be seen: it did not execute. */
static void run_model(const weave_run *run, const machine *start, uint32_t fill)
{
    static machine at[300];
    memset(&model_effects, 0, sizeof model_effects);
    for (uint32_t i = 0; i <= run->insn_count; i++) {
        at[i] = *start;
        harness_fill_memory(fill);
        harness_native(run, i, &at[i]);
        const isa_insn *last = &run->insns[run->insn_count - 1].in;
        uint64_t here = i < run->insn_count ? run->insns[i].in.addr : last->addr + last->len;
        if (at[i].fault_pc) return;
        if (at[i].exit != here) return;
        if (i > 0) model_list(&run->insns[i - 1].after, &run->insns[i - 1], &at[i - 1], &at[i]);
        if (i == run->insn_count) return;
        const weave_insn *insn = &run->insns[i];
        machine next = *start;
        harness_fill_memory(fill);
        harness_native(run, i + 1, &next);
        if (next.fault_pc) return;
        harness_fill_memory(fill);
        next = *start;
        harness_native(run, i, &next);
        const weave_block *block = &run->blocks[insn->block];
        if (block->first == i) model_list(&block->anywhere, insn, &at[i], &at[i]);
        model_list(&insn->before, insn, &at[i], &at[i]);
    }
}

enum { NO_FAULTS, FAULTS_AND_COUNTS, FAULTS_AND_SNIPPETS };

static void one(uint32_t seed, unsigned density, unsigned mode, const weave_options *options)
{
    uint8_t bytes[1024];
    machine start, native, woven;
    inl_error e;
    seed_now = seed;
    harness_seed(seed);
    size_t size = gen_program(bytes, sizeof bytes, 4 + harness_random() % 16, mode != NO_FAULTS);
    gen_state(&start);
    if (!size) return;
    weave_run *run = harness_run(bytes, size);
    assert_non_null(run);
    insert_all(run, density, mode == FAULTS_AND_COUNTS);
    bool far = harness_random() % 2;
    if (harness_weave(run, options, far, &e)) {
        if (e.code == INL_ERR_UNSUPPORTED && strstr(e.text, "more registers")) return;
        complain(run, e.text);
    }
    if (mode != FAULTS_AND_SNIPPETS) run_model(run, &start, seed);
    harness_fill_memory(seed);
    native = start;
    harness_native(run, run->insn_count, &native);
    harness_save_memory(bench.native_memory);

    memset(&real_effects, 0, sizeof real_effects);
    memset(bench.counters, 0, GEN_COUNTERS * 8);
    harness_fill_memory(seed);
    woven = start;
    harness_woven(&woven);
    harness_save_memory(bench.woven_memory);
    compare(run, &native, &woven);
    if (mode != FAULTS_AND_SNIPPETS) compare_effects(run);
}

static unsigned rounds(void)
{
    const char *s = getenv("WEAVE_ROUNDS");
    return s ? (unsigned)atoi(s) : 1500;
}

static uint32_t first_seed(void)
{
    const char *s = getenv("WEAVE_SEED");
    return s ? (uint32_t)atoi(s) : 1;
}

static void sweep(unsigned density, unsigned mode, weave_options options)
{
    harness_catch_faults();
    for (uint32_t i = 0; i < rounds(); i++) {
        options.seed = first_seed() + i;
        options.cold_exits = i & 1;
        one(first_seed() + i, density, mode, &options);
    }
}

/* clang-format off */
static void bare_runs(void **state) { (void)state; sweep(0, FAULTS_AND_COUNTS, (weave_options){0}); }
static void sparse_snippets(void **state) { (void)state; sweep(2, NO_FAULTS, (weave_options){0}); }
static void dense_snippets(void **state) { (void)state; sweep(6, NO_FAULTS, (weave_options){0}); }
static void counts_and_faults(void **state) { (void)state; sweep(5, FAULTS_AND_COUNTS, (weave_options){0}); }
static void faults_amid_snippets(void **state)
{
    (void)state;
    sweep(4, FAULTS_AND_SNIPPETS, (weave_options){0});
    sweep(4, FAULTS_AND_SNIPPETS, (weave_options){.stress = WEAVE_STRESS_RANDOM_REGS});
}
/* clang-format on */
static void random_registers(void **state)
{
    (void)state;
    sweep(4, NO_FAULTS, (weave_options){.stress = WEAVE_STRESS_RANDOM_REGS});
    sweep(4, FAULTS_AND_COUNTS, (weave_options){.stress = WEAVE_STRESS_RANDOM_REGS});
}
static void nothing_dead(void **state)
{
    (void)state;
    sweep(4, NO_FAULTS, (weave_options){.stress = WEAVE_STRESS_NO_DEAD});
    sweep(4, FAULTS_AND_COUNTS, (weave_options){.stress = WEAVE_STRESS_NO_DEAD});
}
static void save_everything(void **state)
{
    (void)state;
    sweep(3, NO_FAULTS, (weave_options){.save_all = true});
}

/* Code that was woven for another place does the same where its fix-ups bring it. */
static void moved(void **state)
{
    static const int64_t by[] = {1 << 16, -(1 << 20) + 64, 0x3000040};
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        bench.moved_by = by[i % 3];
        bench.apart = i >= 3;
        sweep(4, i & 1 ? FAULTS_AND_COUNTS : NO_FAULTS, (weave_options){0});
    }
    bench.moved_by = 0;
    bench.apart = false;
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_runs),         cmocka_unit_test(sparse_snippets),      cmocka_unit_test(dense_snippets),
        cmocka_unit_test(counts_and_faults), cmocka_unit_test(faults_amid_snippets), cmocka_unit_test(random_registers),
        cmocka_unit_test(nothing_dead),      cmocka_unit_test(save_everything),      cmocka_unit_test(moved),
    };
    if (getenv("WEAVE_TEST")) cmocka_set_test_filter(getenv("WEAVE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
