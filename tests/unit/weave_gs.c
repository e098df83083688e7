/* Operands in the GS segment. Natively the instruction runs without the prefix; woven it runs with it,
 * on a program's GS base of `shift`, and on an address register (or an absolute address) that is less by
 * as much. What comes out must be the same, with the register less by as much again. */
#include "weave_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct form {
    const char *name;
    uint8_t bytes[12], size;
    uint8_t reg;      /* holds the address, or NONE */
    uint8_t no_index; /* al is an index */
} form;
enum { NONE = 99 };
static const form forms[] = {
    {"lodsb", {0xac}, 1, X86_RSI, 0},
    {"movsq", {0x48, 0xa5}, 2, X86_RSI, 0},
    {"cmpsb", {0xa6}, 1, X86_RSI, 0},
    {"rep movsb", {0xf3, 0xa4}, 2, X86_RSI, 0},
    {"rep movsq", {0xf3, 0x48, 0xa5}, 3, X86_RSI, 0},
    {"rep lodsw", {0xf3, 0x66, 0xad}, 3, X86_RSI, 0},
    {"repe cmpsb", {0xf3, 0xa6}, 2, X86_RSI, 0},
    {"repne cmpsd", {0xf2, 0xa7}, 2, X86_RSI, 0},
    {"xlat", {0xd7}, 1, X86_RBX, 1},
    {"maskmovdqu xmm1, xmm2", {0x66, 0x0f, 0xf7, 0xca}, 4, X86_RDI, 0},
    {"mov rax, [rbx]", {0x48, 0x8b, 0x03}, 3, X86_RBX, 0},
    {"mov rdx, [rsi+8]", {0x48, 0x8b, 0x56, 8}, 4, X86_RSI, 0},
    {"add [r9+rcx*8], r12", {0x4d, 0x01, 0x24, 0xc9}, 4, X86_R9, 0},
    {"push [rbx]", {0xff, 0x33}, 2, X86_RBX, 0},
    {"mov ecx, [ebx+8]", {0x67, 0x8b, 0x4b, 8}, 4, X86_RBX, 0},
    {"add [r9d], al", {0x67, 0x41, 0x00, 0x01}, 4, X86_R9, 0},
    {"vgatherdps ymm5, [rbx+ymm1*4+8], ymm4", {0xc4, 0xe2, 0x5d, 0x92, 0x6c, 0x8b, 8}, 7, X86_RBX, 0},
    {"vpgatherqd xmm5, [r9+ymm12], xmm4", {0xc4, 0x82, 0x5d, 0x91, 0x2c, 0x21}, 6, X86_R9, 0},
};
static machine start, native, woven;

static weave_run *with_count(const uint8_t *bytes, size_t size, bool inserts)
{
    const char *why;
    weave_run *run = harness_run(bytes, size);
    assert_non_null(run);
    if (!inserts) return run;
    snippet *count = snippet_new(&bench.arena, SNIPPET_COUNT);
    count->a = gen_const(1);
    assert_true(weave_insert_at(run, WEAVE_BEFORE, 0, count, false, &why));
    return run;
}

/* Also in front of the page that faults. */
static void fill_memory(unsigned seed)
{
    harness_fill_memory(seed);
    memset(bench.bad - 256, (int)seed, 256);
}

static void run_natively(const uint8_t *bytes, size_t size, unsigned seed)
{
    weave_run *run = with_count(bytes, size, false);
    fill_memory(seed);
    native = start;
    harness_native(run, run->insn_count, &native);
    harness_save_memory(bench.native_memory);
}

static void run_woven(const char *name, const uint8_t *bytes, size_t size, unsigned seed, unsigned stress)
{
    inl_error e;
    uint8_t prefixed[16] = {0x65};
    weave_options options = {.stress = stress, .seed = harness_random()};
    memcpy(prefixed + 1, bytes, size);
    weave_run *run = with_count(prefixed, size + 1, stress != 3);
    inl_status status = harness_weave(run, &options, stress & 1, &e);
    if (status) fail_msg("%s: %s", name, e.text);
    fill_memory(seed);
    harness_woven(&woven);
    harness_save_memory(bench.woven_memory);
}

static void compare(const char *name)
{
    for (unsigned r = 0; r < 16; r++)
        if (native.gpr[r] != woven.gpr[r])
            fail_msg("%s: register %u is %#lx instead of %#lx", name, r, (long)woven.gpr[r], (long)native.gpr[r]);
    if ((native.flags ^ woven.flags) & X86_ARITH)
        fail_msg("%s: flags %#lx instead of %#lx, fault at %#lx, %#lx", name, (long)woven.flags, (long)native.flags,
                 (long)woven.fault_pc, (long)native.fault_pc);
    assert_memory_equal(native.ymm, woven.ymm, sizeof native.ymm);
    assert_memory_equal(bench.native_memory, bench.woven_memory, sizeof bench.woven_memory);
    assert_int_equal(native.fault_pc != 0, woven.fault_pc != 0);
}

/* `at`: where the operand lies; near the bad page it faults, after some iterations of a REP. */
static void one(const form *f, unsigned turn, uint64_t at)
{
    bool narrow = f->bytes[0] == 0x67;
    uint64_t shift = narrow ? 0x10000 : 0x1234567890;
    harness_random_state(&start);
    start.gpr[f->reg] = at;
    start.gpr[X86_RDI] = (uintptr_t)bench.data + 1000;
    if (f->reg == X86_RDI) start.gpr[X86_RDI] = at;
    if (f->reg != X86_RCX) start.gpr[X86_RCX] = turn % 9;
    if (f->no_index) start.gpr[X86_RAX] = turn;
    for (unsigned i = 0; i < 8; i++) { /* indices that stay in the data, whichever their size */
        int32_t index = i % 2 ? 0 : (int32_t)(harness_random() % 100);
        memcpy(start.ymm[1] + 4 * i, &index, 4);
        memcpy(start.ymm[12] + 4 * i, &index, 4);
    }
    run_natively(f->bytes, f->size, turn);
    bench.frame->app_gs_base = shift;
    woven = start;
    woven.gpr[f->reg] -= shift;
    run_woven(f->name, f->bytes, f->size, turn, turn % 4);
    assert_int_equal(bench.frame->app_gs_base, shift);
    if (native.gpr[f->reg] != woven.gpr[f->reg]) woven.gpr[f->reg] += shift; /* unless overwritten */
    compare(f->name);
}

static void same_as_without_prefix(void **state)
{
    (void)state;
    harness_catch_faults();
    harness_seed(3);
    for (unsigned turn = 0; turn < 40; turn++)
        for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
            if (forms[i].bytes[0] == 0x67 && (uintptr_t)bench.data >> 31) continue;
            one(&forms[i], turn, (uintptr_t)bench.data + 1600);
        }
}

static void faults_show_the_iteration(void **state)
{
    (void)state;
    harness_catch_faults();
    harness_seed(4);
    for (unsigned turn = 0; turn < 40; turn++)
        for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
            if (forms[i].bytes[0] == 0x67) continue;
            one(&forms[i], turn, (uintptr_t)bench.bad - 3 * (turn % 5));
        }
}

/* mov between the accumulator and an absolute address */
static void absolute_addresses(void **state)
{
    (void)state;
    static const struct {
        uint8_t head[3], size;
    } movs[] = {
        {{0xa0}, 1}, {{0xa1}, 1}, {{0x48, 0xa1}, 2}, {{0x66, 0xa1}, 2},
        {{0xa2}, 1}, {{0xa3}, 1}, {{0x48, 0xa3}, 2}, {{0x66, 0xa3}, 2},
    };
    harness_catch_faults();
    for (unsigned turn = 0; turn < 8 * 4; turn++) {
        unsigned k = turn % 8, size = movs[k].size;
        uint64_t address = (uintptr_t)bench.data + 24, shift = 0x123456789a;
        uint8_t bytes[12];
        harness_random_state(&start);
        memcpy(bytes, movs[k].head, size);
        memcpy(bytes + size, &address, 8);
        run_natively(bytes, size + 8, turn);
        address -= shift;
        memcpy(bytes + size, &address, 8);
        bench.frame->app_gs_base = shift;
        woven = start;
        run_woven("moffs", bytes, size + 8, turn, turn / 8);
        compare("moffs");
    }
}

/* What flags a fault shows is then the processor's affair, which differs. */
static void repetitions_are_the_processors(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x65, 0xf2, 0xa7}, /* repne cmpsd gs:[rsi], [rdi] */
        wanted[] = {0xf2, 0xa7};
    inl_error e;
    weave_run *run = with_count(bytes, sizeof bytes, false);
    assert_int_equal(harness_weave(run, NULL, false, &e), INL_OK);
    assert_non_null(memmem(bench.code.write, bench.code.at, wanted, sizeof wanted));
}

static void refused(void **state)
{
    (void)state;
    static const uint8_t bytes[][8] = {
        {0x65, 0x67, 0xac},                               /* lodsb gs:[esi] */
        {0x65, 0x67, 0xc4, 0xe2, 0x5d, 0x92, 0x2c, 0x8b}, /* vgatherdps ymm5, gs:[ebx+ymm1*4], ymm4 */
    };
    static const unsigned sizes[] = {3, 8};
    for (unsigned i = 0; i < 2; i++) {
        inl_error e;
        weave_run *run = with_count(bytes[i], sizes[i], false);
        assert_int_equal(harness_weave(run, NULL, false, &e), INL_ERR_UNSUPPORTED);
        assert_non_null(strstr(e.text, "GS"));
    }
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_without_prefix),
        cmocka_unit_test(faults_show_the_iteration),
        cmocka_unit_test(absolute_addresses),
        cmocka_unit_test(repetitions_are_the_processors),
        cmocka_unit_test(refused),
    };
    if (getenv("WEAVE_TEST")) cmocka_set_test_filter(getenv("WEAVE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
