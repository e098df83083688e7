/* Every integer instruction of the emitter with all registers and sizes, and with a spread of
 * addresses and immediates, against Zydis; lengths against Zydis' encoder. */
#include "emit_check.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const int64_t immediates[] = {
    0,       1,         -1,        2,          7,          63,     127,        128,        -127,
    -128,    -129,      255,       256,        0x7fff,     0x8000, -0x8000,    -0x8001,    0xffff,
    0x10000, INT32_MAX, INT32_MIN, 0x80000000, UINT32_MAX, -2,     0x12345678, 0x7ffffffe, -0x345678,
};
static const int64_t too_large[] = {(int64_t)UINT32_MAX + 1, (int64_t)INT32_MIN - 1, INT64_MAX, INT64_MIN};

/* What an immediate comes to in an operand of w bytes. */
static bool is_representable(unsigned w, int64_t imm)
{
    return w < 8 ? imm >= INT32_MIN && imm <= UINT32_MAX : imm == (int32_t)imm;
}

/* Instructions with two registers. */

static void test_moves_between_registers(void **state)
{
    (void)state;
    x86_code c;
    EACH_WIDTH(w) EACH_REG(a) EACH_REG(b)
    {
        emit_start(&c);
        x86_mov_rr(&c, w, a, b);
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_MOV, is_reg(w, a), is_reg(w, b));
        EMIT_CHECK_SHORT(&c);
        emit_start(&c);
        x86_test_rr(&c, w, a, b);
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_TEST, is_reg(w, a), is_reg(w, b));
        EMIT_CHECK_SHORT(&c);
    }
}

static void test_extensions(void **state)
{
    (void)state;
    x86_code c;
    EACH_WIDTH(w) EACH_REG(a) EACH_REG(b)
    {
        emit_start(&c);
        x86_movzx_rr(&c, w, a, b);
        unsigned to = w == 8 ? 8 : 4;
        EMIT_CHECK(&c, w < 4 ? ZYDIS_MNEMONIC_MOVZX : ZYDIS_MNEMONIC_MOV, is_reg(to, a), is_reg(w, b));
        emit_start(&c);
        x86_movsx_rr(&c, w, a, b);
        static const ZydisMnemonic m[] = {[1] = ZYDIS_MNEMONIC_MOVSX,
                                          [2] = ZYDIS_MNEMONIC_MOVSX,
                                          [4] = ZYDIS_MNEMONIC_MOVSXD,
                                          [8] = ZYDIS_MNEMONIC_MOV};
        EMIT_CHECK(&c, m[w], is_reg(8, a), is_reg(w, b));
    }
}

static void test_sign_extending_loads(void **state)
{
    (void)state;
    static const ZydisMnemonic m[] = {
        [1] = ZYDIS_MNEMONIC_MOVSX, [2] = ZYDIS_MNEMONIC_MOVSX, [4] = ZYDIS_MNEMONIC_MOVSXD, [8] = ZYDIS_MNEMONIC_MOV};
    unsigned n;
    const x86_addr *a = emit_addresses(&n);
    x86_code c;
    EACH_WIDTH(w) EACH_REG(r) for (unsigned i = r % 7; i < n; i += 7)
    {
        emit_start(&c);
        x86_load_sx(&c, w, r, a[i]);
        EMIT_CHECK(&c, m[w], is_reg(8, r), is_mem(w, a[i]));
    }
}

static void test_exchange(void **state)
{
    (void)state;
    x86_code c;
    EACH_WIDTH(w) EACH_REG(a) EACH_REG(b)
    {
        emit_start(&c);
        x86_xchg_rr(&c, w, a, b);
        emit_decoded d = emit_decode(&c, 0);
        if (a == X86_RAX && b == X86_RAX && (w == 2 || w == 8)) {
            assert_int_equal(d.insn.opcode, 0x90); /* a nop is right: no part is cleared */
            continue;
        }
        emit_operand first = is_reg(w, a), second = is_reg(w, b);
        bool straight = emit_operand_is(&d, 0, &first, 0) && emit_operand_is(&d, 1, &second, 0);
        bool swapped = emit_operand_is(&d, 0, &second, 0) && emit_operand_is(&d, 1, &first, 0);
        assert_int_equal(d.insn.mnemonic, ZYDIS_MNEMONIC_XCHG);
        assert_true(straight || swapped);
        bool both = a == X86_RAX && b == X86_RAX;
        if (w > 1 && !both && (a == X86_RAX || b == X86_RAX))
            assert_int_equal(c.at, (w == 2) + (w == 8 || a > 7 || b > 7) + 1);
    }
}

static const ZydisMnemonic alu_names[] = {
    [X86_ADD] = ZYDIS_MNEMONIC_ADD, [X86_OR] = ZYDIS_MNEMONIC_OR,   [X86_ADC] = ZYDIS_MNEMONIC_ADC,
    [X86_SBB] = ZYDIS_MNEMONIC_SBB, [X86_AND] = ZYDIS_MNEMONIC_AND, [X86_SUB] = ZYDIS_MNEMONIC_SUB,
    [X86_XOR] = ZYDIS_MNEMONIC_XOR, [X86_CMP] = ZYDIS_MNEMONIC_CMP,
};
#define EACH_ALU(op) for (x86_alu op = X86_ADD; op <= X86_CMP; op++)

static void test_alu_registers(void **state)
{
    (void)state;
    x86_code c;
    EACH_ALU(op) EACH_WIDTH(w) EACH_REG(a) EACH_REG(b)
    {
        emit_start(&c);
        x86_alu_rr(&c, op, w, a, b);
        EMIT_CHECK(&c, alu_names[op], is_reg(w, a), is_reg(w, b));
        EMIT_CHECK_SHORT(&c);
    }
}

static void test_alu_memory(void **state)
{
    (void)state;
    unsigned n;
    const x86_addr *a = emit_addresses(&n);
    x86_code c;
    EACH_ALU(op) EACH_WIDTH(w) EACH_REG(r) for (unsigned i = (r + op) % 13; i < n; i += 13)
    {
        emit_start(&c);
        x86_alu_rm(&c, op, w, r, a[i]);
        EMIT_CHECK(&c, alu_names[op], is_reg(w, r), is_mem(w, a[i]));
        emit_start(&c);
        x86_alu_mr(&c, op, w, a[i], r);
        EMIT_CHECK(&c, alu_names[op], is_mem(w, a[i]), is_reg(w, r));
    }
}

static void check_alu_ri(x86_alu op, unsigned w, unsigned r, int64_t imm)
{
    x86_code c;
    emit_start(&c);
    bool ok = x86_alu_ri(&c, op, w, r, imm);
    assert_int_equal(ok, is_representable(w, imm));
    assert_int_equal(ok, c.at != 0);
    if (!ok) return;
    /* An AND with a mask of 31 bits may be done in the lower half. */
    unsigned size = op == X86_AND && w == 8 && imm >= 0 ? 4 : w;
    EMIT_CHECK(&c, alu_names[op], is_reg(size, r), is_imm(w, (uint64_t)imm));
    EMIT_CHECK_SHORT(&c);
}

static void test_alu_immediates(void **state)
{
    (void)state;
    EACH_ALU(op) EACH_WIDTH(w) EACH_REG(r)
    {
        for (unsigned i = 0; i < COUNT(immediates); i++) check_alu_ri(op, w, r, immediates[i]);
        for (unsigned i = 0; i < COUNT(too_large); i++) check_alu_ri(op, w, r, too_large[i]);
        for (int64_t imm = -300; imm <= 300; imm++) check_alu_ri(op, w, r, imm);
    }
}

static void test_memory_immediates(void **state)
{
    (void)state;
    unsigned n;
    const x86_addr *a = emit_addresses(&n);
    x86_code c;
    EACH_ALU(op) EACH_WIDTH(w) for (unsigned i = 0; i < n; i++)
    {
        int64_t imm = immediates[(i + op) % COUNT(immediates)];
        bool fits = is_representable(w, imm);
        emit_start(&c);
        assert_int_equal(x86_alu_mi(&c, op, w, a[i], imm), fits);
        if (fits) EMIT_CHECK(&c, alu_names[op], is_mem(w, a[i]), is_imm(w, (uint64_t)imm));
        emit_start(&c);
        assert_int_equal(x86_store_imm(&c, w, a[i], imm), fits);
        if (fits) EMIT_CHECK(&c, ZYDIS_MNEMONIC_MOV, is_mem(w, a[i]), is_imm(w, (uint64_t)imm));
        if (!fits) assert_int_equal(c.at, 0);
    }
    emit_start(&c);
    for (unsigned i = 0; i < COUNT(too_large); i++) EACH_WIDTH(w)
        {
            assert_false(x86_store_imm(&c, w, a[0], too_large[i]));
            assert_false(x86_alu_mi(&c, X86_ADD, w, a[0], too_large[i]));
        }
    assert_int_equal(c.at, 0);
}

static void check_mov_ri(unsigned r, uint64_t imm)
{
    x86_code c;
    emit_start(&c);
    x86_mov_ri(&c, r, imm);
    emit_decoded d = emit_decode(&c, 0);
    assert_int_equal(d.insn.mnemonic, ZYDIS_MNEMONIC_MOV);
    bool low = imm <= UINT32_MAX, extended = (int64_t)imm == (int32_t)imm;
    unsigned w = low ? 4 : 8; /* a 32-bit destination is zero-extended */
    emit_operand reg = is_reg(w, r), value = is_imm(w, imm);
    assert_true(emit_operand_is(&d, 0, &reg, 0));
    assert_true(emit_operand_is(&d, 1, &value, 0));
    assert_int_equal(c.at, low ? 5 + (r > 7) : extended ? 7 : 10);
}

static void test_constants(void **state)
{
    (void)state;
    EACH_REG(r)
    {
        for (unsigned i = 0; i < COUNT(immediates); i++) check_mov_ri(r, (uint64_t)immediates[i]);
        for (unsigned bit = 0; bit < 64; bit++)
            for (int add = -1; add <= 1; add++) {
                check_mov_ri(r, ((uint64_t)1 << bit) + (uint64_t)add);
                check_mov_ri(r, -((uint64_t)1 << bit) + (uint64_t)add);
            }
    }
}

/* Flags of a test with `mask` in `w` bytes, as a function of the register's value. */
static unsigned test_flags(unsigned w, uint64_t value, uint64_t mask)
{
    uint64_t r = value & mask, keep = w == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * w) - 1;
    r &= keep;
    return (r == 0) | (unsigned)(r >> (8 * w - 1) & 1) << 1 | (unsigned)__builtin_parity((unsigned)(r & 0xff)) << 2;
}

static void check_test_ri(unsigned w, unsigned r, int32_t imm)
{
    x86_code c;
    emit_start(&c);
    x86_test_ri(&c, w, r, imm);
    emit_decoded d = emit_decode(&c, 0);
    assert_int_equal(d.insn.mnemonic, ZYDIS_MNEMONIC_TEST);
    unsigned done = d.operands[0].size / 8u;
    assert_true(done >= 1 && done <= w);
    emit_operand reg = is_reg(done, r), value = is_imm(done, (uint64_t)imm);
    assert_true(emit_operand_is(&d, 0, &reg, 0));
    assert_true(emit_operand_is(&d, 1, &value, 0));
    EMIT_CHECK_SHORT(&c);
    uint64_t wide = (uint64_t)(int64_t)imm, x = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 32; i++, x = x * 0x9e3779b97f4a7c15u + 1) {
        assert_int_equal(test_flags(w, x, wide), test_flags(done, x, wide));
        assert_int_equal(test_flags(w, ~wide, wide), test_flags(done, ~wide, wide));
    }
}

static void test_tests(void **state)
{
    (void)state;
    EACH_WIDTH(w) EACH_REG(r)
    {
        for (int32_t imm = -300; imm <= 300; imm++) check_test_ri(w, r, imm);
        for (unsigned i = 0; i < COUNT(immediates); i++) check_test_ri(w, r, (int32_t)immediates[i]);
    }
}

/* Instructions with one register, as a table: name, emitter with (w, reg), sizes. */

static void emit_div(x86_code *c, unsigned w, unsigned r) { x86_div_r(c, w, r, false); }
static void emit_idiv(x86_code *c, unsigned w, unsigned r) { x86_div_r(c, w, r, true); }
static void emit_push(x86_code *c, unsigned w, unsigned r) { (void)w, x86_push(c, r); }
static void emit_pop(x86_code *c, unsigned w, unsigned r) { (void)w, x86_pop(c, r); }
static void emit_rdfs(x86_code *c, unsigned w, unsigned r) { (void)w, x86_rdfsbase(c, r); }
static void emit_wrfs(x86_code *c, unsigned w, unsigned r) { (void)w, x86_wrfsbase(c, r); }
static void emit_rdgs(x86_code *c, unsigned w, unsigned r) { (void)w, x86_rdgsbase(c, r); }
static void emit_jmp(x86_code *c, unsigned w, unsigned r) { (void)w, x86_jmp_r(c, r); }
static void emit_call(x86_code *c, unsigned w, unsigned r) { (void)w, x86_call_r(c, r); }

static const struct {
    ZydisMnemonic name;
    void (*emit)(x86_code *, unsigned w, unsigned reg);
    unsigned sizes; /* sum of the widths it has */
} unary[] = {
    {ZYDIS_MNEMONIC_NEG, x86_neg, 1 | 2 | 4 | 8},
    {ZYDIS_MNEMONIC_NOT, x86_not, 1 | 2 | 4 | 8},
    {ZYDIS_MNEMONIC_MUL, x86_mul_r, 1 | 2 | 4 | 8},
    {ZYDIS_MNEMONIC_DIV, emit_div, 1 | 2 | 4 | 8},
    {ZYDIS_MNEMONIC_IDIV, emit_idiv, 1 | 2 | 4 | 8},
    {ZYDIS_MNEMONIC_BSWAP, x86_bswap, 4 | 8},
    {ZYDIS_MNEMONIC_PUSH, emit_push, 8},
    {ZYDIS_MNEMONIC_POP, emit_pop, 8},
    {ZYDIS_MNEMONIC_RDFSBASE, emit_rdfs, 8},
    {ZYDIS_MNEMONIC_WRFSBASE, emit_wrfs, 8},
    {ZYDIS_MNEMONIC_RDGSBASE, emit_rdgs, 8},
    {ZYDIS_MNEMONIC_JMP, emit_jmp, 8},
    {ZYDIS_MNEMONIC_CALL, emit_call, 8},
};

static void test_one_register(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(unary); i++) EACH_WIDTH(w) EACH_REG(r)
        {
            if (!(unary[i].sizes & w)) continue;
            x86_code c;
            emit_start(&c);
            unary[i].emit(&c, w, r);
            EMIT_CHECK(&c, unary[i].name, is_reg(w, r));
            EMIT_CHECK_SHORT(&c);
        }
}

/* Instructions with one memory operand. */

static void emit_pop_m(x86_code *c, unsigned w, x86_addr a) { (void)w, x86_pop_m(c, a); }
static void emit_push_m(x86_code *c, unsigned w, x86_addr a) { (void)w, x86_push_m(c, a); }
static void emit_jmp_m(x86_code *c, unsigned w, x86_addr a) { (void)w, x86_jmp_m(c, a); }
static void emit_call_m(x86_code *c, unsigned w, x86_addr a) { (void)w, x86_call_m(c, a); }

static const struct {
    ZydisMnemonic name;
    void (*emit)(x86_code *, unsigned w, x86_addr);
    unsigned sizes;
} unary_memory[] = {
    {ZYDIS_MNEMONIC_INC, x86_inc_m, 1 | 2 | 4 | 8},
    {ZYDIS_MNEMONIC_PUSH, emit_push_m, 8},
    {ZYDIS_MNEMONIC_POP, emit_pop_m, 8},
    {ZYDIS_MNEMONIC_JMP, emit_jmp_m, 8},
    {ZYDIS_MNEMONIC_CALL, emit_call_m, 8},
};

static void test_one_memory_operand(void **state)
{
    (void)state;
    unsigned n;
    const x86_addr *a = emit_addresses(&n);
    for (unsigned i = 0; i < COUNT(unary_memory); i++) EACH_WIDTH(w)
    for (unsigned k = 0; k < n; k++) {
        if (!(unary_memory[i].sizes & w)) continue;
        x86_code c;
        emit_start(&c);
        unary_memory[i].emit(&c, w, a[k]);
        EMIT_CHECK(&c, unary_memory[i].name, is_mem(w, a[k]));
    }
}

static void test_lock_xadd_and_bt(void **state)
{
    (void)state;
    unsigned n;
    const x86_addr *a = emit_addresses(&n);
    x86_code c;
    EACH_WIDTH(w) EACH_REG(r) for (unsigned i = r; i < n; i += 16)
    {
        emit_start(&c);
        x86_lock_xadd(&c, w, a[i], r);
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_XADD, is_mem(w, a[i]), is_reg(w, r));
        assert_true(emit_decode(&c, 0).insn.attributes & ZYDIS_ATTRIB_HAS_LOCK);
    }
    EACH_WIDE(w) for (unsigned bit = 0; bit < 8 * w; bit++)
    {
        emit_start(&c);
        x86_bt_mi(&c, w, a[bit % n], bit);
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_BT, is_mem(w, a[bit % n]), is_imm(1, bit));
    }
}

static void test_shifts(void **state)
{
    (void)state;
    static const struct {
        x86_shift op;
        ZydisMnemonic name;
    } shifts[] = {{X86_ROL, ZYDIS_MNEMONIC_ROL},
                  {X86_ROR, ZYDIS_MNEMONIC_ROR},
                  {X86_SHL, ZYDIS_MNEMONIC_SHL},
                  {X86_SHR, ZYDIS_MNEMONIC_SHR},
                  {X86_SAR, ZYDIS_MNEMONIC_SAR}};
    x86_code c;
    for (unsigned i = 0; i < COUNT(shifts); i++) EACH_WIDTH(w) EACH_REG(r)
        {
            for (unsigned n = 0; n < 64; n++) {
                emit_start(&c);
                x86_shift_ri(&c, shifts[i].op, w, r, n);
                EMIT_CHECK(&c, shifts[i].name, is_reg(w, r), is_imm(1, n));
                EMIT_CHECK_SHORT(&c);
            }
            emit_start(&c);
            x86_shift_cl(&c, shifts[i].op, w, r);
            EMIT_CHECK(&c, shifts[i].name, is_reg(w, r), is_reg(1, X86_RCX));
        }
}

static void test_multiply(void **state)
{
    (void)state;
    EACH_WIDE(w) EACH_REG(a) EACH_REG(b)
    {
        x86_code c;
        emit_start(&c);
        x86_imul_rr(&c, w, a, b);
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_IMUL, is_reg(w, a), is_reg(w, b));
        EMIT_CHECK_SHORT(&c);
        emit_start(&c);
        x86_popcnt(&c, w, a, b);
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_POPCNT, is_reg(w, a), is_reg(w, b));
    }
}

/* In the order of the condition codes. */
#define CONDITIONAL(p)                                                                                                 \
    {                                                                                                                  \
        p##O, p##NO, p##B, p##NB, p##Z, p##NZ, p##BE, p##NBE, p##S, p##NS, p##P, p##NP, p##L, p##NL, p##LE, p##NLE     \
    }

static void test_conditions(void **state)
{
    (void)state;
    static const ZydisMnemonic set[] = CONDITIONAL(ZYDIS_MNEMONIC_SET);
    static const ZydisMnemonic cmov[] = CONDITIONAL(ZYDIS_MNEMONIC_CMOV);
    unsigned n;
    const x86_addr *m = emit_addresses(&n);
    x86_code c;
    for (unsigned cond = X86_O; cond <= X86_G; cond++) {
        EACH_REG(r)
        {
            emit_start(&c);
            x86_setcc(&c, cond, r);
            EMIT_CHECK(&c, set[cond], is_reg(1, r));
        }
        for (unsigned i = cond; i < n; i += 16) {
            emit_start(&c);
            x86_setcc_m(&c, cond, m[i]);
            EMIT_CHECK(&c, set[cond], is_mem(1, m[i]));
        }
        EACH_WIDE(w) EACH_REG(a) EACH_REG(b)
        {
            emit_start(&c);
            x86_cmov(&c, cond, w, a, b);
            EMIT_CHECK(&c, cmov[cond], is_reg(w, a), is_reg(w, b));
        }
    }
}

static void test_push_immediate(void **state)
{
    (void)state;
    x86_code c;
    for (unsigned i = 0; i < COUNT(immediates); i++) {
        emit_start(&c);
        bool fits = is_representable(8, immediates[i]);
        assert_int_equal(x86_push_i(&c, immediates[i]), fits);
        if (!fits) continue;
        EMIT_CHECK(&c, ZYDIS_MNEMONIC_PUSH, is_imm(8, (uint64_t)immediates[i]));
        assert_int_equal(c.at, immediates[i] == (int8_t)immediates[i] ? 2 : 5);
    }
}

static const struct {
    void (*emit)(x86_code *);
    ZydisMnemonic name;
} plain[] = {
    {x86_pushf, ZYDIS_MNEMONIC_PUSHFQ}, {x86_popf, ZYDIS_MNEMONIC_POPFQ},  {x86_lahf, ZYDIS_MNEMONIC_LAHF},
    {x86_sahf, ZYDIS_MNEMONIC_SAHF},    {x86_rdtsc, ZYDIS_MNEMONIC_RDTSC}, {x86_ret, ZYDIS_MNEMONIC_RET},
    {x86_int3, ZYDIS_MNEMONIC_INT3},    {x86_ud2, ZYDIS_MNEMONIC_UD2},     {x86_syscall, ZYDIS_MNEMONIC_SYSCALL},
};

static void test_instructions_without_operands(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(plain); i++) {
        x86_code c;
        emit_start(&c);
        plain[i].emit(&c);
        EMIT_CHECK_PLAIN(&c, plain[i].name);
    }
}

#define REFUSED(...)                                                                                                   \
    do {                                                                                                               \
        emit_start(&c);                                                                                                \
        __VA_ARGS__;                                                                                                   \
        EMIT_CHECK_REFUSED(&c);                                                                                        \
    } while (0)

static void test_operands_without_encoding(void **state)
{
    (void)state;
    x86_code c;
    REFUSED(x86_mov_rr(&c, 8, 16, 0));
    REFUSED(x86_mov_rr(&c, 8, 0, ISA_NO_REG));
    REFUSED(x86_mov_rr(&c, 3, 0, 1));
    REFUSED(x86_mov_ri(&c, 16, 1));
    REFUSED(x86_load(&c, 16, 0, x86_at(0, 0)));
    REFUSED(x86_load_sx(&c, 0, 0, x86_at(0, 0)));
    REFUSED(x86_movzx_rr(&c, 5, 0, 1));
    REFUSED(x86_bswap(&c, 2, 0));
    REFUSED(x86_bswap(&c, 1, 0));
    REFUSED(x86_imul_rr(&c, 1, 0, 1));
    REFUSED(x86_cmov(&c, X86_E, 1, 0, 1));
    REFUSED(x86_bt_mi(&c, 1, x86_at(0, 0), 3));
    REFUSED(x86_bt_mi(&c, 4, x86_at(0, 0), 32));
    REFUSED(x86_xchg_rr(&c, 8, 0, 16));
    REFUSED(x86_test_ri(&c, 16, 0, 1));
    REFUSED(x86_push(&c, ISA_NO_REG));
    REFUSED(x86_jmp_r(&c, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_between_registers),
        cmocka_unit_test(test_extensions),
        cmocka_unit_test(test_sign_extending_loads),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_alu_registers),
        cmocka_unit_test(test_alu_memory),
        cmocka_unit_test(test_alu_immediates),
        cmocka_unit_test(test_memory_immediates),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_tests),
        cmocka_unit_test(test_one_register),
        cmocka_unit_test(test_one_memory_operand),
        cmocka_unit_test(test_lock_xadd_and_bt),
        cmocka_unit_test(test_shifts),
        cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_push_immediate),
        cmocka_unit_test(test_instructions_without_operands),
        cmocka_unit_test(test_operands_without_encoding),
    };
    return cmocka_run_group_tests_name("emit: integer instructions", tests, NULL, NULL);
}
