/* The emitter of AArch64: what it writes reads as meant (the decoder's text is compared with binutils' elsewhere),
 * constants come out, what has no encoding is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "isa/aarch64/emit.h"

typedef struct window {
    uint8_t bytes[256];
    isa_code code;
} window;

static isa_code *fresh(window *w)
{
    memset(w, 0, sizeof *w);
    w->code = (isa_code){.write = w->bytes, .exec = 0x400000, .size = sizeof w->bytes};
    return &w->code;
}

/* The text of all that was written, instructions parted by "; ". */
static const char *text_of(const isa_code *c, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t at = 0; at < c->at && n < size; at += 4) {
        isa_insn in;
        assert_int_equal(isa_aarch64.decode(c->write + at, 4, c->exec + at, &in), ISA_OK);
        if (at) n += (size_t)snprintf(out + n, size - n, "; ");
        n += (size_t)isa_aarch64.format(&in, out + n, size - n);
    }
    return out;
}

#define EMITS(call, text)                                                                                              \
    do {                                                                                                               \
        char got[400];                                                                                                 \
        isa_code *c = fresh(&w);                                                                                       \
        call;                                                                                                          \
        assert_false(c->unreachable);                                                                                  \
        assert_string_equal(text_of(c, got, sizeof got), text);                                                        \
    } while (0)
#define REFUSES(call)                                                                                                  \
    do {                                                                                                               \
        isa_code *c = fresh(&w);                                                                                       \
        call;                                                                                                          \
        assert_true(c->unreachable);                                                                                   \
        assert_int_equal(c->at, 0);                                                                                    \
    } while (0)

static void arithmetic(void **unused)
{
    window w;
    (void)unused;
    EMITS(a64_mov_rr(c, 8, 3, 4), "orr x3, xzr, x4");
    EMITS(a64_mov_rr(c, 8, 3, A64_SP), "add x3, sp, #0x0");
    EMITS(a64_mov_rr(c, 8, A64_SP, 29), "add sp, x29, #0x0");
    EMITS(a64_arith_rr(c, A64_ARITH_ADD, 8, 0, 1, 2, 3), "add x0, x1, x2, lsl #3");
    EMITS(a64_arith_rr(c, A64_ARITH_SUBS, 4, A64_ZR, 1, 2, 0), "subs wzr, w1, w2");
    EMITS(a64_arith_ext(c, A64_ARITH_ADD, A64_SP, A64_SP, 2, ISA_MODIFY_UXTW, 2), "add sp, sp, w2, uxtw #2");
    EMITS(assert_true(a64_arith_ri(c, A64_ARITH_ADD, 8, A64_SP, A64_SP, -32)), "sub sp, sp, #0x20");
    EMITS(assert_true(a64_arith_ri(c, A64_ARITH_SUBS, 4, A64_ZR, 7, 0x5000)), "subs wzr, w7, #0x5000");
    EMITS(assert_true(a64_add_ri(c, 1, 2, 0x123456)), "add x1, x2, #0x123000; add x1, x1, #0x456");
    EMITS(assert_true(a64_add_ri(c, 1, 2, -0x123456)), "sub x1, x2, #0x123000; sub x1, x1, #0x456");
    EMITS(assert_false(a64_add_ri(c, 1, 2, 1 << 24)), "");
    EMITS(assert_false(a64_arith_ri(c, A64_ARITH_ADD, 8, 1, 2, 4097)), "");
    EMITS(a64_logic_rr(c, A64_LOGIC_EON, 8, 0, 1, 2, 0), "eon x0, x1, x2");
    EMITS(assert_true(a64_logic_ri(c, A64_LOGIC_AND, 8, 0, 1, 0xff00)), "and x0, x1, #0xff00");
    EMITS(assert_true(a64_logic_ri(c, A64_LOGIC_BIC, 4, 0, 1, 1)), "and w0, w1, #0xfffffffe");
    EMITS(assert_false(a64_logic_ri(c, A64_LOGIC_ORR, 8, 0, 1, 5)), "");
    EMITS(a64_shift_ri(c, A64_SHIFT_LSL, 8, 0, 1, 4), "ubfm x0, x1, #0x3c, #0x3b");
    EMITS(a64_shift_ri(c, A64_SHIFT_LSR, 4, 0, 1, 4), "ubfm w0, w1, #0x4, #0x1f");
    EMITS(a64_shift_ri(c, A64_SHIFT_ASR, 8, 0, 1, 63), "sbfm x0, x1, #0x3f, #0x3f");
    EMITS(a64_shift_ri(c, A64_SHIFT_ROR, 8, 0, 1, 5), "extr x0, x1, x1, #0x5");
    EMITS(a64_shift_rr(c, A64_SHIFT_ASR, 4, 0, 1, 2), "asrv w0, w1, w2");
    EMITS(a64_extend(c, 2, true, 0, 1), "sbfm x0, x1, #0x0, #0xf");
    EMITS(a64_extend(c, 4, false, 0, 1), "ubfm x0, x1, #0x0, #0x1f");
    EMITS(a64_madd(c, 8, 0, 1, 2, A64_ZR), "madd x0, x1, x2, xzr");
    EMITS(a64_msub(c, 8, 0, 1, 2, 3), "msub x0, x1, x2, x3");
    EMITS(a64_mulh(c, false, 0, 1, 2), "umulh x0, x1, x2");
    EMITS(a64_div(c, true, 4, 0, 1, 2), "sdiv w0, w1, w2");
    EMITS(a64_csel(c, 8, 0, 1, 2, A64_HI), "csel x0, x1, x2, hi");
    EMITS(a64_cset(c, 5, A64_EQ), "csinc x5, xzr, xzr, ne");
    EMITS((a64_clz(c, 8, 0, 1), a64_rbit(c, 4, 0, 1), a64_rev(c, 8, 0, 1)), "clz x0, x1; rbit w0, w1; rev x0, x1");
    REFUSES(a64_arith_rr(c, A64_ARITH_ADD, 8, A64_SP, 1, 2, 0));
    REFUSES(a64_arith_ri(c, A64_ARITH_SUBS, 8, A64_SP, 1, 2));
    REFUSES(a64_arith_rr(c, A64_ARITH_ADD, 2, 0, 1, 2, 0));
}

static void memory(void **unused)
{
    window w;
    (void)unused;
    EMITS(a64_load(c, 8, 0, a64_at(A64_SP, 32760)), "ldr x0, [sp, #32760]");
    EMITS(a64_load(c, 8, 0, a64_at(1, -256)), "ldur x0, [x1, #-256]");
    EMITS(a64_load(c, 4, 0, a64_at(1, 255)), "ldur w0, [x1, #255]");
    EMITS(a64_load(c, 2, 0, a64_indexed(1, 2, true)), "ldrh w0, [x1, x2, lsl #1]");
    EMITS(a64_load(c, 1, 0, a64_at(1, 4095)), "ldrb w0, [x1, #4095]");
    EMITS(a64_load_sx(c, 4, 0, a64_at(1, 4)), "ldrsw x0, [x1, #4]");
    EMITS(a64_load_sx(c, 1, 0, a64_post(1, 1)), "ldrsb x0, [x1], #1");
    EMITS(a64_store(c, 8, a64_pre(A64_SP, -16), A64_ZR), "str xzr, [sp, #-16]!");
    EMITS(a64_store(c, 2, a64_at(3, 6), 4), "strh w4, [x3, #6]");
    EMITS(a64_load_vec(c, 16, 31, a64_at(1, 16)), "ldr q31, [x1, #16]");
    EMITS(a64_store_vec(c, 16, a64_indexed(1, 2, true), 5), "str q5, [x1, x2, lsl #4]");
    EMITS(a64_store_vec(c, 8, a64_at(1, 8), 5), "str d5, [x1, #8]");
    EMITS(a64_store_pair(c, 8, a64_pre(A64_SP, -512), 29, 30), "stp x29, x30, [sp, #-512]!");
    EMITS(a64_load_pair(c, 8, 29, 30, a64_post(A64_SP, 504)), "ldp x29, x30, [sp], #504");
    EMITS(a64_load_pair(c, 4, 1, 2, a64_at(3, -4)), "ldp w1, w2, [x3, #-4]");
    EMITS(a64_store_vec_pair(c, a64_at(3, -1024), 0, 1), "stp q0, q1, [x3, #-1024]");
    EMITS(a64_load_vec_pair(c, 0, 1, a64_at(3, 1008)), "ldp q0, q1, [x3, #1008]");
    EMITS((a64_load_exclusive(c, 8, 0, 1), a64_store_exclusive(c, 8, 2, 1, 0)), "ldaxr x0, [x1]; stlxr w2, x0, [x1]");
    EMITS(a64_load_exclusive(c, 2, 0, A64_SP), "ldaxrh w0, [sp]");
    EMITS((a64_atomic_add(c, 8, 0, 1, 2), a64_atomic_add(c, 1, A64_ZR, 1, 2)),
          "ldaddal x2, x0, [x1]; ldaddalb w2, wzr, [x1]");
    REFUSES(a64_load(c, 8, 0, a64_at(1, 32768)));
    REFUSES(a64_load(c, 8, 0, a64_at(1, -257)));
    REFUSES(a64_load(c, 8, 0, a64_pre(1, 256)));
    REFUSES(a64_load(c, 16, 0, a64_at(1, 0)));
    REFUSES(a64_store(c, 3, a64_at(1, 0), 0));
    REFUSES(a64_load_pair(c, 8, 0, 1, a64_at(2, 512)));
    REFUSES(a64_load_pair(c, 8, 0, 1, a64_at(2, 4)));
    REFUSES(a64_store_exclusive(c, 8, 2, 2, 0));
}

static void branches(void **unused)
{
    window w;
    isa_label l;
    (void)unused;
    EMITS(a64_b(c, 0x400000 - (1 << 27)), "b 0xfffffffff8400000");
    EMITS(a64_bl(c, 0x400100), "bl 0x400100");
    EMITS((a64_br(c, 16), a64_blr(c, 17), a64_ret(c, 30)), "br x16; blr x17; ret x30");
    EMITS(a64_bcond(c, A64_LS, 0x400000 + (1 << 20) - 4), "b.ls 0x4ffffc");
    EMITS(a64_cbz(c, true, 4, 3, 0x400008), "cbnz w3, 0x400008");
    EMITS(a64_tbz(c, false, 3, 63, 0x400008), "tbz x3, #0x3f, 0x400008");
    EMITS((l = a64_bcond_label(c, A64_NE), a64_nop(c, 8), a64_bind(c, l), a64_nop(c, 4)),
          "b.ne 0x40000c; nop; nop; nop");
    EMITS((l = a64_cbz_label(c, false, 8, 5), a64_nop(c, 4), a64_bind(c, l)), "cbz x5, 0x400008; nop");
    EMITS((l = a64_tbz_label(c, true, 5, 31), a64_nop(c, 4), a64_bind(c, l)), "tbnz w5, #0x1f, 0x400008; nop");
    EMITS((l = a64_b_label(c), a64_bind(c, l)), "b 0x400004");
    EMITS((a64_read_flags(c, 1), a64_write_flags(c, 1)), "mrs x1, s3_3_c4_c2_0; msr s3_3_c4_c2_0, x1");
    EMITS((a64_read_tls(c, 1), a64_write_tls(c, 1)), "mrs x1, s3_3_c13_c0_2; msr s3_3_c13_c0_2, x1");
    EMITS((a64_read_fp_control(c, 1), a64_write_fp_status(c, 2)), "mrs x1, s3_3_c4_c4_0; msr s3_3_c4_c4_1, x2");
    EMITS((a64_svc(c, 0), a64_brk(c, 0xf000), a64_landing(c), a64_barrier(c)),
          "svc #0x0; brk #0xf000; bti #0x3; dmb #0xb");
    REFUSES(a64_b(c, 0x400000 + (1 << 27)));
    REFUSES(a64_bcond(c, A64_EQ, 0x400000 + (1 << 20)));
    REFUSES(a64_tbz(c, true, 1, 2, 0x400000 + (1 << 15)));
    REFUSES(a64_b(c, 0x400002));
    REFUSES(a64_br(c, A64_SP));
}

/* The number that a sequence of moves leaves behind. */
static uint64_t run_moves(const isa_code *c, unsigned reg)
{
    uint64_t value = 0x5555aaaa5555aaaa;
    for (size_t at = 0; at < c->at; at += 4) {
        isa_insn in;
        isa_operand ops[ISA_MAX_OPERANDS];
        uint64_t number, mask;
        assert_int_equal(isa_aarch64.decode(c->write + at, 4, c->exec + at, &in), ISA_OK);
        isa_aarch64.operands(&in, ops);
        assert_int_equal(ops[0].reg, reg);
        if (a64_wide_constant(&in, &number, &mask)) value = (value & ~mask) | number;
        else value = (uint64_t)ops[2].imm; /* orr with a mask */
    }
    return value;
}

static void constants(void **unused)
{
    static const struct {
        uint64_t value;
        size_t insns;
    } known[] = {{0, 1},
                 {1, 1},
                 {~0ull, 1},
                 {0xffff, 1},
                 {0x10000, 1},
                 {-2ull, 1},
                 {0xffff0000ffffffff, 1},
                 {0x12345678, 2},
                 {0xff00ff00ff00ff00, 1},
                 {0x1234567812345678, 4},
                 {0x123400005678, 2},
                 {0xffffffff12345678, 2}};
    window w;
    uint64_t state = 99;
    (void)unused;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        isa_code *c = fresh(&w);
        a64_mov_ri(c, 7, known[i].value);
        assert_int_equal(run_moves(c, 7), known[i].value);
        assert_int_equal(c->at / 4, known[i].insns);
    }
    for (int i = 0; i < 200000; i++) {
        isa_code *c = fresh(&w);
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t value = state ^ state >> 29;
        for (int half = 0; half < 4; half++) {
            if (state >> (8 + half) & 1) value &= ~(0xffffull << 16 * half);
            if (state >> (16 + half) & 1) value |= 0xffffull << 16 * half;
        }
        a64_mov_ri(c, 7, value);
        assert_int_equal(run_moves(c, 7), value);
        assert_true(c->at <= 16);
    }
    isa_code *c = fresh(&w);
    a64_mov_fixed(c, 3, 5);
    assert_int_equal(c->at, 16);
    assert_int_equal(run_moves(c, 3), 5);
}

static void addresses(void **unused)
{
    window w;
    (void)unused;
    EMITS(a64_address(c, 0, 0x400000 + (1 << 20) - 1), "adr x0, 0x4fffff");
    EMITS(a64_address(c, 0, 0x80001234), "adrp x0, 0x80001000; add x0, x0, #0x234");
    EMITS(a64_address(c, 0, 0x80001000), "adrp x0, 0x80001000");
    REFUSES(a64_address(c, 0, 0x200000000));
}

static void a_full_window(void **unused)
{
    uint8_t bytes[8];
    isa_code c = {.write = bytes, .exec = 0, .size = 8};
    (void)unused;
    a64_nop(&c, 8);
    assert_false(c.full);
    a64_ret(&c, 30);
    assert_true(c.full);
    assert_int_equal(c.at, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic), cmocka_unit_test(memory),    cmocka_unit_test(branches),
        cmocka_unit_test(constants),  cmocka_unit_test(addresses), cmocka_unit_test(a_full_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
