/* Branches, labels, padding, and the window's limits. */
#include "emit_check.h"

#include <string.h>

/* In the order of the condition codes. */
static const ZydisMnemonic jcc[] = {
    ZYDIS_MNEMONIC_JO, ZYDIS_MNEMONIC_JNO, ZYDIS_MNEMONIC_JB,  ZYDIS_MNEMONIC_JNB,
    ZYDIS_MNEMONIC_JZ, ZYDIS_MNEMONIC_JNZ, ZYDIS_MNEMONIC_JBE, ZYDIS_MNEMONIC_JNBE,
    ZYDIS_MNEMONIC_JS, ZYDIS_MNEMONIC_JNS, ZYDIS_MNEMONIC_JP,  ZYDIS_MNEMONIC_JNP,
    ZYDIS_MNEMONIC_JL, ZYDIS_MNEMONIC_JNL, ZYDIS_MNEMONIC_JLE, ZYDIS_MNEMONIC_JNLE,
};

/* Distances from the start of the instruction, around every border. */
static int64_t distance(unsigned i)
{
    static const int64_t around[] = {0, 127 + 2, -128 + 2, INT32_MAX + 5ll, INT32_MIN + 5ll};
    return around[i / 9 % 5] + (int64_t)(i % 9) - 4;
}
enum { DISTANCES = 5 * 9 };

static const uint64_t exec = 0x7f1234567000;

static void start(x86_code *c)
{
    emit_start(c);
    c->exec = exec;
}

/* Length of the shortest form that reaches, 0 for none; `wide` the length with 32 bits. */
static unsigned expected_length(int64_t from_start, bool has_short, unsigned wide)
{
    int64_t d = from_start - 2;
    if (has_short && d == (int8_t)d) return 2;
    d = from_start - wide;
    return d == (int32_t)d ? wide : 0;
}

static void check_direct(const x86_code *c, bool emitted, ZydisMnemonic m, uint64_t target, unsigned length)
{
    assert_int_equal(emitted, length != 0);
    assert_int_equal(c->at, length);
    assert_false(c->unreachable);
    if (length) EMIT_CHECK(c, m, is_target(target));
}

static void test_direct_branches(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DISTANCES; i++) {
        int64_t d = distance(i);
        uint64_t target = exec + (uint64_t)d;
        x86_code c;
        start(&c);
        bool ok = x86_jmp_to(&c, target);
        check_direct(&c, ok, ZYDIS_MNEMONIC_JMP, target, expected_length(d, true, 5));
        start(&c);
        ok = x86_call_to(&c, target);
        check_direct(&c, ok, ZYDIS_MNEMONIC_CALL, target, expected_length(d, false, 5));
        for (unsigned cond = 0; cond < 16; cond++) {
            start(&c);
            ok = x86_jcc_to(&c, cond, target);
            check_direct(&c, ok, jcc[cond], target, expected_length(d, true, 6));
        }
    }
}

/* Emits nops up to `before` and then the branch; answers where its own bytes start. */
static size_t check_patchable(unsigned before, bool conditional, bool aligned, uint64_t target)
{
    x86_code c;
    start(&c);
    x86_nop(&c, before);
    size_t at = conditional ? x86_jcc_rel32(&c, X86_L, target, aligned) : x86_jmp_rel32(&c, target, aligned);
    unsigned opcode_bytes = conditional ? 2 : 1;
    size_t from = at - opcode_bytes;
    emit_operand to = is_target(target);
    ZydisMnemonic m = conditional ? ZYDIS_MNEMONIC_JL : ZYDIS_MNEMONIC_JMP;
    emit_check(&c, from, m, 1, &to, __FILE__, __LINE__);
    if (aligned) {
        assert_true(((c.exec + at) & 7) <= 4);
        assert_true(from - before <= 3);
    } else {
        assert_int_equal(from, before);
    }
    uint64_t other = exec - 0x123456;
    assert_true(x86_patch_rel32(c.write + at, c.exec + at, other));
    to = is_target(other);
    emit_check(&c, from, m, 1, &to, __FILE__, __LINE__);
    assert_false(x86_patch_rel32(c.write + at, c.exec + at, exec + 0x90000000));
    emit_check(&c, from, m, 1, &to, __FILE__, __LINE__);
    return from;
}

static void test_patchable_branches(void **state)
{
    (void)state;
    for (unsigned before = 0; before < 16; before++)
        for (unsigned aligned = 0; aligned < 2; aligned++) {
            check_patchable(before, false, aligned, exec + 2);
            check_patchable(before, true, aligned, exec + 0x12345678);
        }
}

static void test_patchable_branch_out_of_reach(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_jmp_rel32(&c, exec + 5 + 0x80000000u, false);
    EMIT_CHECK_REFUSED(&c);
    start(&c);
    x86_jcc_rel32(&c, X86_E, 0x400000, true);
    EMIT_CHECK_REFUSED(&c);
}

/* Labels. */

static uint8_t big[400];

static void start_big(x86_code *c) { *c = (x86_code){.write = big, .exec = exec, .size = sizeof big}; }

static x86_label emit_label(x86_code *c, unsigned kind, unsigned width)
{
    if (kind == 16) return x86_jmp_label(c, width);
    if (kind == 17) return x86_jrcxz_label(c);
    return x86_jcc_label(c, kind, width);
}

static void check_label(unsigned kind, unsigned width, unsigned between)
{
    x86_code c;
    start_big(&c);
    x86_nop(&c, 3);
    x86_label l = emit_label(&c, kind, width);
    size_t end = c.at;
    x86_nop(&c, between);
    bool reaches = width == 4 || between <= 127;
    assert_int_equal(x86_bind(&c, l), reaches);
    if (!reaches) return;
    ZydisMnemonic m = kind == 16 ? ZYDIS_MNEMONIC_JMP : kind == 17 ? ZYDIS_MNEMONIC_JRCXZ : jcc[kind];
    emit_operand to = is_target(x86_here(&c));
    c.at = end;
    emit_check(&c, 3, m, 1, &to, __FILE__, __LINE__);
}

static void test_labels(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= 17; kind++)
        for (unsigned between = 0; between < 260; between += between < 120 ? 7 : 1) {
            check_label(kind, 1, between);
            if (kind != 17) check_label(kind, 4, between);
        }
    x86_code c;
    start(&c);
    x86_label l = x86_jmp_label(&c, 2);
    EMIT_CHECK_REFUSED(&c);
    assert_true(x86_bind(&c, l));
}

/* Padding. */

static void test_nops(void **state)
{
    (void)state;
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (unsigned n = 0; n <= 200; n++) {
        x86_code c;
        start_big(&c);
        x86_nop(&c, n);
        assert_int_equal(c.at, n);
        unsigned count = 0;
        for (size_t at = 0; at < n; count++) {
            ZydisDecodedInstruction insn;
            assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, big + at, n - at, &insn)));
            assert_int_equal(insn.mnemonic, ZYDIS_MNEMONIC_NOP);
            at += insn.length;
        }
        assert_int_equal(count, (n + 10) / 11);
    }
}

static void test_alignment(void **state)
{
    (void)state;
    for (unsigned to = 1; to <= 64; to *= 2)
        for (unsigned before = 0; before < 70; before++) {
            x86_code c;
            start_big(&c);
            c.exec += 3; /* the execute view counts, not the write view */
            x86_nop(&c, before);
            x86_align(&c, to);
            assert_int_equal(x86_here(&c) % to, 0);
            assert_true(c.at - before < to);
        }
}

/* The window's end: each of these is written whole or not at all, and then nothing else is. */

static void emit_kind(x86_code *c, unsigned kind)
{
    switch (kind) {
    case 0: x86_mov_ri(c, X86_R9, 0x123456789abcdef0); break;
    case 1: x86_store_imm(c, 8, x86_indexed(X86_R12, X86_R13, 8, 0x12345), 0x1234567); break;
    case 2: x86_vec_store(c, 64, x86_gs(0x1000), 31); break;
    case 3: x86_jmp_to(c, exec + 0x10000); break;
    case 4: x86_jcc_rel32(c, X86_E, exec + 0x10000, true); break;
    case 5: x86_nop(c, 30); break;
    case 6: x86_bytes(c, "0123456789", 10); break;
    case 7: x86_bind(c, x86_jcc_label(c, X86_E, 4)); break;
    case 8: x86_push(c, X86_R8); break;
    case 9: x86_bind(c, x86_jrcxz_label(c)); break;
    case 10: x86_byte(c, 0x90); break;
    }
}
enum { KINDS = 11 };

static void test_full_window(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        x86_code c;
        start_big(&c);
        emit_kind(&c, kind);
        size_t whole = c.at;
        assert_true(whole > 0 && !c.full && !c.unreachable);
        for (size_t room = 0; room < whole; room++) {
            start_big(&c);
            c.size = room;
            memset(big, 0xcc, sizeof big);
            emit_kind(&c, kind);
            assert_true(c.full);
            assert_int_equal(c.at, 0);
            for (unsigned other = 0; other < KINDS; other++) emit_kind(&c, other);
            x86_ret(&c);
            assert_int_equal(c.at, 0);
            for (size_t i = 0; i < sizeof big; i++) assert_int_equal(big[i], 0xcc);
        }
        start_big(&c);
        c.size = whole;
        emit_kind(&c, kind);
        assert_false(c.full);
        assert_int_equal(c.at, whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_branches),
        cmocka_unit_test(test_patchable_branches),
        cmocka_unit_test(test_patchable_branch_out_of_reach),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_nops),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_full_window),
    };
    return cmocka_run_group_tests_name("emit: branches and limits", tests, NULL, NULL);
}
