/* Emitted code that runs: what no decoder tells, such as that constants keep the flags, that
 * narrowed instructions set the same flags, and that bound labels and patched jumps arrive. The
 * page has two views, a writable and an executable one, as code memory has in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "isa/x86_64/emit.h"

enum { PAGE = 4096 };
static uint8_t *writable, *executable;

static int map_page(void **state)
{
    (void)state;
    int fd = memfd_create("emit", 0);
    if (fd < 0 || ftruncate(fd, PAGE)) return -1;
    writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    executable = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    close(fd);
    return writable == MAP_FAILED || executable == MAP_FAILED ? -1 : 0;
}

static int unmap_page(void **state)
{
    (void)state;
    munmap(writable, PAGE);
    munmap(executable, PAGE);
    return 0;
}

static void start(x86_code *c)
{
    memset(writable, 0xcc, PAGE);
    *c = (x86_code){.write = writable, .exec = (uint64_t)executable, .size = PAGE};
}

/* Called as the C function uint64_t f(a, b, c): rdi, rsi, rdx in, rax out. */
static uint64_t run(const x86_code *c, uint64_t a, uint64_t b, uint64_t d)
{
    assert_false(c->full || c->unreachable);
    __builtin___clear_cache((char *)executable, (char *)executable + PAGE);
    uint64_t (*f)(uint64_t, uint64_t, uint64_t);
    memcpy(&f, &executable, sizeof f);
    return f(a, b, d);
}

static void test_constants_keep_flags(void **state)
{
    (void)state;
    static const uint64_t values[] = {0,          1,         0xffffffff,  0x80000000,
                                      UINT64_MAX, INT64_MAX, 0x100000000, 0xffffffff80000000};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        x86_code c;
        start(&c);
        x86_alu_ri(&c, X86_CMP, 8, X86_RDI, 5);
        x86_mov_ri(&c, X86_RAX, values[i]);
        x86_label equal = x86_jcc_label(&c, X86_E, 1);
        x86_not(&c, 8, X86_RAX);
        assert_true(x86_bind(&c, equal));
        x86_ret(&c);
        assert_int_equal(run(&c, 5, 0, 0), values[i]);
        assert_int_equal(run(&c, 6, 0, 0), ~values[i]);
    }
}

/* (value op immediate, or test) in w bytes; arithmetic flags in the upper half of the answer. */
static uint64_t flags_after(bool narrow, bool and, int32_t imm, uint64_t value)
{
    x86_code c;
    start(&c);
    x86_mov_rr(&c, 8, X86_RAX, X86_RDI);
    if (!narrow) {
        x86_mov_ri(&c, X86_RCX, (uint64_t)(int64_t)imm);
        if (and) x86_alu_rr(&c, X86_AND, 8, X86_RAX, X86_RCX);
        if (!and) x86_test_rr(&c, 8, X86_RAX, X86_RCX);
    } else if (and) {
        x86_alu_ri(&c, X86_AND, 8, X86_RAX, imm);
    } else {
        x86_test_ri(&c, 8, X86_RAX, imm);
    }
    x86_pushf(&c);
    x86_store(&c, 8, x86_at(X86_RSI, 0), X86_RAX);
    x86_pop(&c, X86_RAX);
    x86_ret(&c);
    uint64_t result;
    uint64_t flags = run(&c, value, (uint64_t)&result, 0);
    flags &= X86_CF | X86_PF | X86_ZF | X86_SF | X86_OF;
    return flags ^ (result * 0x9e3779b97f4a7c15u & ~(uint64_t)0xffff);
}

static void test_narrowed_instructions_set_the_same_flags(void **state)
{
    (void)state;
    static const int32_t masks[] = {0, 1, 0x7f, 0x80, 0xff, 0x1234, INT32_MAX, INT32_MIN, -1, -128};
    static const uint64_t values[] = {0, 1, 0x80, 0x7f, 0x80000000, UINT64_MAX, 0x8000000000000000, 0x8000000012345678};
    for (unsigned m = 0; m < sizeof masks / sizeof *masks; m++)
        for (unsigned v = 0; v < sizeof values / sizeof *values; v++)
            for (unsigned and = 0; and < 2; and++)
                assert_int_equal(flags_after(true, and, masks[m], values[v]),
                                 flags_after(false, and, masks[m], values[v]));
}

static void test_exchange_of_eax_with_itself_clears_its_upper_half(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_mov_ri(&c, X86_RAX, UINT64_MAX);
    x86_xchg_rr(&c, 4, X86_RAX, X86_RAX);
    x86_ret(&c);
    assert_int_equal(run(&c, 0, 0, 0), 0xffffffff);
}

/* sum of 1..n by a loop: a label out of it, a jump back to an address. */
static void test_loop_with_labels(void **state)
{
    (void)state;
    for (unsigned width = 1; width <= 4; width += 3) {
        x86_code c;
        start(&c);
        x86_mov_ri(&c, X86_RAX, 0);
        uint64_t top = x86_here(&c);
        x86_test_rr(&c, 8, X86_RDI, X86_RDI);
        x86_label out = x86_jcc_label(&c, X86_E, width);
        x86_alu_rr(&c, X86_ADD, 8, X86_RAX, X86_RDI);
        x86_alu_ri(&c, X86_SUB, 8, X86_RDI, 1);
        assert_true(x86_jmp_to(&c, top));
        assert_true(x86_bind(&c, out));
        x86_ret(&c);
        assert_int_equal(run(&c, 100, 0, 0), 5050);
        assert_int_equal(run(&c, 0, 0, 0), 0);
    }
}

static void test_jrcxz(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_mov_rr(&c, 8, X86_RCX, X86_RDI);
    x86_label zero = x86_jrcxz_label(&c);
    x86_mov_ri(&c, X86_RAX, 1);
    x86_ret(&c);
    assert_true(x86_bind(&c, zero));
    x86_mov_ri(&c, X86_RAX, 2);
    x86_ret(&c);
    assert_int_equal(run(&c, 0, 0, 0), 2);
    assert_int_equal(run(&c, 1, 0, 0), 1);
    assert_int_equal(run(&c, 0x100000000, 0, 0), 1);
}

static void test_patched_jump(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_nop(&c, 6);
    uint64_t end = x86_here(&c) + 64;
    size_t jump = x86_jmp_rel32(&c, end, true);
    x86_align(&c, 64);
    uint64_t first = x86_here(&c);
    x86_mov_ri(&c, X86_RAX, 1);
    x86_ret(&c);
    uint64_t second = x86_here(&c);
    x86_mov_ri(&c, X86_RAX, 2);
    x86_ret(&c);
    for (int i = 0; i < 3; i++) {
        assert_true(x86_patch_rel32(writable + jump, (uint64_t)executable + jump, first));
        assert_int_equal(run(&c, 0, 0, 0), 1);
        assert_true(x86_patch_rel32(writable + jump, (uint64_t)executable + jump, second));
        assert_int_equal(run(&c, 0, 0, 0), 2);
    }
}

static void test_rip_relative_data(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    uint64_t data = (uint64_t)executable + 2048;
    x86_alu_mi(&c, X86_CMP, 4, x86_rip(data), 0x12345678);
    x86_setcc(&c, X86_E, X86_RAX);
    x86_movzx_rr(&c, 1, X86_RAX, X86_RAX);
    x86_load_sx(&c, 2, X86_RCX, x86_rip(data + 4));
    x86_alu_rr(&c, X86_ADD, 8, X86_RAX, X86_RCX);
    x86_ret(&c);
    memcpy(writable + 2048, (const uint8_t[]){0x78, 0x56, 0x34, 0x12, 0xfe, 0xff}, 6);
    assert_int_equal(run(&c, 0, 0, 0), (uint64_t)-1);
}

static void test_byte_registers(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_mov_ri(&c, X86_RAX, 0x1111111111111111);
    x86_mov_rr(&c, 1, X86_RAX, X86_RDI); /* dil, not bh */
    x86_alu_rr(&c, X86_ADD, 1, X86_RAX, X86_RSI);
    x86_ret(&c);
    assert_int_equal(run(&c, 0x2220, 0x3303, 0), 0x1111111111111123);
}

/* push, pop, call, flags, and saved vectors around a call through memory. */
static void test_stack_and_calls(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_push(&c, X86_RBX);
    x86_push_i(&c, -7);
    x86_pop(&c, X86_RBX);
    x86_store(&c, 8, x86_at(X86_RSI, 0), X86_RBX);
    x86_push_m(&c, x86_at(X86_RSI, 0));
    x86_pop_m(&c, x86_at(X86_RSI, 8));
    x86_vec_store(&c, 16, x86_at(X86_RSI, 16), 3);
    size_t call = c.at;
    x86_call_to(&c, x86_here(&c));
    x86_vec_load(&c, 16, 3, x86_at(X86_RSI, 16));
    x86_pop(&c, X86_RBX);
    x86_ret(&c);
    uint64_t routine = x86_here(&c);
    x86_load(&c, 8, X86_RAX, x86_at(X86_RSI, 8));
    x86_shift_ri(&c, X86_SHL, 8, X86_RAX, 1);
    x86_imul_rr(&c, 8, X86_RAX, X86_RDI);
    x86_ret(&c);
    assert_true(x86_patch_rel32(writable + call + 1, c.exec + call + 1, routine));
    uint64_t slots[8] = {0};
    assert_int_equal(run(&c, 3, (uint64_t)slots, 0), (uint64_t)-42);
    assert_int_equal(slots[1], (uint64_t)-7);
}

static void test_locked_counter(void **state)
{
    (void)state;
    x86_code c;
    start(&c);
    x86_mov_rr(&c, 8, X86_RAX, X86_RSI);
    x86_lock_xadd(&c, 8, x86_at(X86_RDI, 0), X86_RAX);
    x86_inc_m(&c, 8, x86_indexed(X86_RDI, ISA_NO_REG, 1, 8));
    x86_inc_m(&c, 4, x86_indexed(X86_RDI, X86_RDX, 2, 16));
    x86_ret(&c);
    uint64_t slots[4] = {40, 6, 0, 8};
    assert_int_equal(run(&c, (uint64_t)slots, 2, 4), 40);
    assert_int_equal(slots[0], 42);
    assert_int_equal(slots[1], 7);
    assert_int_equal(slots[3], 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_keep_flags),
        cmocka_unit_test(test_narrowed_instructions_set_the_same_flags),
        cmocka_unit_test(test_exchange_of_eax_with_itself_clears_its_upper_half),
        cmocka_unit_test(test_loop_with_labels),
        cmocka_unit_test(test_jrcxz),
        cmocka_unit_test(test_patched_jump),
        cmocka_unit_test(test_rip_relative_data),
        cmocka_unit_test(test_byte_registers),
        cmocka_unit_test(test_stack_and_calls),
        cmocka_unit_test(test_locked_counter),
    };
    return cmocka_run_group_tests_name("emit: running code", tests, map_page, unmap_page);
}
