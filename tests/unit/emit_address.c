/* Every address form through load, store, lea and the vector moves, against Zydis. */
#include "emit_check.h"

static const int64_t displacements[] = {0, 1, 2, 127, 128, -1, -127, -128, -129, 4096, 0x7fff, INT32_MIN, INT32_MAX};
#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef void visit(x86_addr a);

/* All registers as base and index, or none, with all scales, displacements and segments. */
static void each_address(visit *v)
{
    for (unsigned b = 0; b <= X86_REGS; b++)
        for (unsigned i = 0; i <= X86_REGS; i++)
            for (unsigned scale = 1; scale <= 8; scale *= 2)
                for (unsigned d = 0; d < COUNT(displacements); d++) {
                    x86_addr a = {b < X86_REGS ? (uint8_t)b : ISA_NO_REG,
                                  i < X86_REGS ? (uint8_t)i : ISA_NO_REG,
                                  (uint8_t)scale,
                                  X86_SEG_NONE,
                                  false,
                                  displacements[d]};
                    a.segment = (uint8_t)((b + i + d) % 3);
                    v(a);
                }
}

static bool is_encodable(const x86_addr *a)
{
    if (a->index != X86_RSP) return true;
    return a->scale == 1 && a->base != X86_RSP;
}

static void load_and_store(x86_addr a)
{
    static unsigned turn;
    unsigned reg = turn++ % X86_REGS, w = 1u << (turn / X86_REGS) % 4;
    x86_code c;
    emit_start(&c);
    x86_load(&c, w, reg, a);
    if (!is_encodable(&a)) {
        EMIT_CHECK_REFUSED(&c);
        return;
    }
    ZydisMnemonic load = w < 4 ? ZYDIS_MNEMONIC_MOVZX : ZYDIS_MNEMONIC_MOV;
    EMIT_CHECK(&c, load, is_reg(w == 8 ? 8 : 4, reg), is_mem(w, a));
    emit_start(&c);
    x86_store(&c, w, a, reg);
    EMIT_CHECK(&c, ZYDIS_MNEMONIC_MOV, is_mem(w, a), is_reg(w, reg));
    emit_start(&c);
    x86_lea(&c, reg, a);
    EMIT_CHECK(&c, ZYDIS_MNEMONIC_LEA, is_reg(8, reg), is_mem(0, a));
}

static void test_loads_and_stores(void **state)
{
    (void)state;
    each_address(load_and_store);
}

/* Length by Zydis' encoder of mov rdx, [a], or a large number where it has no such form. */
static unsigned zydis_length(const x86_addr *a)
{
    ZydisEncoderRequest r = {
        .machine_mode = ZYDIS_MACHINE_MODE_LONG_64, .mnemonic = ZYDIS_MNEMONIC_MOV, .operand_count = 2};
    r.operands[0].type = ZYDIS_OPERAND_TYPE_REGISTER;
    r.operands[0].reg.value = ZYDIS_REGISTER_RDX;
    r.operands[1].type = ZYDIS_OPERAND_TYPE_MEMORY;
    r.operands[1].mem.size = 8;
    r.operands[1].mem.displacement = a->disp;
    if (a->base != ISA_NO_REG) r.operands[1].mem.base = ZYDIS_REGISTER_RAX + a->base;
    if (a->index != ISA_NO_REG) {
        r.operands[1].mem.index = ZYDIS_REGISTER_RAX + a->index;
        r.operands[1].mem.scale = a->scale;
    }
    if (a->segment == X86_SEG_FS) r.prefixes = ZYDIS_ATTRIB_HAS_SEGMENT_FS;
    if (a->segment == X86_SEG_GS) r.prefixes = ZYDIS_ATTRIB_HAS_SEGMENT_GS;
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZyanUSize length = sizeof bytes;
    return ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&r, bytes, &length)) ? (unsigned)length : 99;
}

/* The best of all ways to write the address. */
static unsigned best_length(x86_addr a)
{
    unsigned best = zydis_length(&a);
    x86_addr other[3] = {a, a, a};
    if (a.index == ISA_NO_REG) return best;
    if (a.scale == 1) { /* exchanged; covers an index alone */
        other[0].base = a.index;
        other[0].index = a.base;
    }
    if (a.scale == 2 && a.base == ISA_NO_REG) {
        other[1].base = a.index;
        other[1].scale = 1;
    }
    for (unsigned i = 0; i < COUNT(other); i++) {
        unsigned n = zydis_length(&other[i]);
        if (n < best) best = n;
    }
    return best;
}

static void shortest(x86_addr a)
{
    if (!is_encodable(&a)) return;
    x86_code c;
    emit_start(&c);
    x86_load(&c, 8, X86_RDX, a);
    if (c.at > best_length(a))
        fail_msg("base %u index %u scale %u disp %lld: %zu bytes, %u would do", a.base, a.index, a.scale,
                 (long long)a.disp, c.at, best_length(a));
}

static void test_no_shorter_address_exists(void **state)
{
    (void)state;
    each_address(shortest);
}

static void vectors(x86_addr a)
{
    static unsigned turn;
    if (!is_encodable(&a)) return;
    unsigned reg = turn++ % 32, bytes = 16u << (turn / 32) % 3;
    bool legacy = bytes == 16 && reg < 16;
    ZydisMnemonic m = legacy ? ZYDIS_MNEMONIC_MOVUPS : ZYDIS_MNEMONIC_VMOVUPS;
    /* Under EVEX Zydis lists the write mask k0 as an operand of its own, between the two. */
    bool evex = bytes == 64 || reg >= 16;
    emit_operand v = is_vec(bytes, reg), p = is_mem(bytes, a);
    for (unsigned store = 0; store < 2; store++) {
        x86_code c;
        emit_start(&c);
        if (store) x86_vec_store(&c, bytes, a, reg);
        else x86_vec_load(&c, bytes, reg, a);
        emit_decoded d = emit_decode(&c, 0);
        unsigned last = d.insn.operand_count_visible - 1u;
        assert_int_equal(d.insn.mnemonic, m);
        assert_int_equal(last, evex ? 2 : 1);
        assert_true(emit_operand_is(&d, 0, store ? &p : &v, c.exec));
        assert_true(emit_operand_is(&d, last, store ? &v : &p, c.exec));
        if (evex) {
            assert_int_equal(d.operands[1].reg.value, ZYDIS_REGISTER_K0);
            assert_int_equal(d.insn.avx.mask.mode == ZYDIS_MASK_MODE_DISABLED, 1);
        }
    }
}

static void test_vector_moves(void **state)
{
    (void)state;
    each_address(vectors);
}

/* EVEX counts an 8-bit displacement in vectors. */
static void test_evex_scales_short_displacements(void **state)
{
    (void)state;
    for (int64_t disp = -70 * 64; disp <= 70 * 64; disp += 16) {
        x86_addr a = x86_at(X86_RBX, (int32_t)disp);
        x86_code c;
        emit_start(&c);
        x86_vec_load(&c, 64, 3, a);
        emit_decoded d = emit_decode(&c, 0);
        emit_operand expected = is_mem(64, a);
        assert_true(emit_operand_is(&d, d.insn.operand_count_visible - 1u, &expected, c.exec));
        bool scaled = disp % 64 == 0 && disp / 64 >= -128 && disp / 64 <= 127;
        assert_int_equal(c.at, disp == 0 ? 6 : scaled ? 7 : 10);
    }
}

/* The displacement counts from the end of the instruction, immediates included. */
static void test_rip_relative_with_immediates(void **state)
{
    (void)state;
    x86_addr a = x86_rip(EMIT_EXEC + 0x123456);
    EACH_WIDTH(w)
    {
        for (int64_t imm = -0x12345; imm <= 0x12345; imm += 0x2468) {
            x86_code c;
            emit_start(&c);
            assert_true(x86_store_imm(&c, w, a, imm));
            EMIT_CHECK(&c, ZYDIS_MNEMONIC_MOV, is_mem(w, a), is_imm(w, (uint64_t)imm));
            emit_start(&c);
            assert_true(x86_alu_mi(&c, X86_CMP, w, a, imm));
            EMIT_CHECK(&c, ZYDIS_MNEMONIC_CMP, is_mem(w, a), is_imm(w, (uint64_t)imm));
        }
    }
    x86_code c;
    emit_start(&c);
    a.segment = X86_SEG_GS;
    x86_inc_m(&c, 8, a);
    EMIT_CHECK(&c, ZYDIS_MNEMONIC_INC, is_mem(8, a));
}

/* `target` from an 8-byte instruction: mov rax, [rip + d] is 7 bytes. */
static bool reaches(uint64_t exec, uint64_t target)
{
    x86_code c;
    emit_start(&c);
    c.exec = exec;
    x86_load(&c, 8, X86_RAX, x86_rip(target));
    assert_int_equal(c.at, c.unreachable ? 0 : 7);
    return !c.unreachable;
}

static void test_rip_reach(void **state)
{
    (void)state;
    uint64_t exec = 0x7f0000000000, end = exec + 7;
    assert_true(reaches(exec, end + INT32_MAX));
    assert_false(reaches(exec, end + INT32_MAX + 1u));
    assert_true(reaches(exec, end - 0x80000000u));
    assert_false(reaches(exec, end - 0x80000001u));
    assert_false(reaches(exec, 0x400000));
    assert_true(reaches(0x1000, 0xfffffffffffff000u)); /* across zero, as the processor counts */
}

static void test_addresses_without_encoding(void **state)
{
    (void)state;
    x86_addr wrong[] = {
        x86_at(16, 0),
        x86_indexed(X86_RAX, 16, 1, 0),
        x86_indexed(X86_RAX, X86_RSP, 2, 0),
        x86_indexed(X86_RSP, X86_RSP, 1, 0),
        x86_indexed(X86_RAX, X86_RBX, 3, 0),
        {X86_RAX, ISA_NO_REG, 1, 3, false, 0},
        {X86_RAX, ISA_NO_REG, 1, 0, true, EMIT_EXEC},
        {X86_RAX, ISA_NO_REG, 1, 0, false, (int64_t)INT32_MAX + 1},
        {ISA_NO_REG, ISA_NO_REG, 1, X86_SEG_GS, false, (int64_t)INT32_MIN - 1},
    };
    for (unsigned i = 0; i < COUNT(wrong); i++) {
        x86_code c;
        emit_start(&c);
        x86_load(&c, 8, X86_RAX, wrong[i]);
        EMIT_CHECK_REFUSED(&c);
        x86_vec_load(&c, 32, 1, wrong[i]);
        EMIT_CHECK_REFUSED(&c);
        x86_vec_load(&c, 64, 1, wrong[i]);
        EMIT_CHECK_REFUSED(&c);
    }
    x86_code c;
    emit_start(&c);
    x86_vec_load(&c, 8, 1, x86_at(X86_RAX, 0));
    EMIT_CHECK_REFUSED(&c);
    x86_vec_load(&c, 32, 32, x86_at(X86_RAX, 0));
    EMIT_CHECK_REFUSED(&c);
}

static void test_constructors(void **state)
{
    (void)state;
    x86_code c;
    emit_start(&c);
    x86_load(&c, 8, X86_R9, x86_gs(0x28));
    const uint8_t expected[] = {0x65, 0x4c, 0x8b, 0x0c, 0x25, 0x28, 0, 0, 0};
    assert_int_equal(c.at, sizeof expected);
    assert_memory_equal(c.write, expected, sizeof expected);
    emit_start(&c);
    x86_load(&c, 4, X86_RAX, x86_abs(-8));
    EMIT_CHECK(&c, ZYDIS_MNEMONIC_MOV, is_reg(4, X86_RAX), is_mem(4, x86_abs(-8)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores),
        cmocka_unit_test(test_no_shorter_address_exists),
        cmocka_unit_test(test_vector_moves),
        cmocka_unit_test(test_evex_scales_short_displacements),
        cmocka_unit_test(test_rip_relative_with_immediates),
        cmocka_unit_test(test_rip_reach),
        cmocka_unit_test(test_addresses_without_encoding),
        cmocka_unit_test(test_constructors),
    };
    return cmocka_run_group_tests_name("emit: addresses", tests, NULL, NULL);
}
