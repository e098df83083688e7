/* Typed snippets, woven: random texts do to memory what a C compiler makes of them, and nothing to the program's
 * registers, flags and vectors around. */
#include "snippet_gen.h"
#include "weave_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void insert(weave_run *run, const snippet *code)
{
    const char *why;
    code = snippet_simplify(&bench.arena, code);
    if (!weave_insert_at(run, WEAVE_BEFORE, 0, code, false, &why)) fail_msg("%s", why);
}

static bool same_state(const machine *a, const machine *b)
{
    return !memcmp(a->gpr, b->gpr, sizeof a->gpr) && a->flags == b->flags && a->exit == b->exit &&
           a->mxcsr == b->mxcsr && !memcmp(a->ymm, b->ymm, sizeof a->ymm);
}

static void one(gen_library *g, unsigned i, uint32_t seed, unsigned stress)
{
    static _Alignas(16) uint8_t vars[GEN_BYTES], native[GEN_BYTES];
    static const uint8_t code[] = {0x48, 0x01, 0xd8, 0x48, 0xff, 0xc1}; /* add rax, rbx; inc rcx */
    char what[200];
    inl_error e;
    machine start, plain, woven;
    snippet_maker m = eval_maker();
    snippet_names names = gen_names(g, vars);
    const snippet *s = snippet_parse(&m, &names, g->texts[i]);
    if (!s) fail_msg("%u: refused: %s\n%s", seed + i, m.why, g->texts[i]);
    harness_seed(seed + i);
    weave_run *run = harness_run(code, sizeof code);
    harness_random_state(&start);
    insert(run, s);
    weave_options options = {.stress = stress, .seed = seed + i};
    inl_status status = harness_weave(run, &options, false, &e);
    if (status) fail_msg("%u: %s\n%s", seed + i, e.text, g->texts[i]);
    gen_fill(g, vars, seed + i);
    gen_native(g, i, vars);
    memcpy(native, vars, sizeof native);
    plain = woven = start;
    harness_native(run, run->insn_count, &plain);
    gen_fill(g, vars, seed + i);
    harness_woven(&woven);
    if (!gen_same(g, vars, native, what, sizeof what)) fail_msg("%u: %s\n%s", seed + i, what, g->texts[i]);
    if (!same_state(&plain, &woven)) fail_msg("%u: the program's state is another\n%s", seed + i, g->texts[i]);
}

static void sweep(uint32_t seed, unsigned stress)
{
    const char *rounds = getenv("SNIPPET_ROUNDS");
    uint32_t left = rounds ? (uint32_t)atoi(rounds) : 1000;
    while (left) {
        gen_library g;
        unsigned n = left < 1000 ? left : 1000;
        gen_build(&g, n, seed);
        for (unsigned i = 0; i < n; i++) one(&g, i, seed, stress);
        gen_close(&g);
        left -= n, seed += n;
    }
}

static void plain(void **state)
{
    (void)state;
    sweep(100000, 0);
}

static void random_registers(void **state)
{
    (void)state;
    sweep(200000, WEAVE_STRESS_RANDOM_REGS | WEAVE_STRESS_NO_DEAD);
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(random_registers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
