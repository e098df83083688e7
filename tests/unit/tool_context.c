/* Registers of a context by their names: what is as at the start, what setting one leaves of the others, and where each
 * lies in the vector state, which is made by hand here. */
#include <inlay.h>

#include "base/arch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static _Alignas(64) uint8_t state[16384];

static uint64_t get(const inlay_context *c, inlay_reg reg)
{
    uint64_t value = 0;
    assert_int_equal(inlay_context_get(c, reg, &value, sizeof value), (inlay_reg_bits(reg) + 7) / 8);
    return value;
}

static void set(inlay_context *c, inlay_reg reg, uint64_t value)
{
    assert_true(inlay_context_set(c, reg, &value, (inlay_reg_bits(reg) + 7) / 8));
}

static void nothing_is_had(void **arg)
{
    (void)arg;
    inlay_context c = {0};
    uint64_t value = 7;
    assert_int_equal(inlay_context_get(NULL, 0, &value, 8), 0);
    assert_int_equal(inlay_context_get(&c, 0, NULL, 8), 0);
    assert_int_equal(inlay_context_get(&c, 0, &value, 7), 0);
    assert_int_equal(inlay_context_get(&c, 0xffff, &value, 8), 0);
    assert_false(inlay_context_set(&c, 0, &value, 4));
    assert_false(inlay_context_set(&c, 0xffff, &value, 8));
    assert_int_equal(value, 7);
}

#if defined __x86_64__
static void general(void **arg)
{
    (void)arg;
    inlay_context c = {.gpr[INLAY_RCX] = 0x1122334455667788, .flags = 0x246, .pc = 0x1234, .gs_base = 9};
    assert_int_equal(get(&c, INLAY_CX), 0x7788);
    assert_int_equal(get(&c, INLAY_CH), 0x77);
    assert_int_equal(get(&c, INLAY_PF), 1);
    assert_int_equal(get(&c, INLAY_CF), 0);
    assert_int_equal(get(&c, INLAY_RIP), 0x1234);
    assert_int_equal(get(&c, INLAY_GS_BASE), 9);
    set(&c, INLAY_CH, 0xaa);
    assert_true(c.gpr[INLAY_RCX] == 0x112233445566aa88);
    set(&c, INLAY_ECX, 5);
    assert_true(c.gpr[INLAY_RCX] == 5);
    set(&c, INLAY_CF, 1);
    set(&c, INLAY_ZF, 0);
    assert_int_equal(c.flags, 0x207);
}

/* A state in which there is nothing yet, with rubbish where the parts lie. */
static void from_the_start(void **arg)
{
    (void)arg;
    inlay_context c = {.xsave = state};
    uint8_t bytes[64], zeros[64] = {0}, fives[64];
    memset(state, 0xee, sizeof state);
    memset(state + 512, 0, 64);
    memset(fives, 5, sizeof fives);
    assert_int_equal(get(&c, INLAY_X87_CONTROL), 0x37f);
    assert_int_equal(get(&c, INLAY_X87_TAG), 0xffff);
    assert_int_equal(get(&c, INLAY_MM0 + 3), 0);
    assert_int_equal(inlay_context_get(&c, INLAY_XMM0 + 9, bytes, 16), 16);
    assert_memory_equal(bytes, zeros, 16);
    assert_true(inlay_context_set(&c, INLAY_XMM0 + 9, fives, 16));
    assert_int_equal(inlay_context_get(&c, INLAY_XMM0 + 9, bytes, 16), 16);
    assert_memory_equal(bytes, fives, 16);
    assert_int_equal(inlay_context_get(&c, INLAY_XMM0 + 8, bytes, 16), 16);
    assert_memory_equal(bytes, zeros, 16);
    assert_int_equal(state[512], 2);
    if (!inlay_context_get(&c, INLAY_YMM0 + 9, bytes, 32)) return; /* this processor has none */
    assert_memory_equal(bytes, fives, 16);
    assert_memory_equal(bytes + 16, zeros, 16);
    assert_true(inlay_context_set(&c, INLAY_YMM0 + 2, fives, 32));
    assert_int_equal(inlay_context_get(&c, INLAY_YMM0 + 9, bytes, 32), 32);
    assert_memory_equal(bytes + 16, zeros, 16);
    assert_int_equal(state[512], 6);
}

/* The stack's top is at physical register 6. */
static void stack(void **arg)
{
    (void)arg;
    inlay_context c = {.xsave = state};
    long double one = 1, got = 0;
    memset(state, 0, sizeof state);
    state[512] = 1;
    set(&c, INLAY_X87_STATUS, 6 << 11);
    set(&c, INLAY_X87_TAG, 0x0fff);
    assert_int_equal(state[4], 0xc0);
    assert_int_equal(get(&c, INLAY_X87_TAG), 0x0fff);
    assert_true(inlay_context_set(&c, INLAY_ST0 + 1, &one, 10));
    assert_int_equal(inlay_context_get(&c, INLAY_ST0 + 1, &got, 10), 10);
    assert_true(got == 1);
    assert_true(get(&c, INLAY_MM0 + 7) == 1ull << 63);
    set(&c, INLAY_MM0 + 6, 3);
    assert_int_equal(state[32], 3);
}
#define OWN cmocka_unit_test(general), cmocka_unit_test(from_the_start), cmocka_unit_test(stack)
#else
static void general(void **arg)
{
    (void)arg;
    inlay_context c = {.gpr[INLAY_X3] = 0x1122334455667788, .flags = 0x60000000, .pc = 0x1234, .tls_base = 9};
    assert_int_equal(get(&c, INLAY_W0 + 3), 0x55667788);
    assert_int_equal(get(&c, INLAY_NZCV_Z), 1);
    assert_int_equal(get(&c, INLAY_NZCV_N), 0);
    assert_int_equal(get(&c, INLAY_A64_PC), 0x1234);
    assert_int_equal(get(&c, INLAY_TPIDR), 9);
    set(&c, INLAY_W0 + 3, 5);
    assert_int_equal(c.gpr[INLAY_X3], 5);
    set(&c, INLAY_NZCV_N, 1);
    assert_true(c.flags == 0xe0000000);
    set(&c, INLAY_XSP, 0x1000);
    assert_int_equal(c.gpr[INLAY_XSP], 0x1000);
}

static void vectors(void **arg)
{
    (void)arg;
    inlay_context c = {.vectors = state};
    uint8_t bytes[256], ones[16];
    memset(state, 0xee, sizeof state);
    memset(ones, 1, sizeof ones);
    assert_true(inlay_context_set(&c, INLAY_V0 + 31, ones, 16));
    assert_memory_equal(state + 31 * 16, ones, 16);
    set(&c, INLAY_S0 + 31, 0x12345678);
    assert_int_equal(get(&c, INLAY_D0 + 31), 0x12345678);
    assert_int_equal(get(&c, INLAY_B0 + 31), 0x78);
    set(&c, INLAY_FPSR, 3);
    set(&c, INLAY_FPCR, 4);
    assert_int_equal(state[512], 3);
    assert_int_equal(state[516], 4);
    assert_int_equal(inlay_context_get(&c, INLAY_Z0, bytes, sizeof bytes), 0);
}
#define OWN cmocka_unit_test(general), cmocka_unit_test(vectors)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_had), OWN};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
