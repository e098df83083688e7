/* Elements of masked operands. Forms that any AVX2 machine has run natively and woven, and what the
 * snippets told (before and after) is compared with the registers. Of AVX-512 forms the woven code is
 * taken apart: the instructions that store mask and index, and the program's own, are checked by
 * decoding and then made nops; the rest runs on masks and indices that the test puts in place. */
#include "weave_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 64 };
typedef struct told_element {
    uint64_t active, address;
} told_element;
static told_element before[MOST], after[MOST];
static machine start, native, woven;

static snippet *node(unsigned kind, const snippet *a)
{
    snippet *s = snippet_new(&bench.arena, (snippet_kind)kind);
    s->a = a;
    return s;
}

static const snippet *element(unsigned kind, unsigned e)
{
    snippet *s = node(kind, NULL);
    s->value = e;
    return s;
}

static const snippet *store(uint64_t *to, const snippet *v)
{
    snippet *s = node(SNIPPET_STORE, gen_const((uintptr_t)to));
    s->b = v, s->size = 8;
    return s;
}

/* Tells whether element e is active, and its address if it is. */
static void tell(weave_run *run, weave_where where, unsigned e, told_element *to)
{
    const char *why;
    snippet *choice = node(SNIPPET_IF, element(SNIPPET_ELEMENT_ACTIVE, e));
    choice->b = store(&to[e].address, element(SNIPPET_ELEMENT_EA, e));
    const snippet *flag = store(&to[e].active, element(SNIPPET_ELEMENT_ACTIVE, e));
    if (!weave_insert_at(run, where, 0, flag, false, &why) || !weave_insert_at(run, where, 0, choice, false, &why))
        fail_msg("%s", why);
}

static weave_run *run_of(const uint8_t *bytes, size_t size, unsigned elements, isa_mem *m)
{
    isa_mem mem[ISA_MAX_MEM];
    const char *why;
    harness_catch_faults();
    weave_run *run = harness_run(bytes, size);
    assert_non_null(run);
    assert_int_equal(isa_x86_64.memory(&run->insns[0].in, mem), 1);
    *m = mem[0];
    assert_int_equal(m->mask ? m->elements : 1, elements);
    for (unsigned e = 0; e < elements; e++) {
        tell(run, WEAVE_BEFORE, e, before);
        tell(run, WEAVE_AFTER, e, after);
    }
    assert_false(weave_insert_at(run, WEAVE_BEFORE, 0, store(&before[0].active, element(SNIPPET_ELEMENT_EA, elements)),
                                 false, &why));
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    return run;
}

/* --- forms that run here: mask and index registers are known --- */
typedef struct form {
    const char *name;
    uint8_t bytes[8], size;
    unsigned elements, element, mask, index, index_size, scale;
    int disp;
    unsigned base;
} form;
enum { NO_INDEX = 99 };
static const form forms[] = {
    {"vgatherdps ymm5, [rbx+ymm1*4+8], ymm4", {0xc4, 0xe2, 0x5d, 0x92, 0x6c, 0x8b, 8}, 7, 8, 4, 4, 1, 4, 4, 8, X86_RBX},
    {"vpgatherqd xmm5, [rbx+ymm12], xmm4", {0xc4, 0xa2, 0x5d, 0x91, 0x2c, 0x23}, 6, 4, 4, 4, 12, 8, 1, 0, X86_RBX},
    {"vpmaskmovq ymm4, ymm4, [rbx+8]", {0xc4, 0xe2, 0xdd, 0x8c, 0x63, 8}, 6, 4, 8, 4, NO_INDEX, 0, 1, 8, X86_RBX},
    {"vmaskmovps [rbx], ymm4, ymm5", {0xc4, 0xe2, 0x5d, 0x2e, 0x2b}, 5, 8, 4, 4, NO_INDEX, 0, 1, 0, X86_RBX},
    {"maskmovdqu xmm1, xmm2", {0x66, 0x0f, 0xf7, 0xca}, 4, 16, 1, 2, NO_INDEX, 0, 1, 0, X86_RDI},
};

static void good_indices(const form *f)
{
    for (unsigned i = 0; f->index != NO_INDEX && i < 32 / f->index_size; i++) {
        int64_t v = (int64_t)(harness_random() % 200) - 100;
        memcpy(start.ymm[f->index] + i * f->index_size, &v, f->index_size);
    }
}

static void check_told(const form *f, const told_element *told)
{
    for (unsigned e = 0; e < f->elements; e++) {
        uint64_t index = 0, address = start.gpr[f->base] + (uint64_t)(int64_t)f->disp;
        if (f->index == NO_INDEX) {
            address += e * f->element;
        } else {
            memcpy(&index, start.ymm[f->index] + e * f->index_size, f->index_size);
            if (f->index_size == 4) index = (uint64_t)(int64_t)(int32_t)index;
            address += index * f->scale;
        }
        bool on = start.ymm[f->mask][(e + 1) * f->element - 1] >> 7;
        if (told[e].active != on || told[e].address != (on ? address : 0))
            fail_msg("%s: element %u: active %d, address %#lx instead of %d, %#lx", f->name, e, (int)told[e].active,
                     (long)told[e].address, on, (long)(on ? address : 0));
    }
}

static void compare_with_native(weave_run *run, const form *f, unsigned stress)
{
    inl_error e;
    weave_options options = {.stress = stress, .seed = harness_random()};
    inl_status status = harness_weave(run, &options, stress & 1, &e);
    if (status) fail_msg("%s: %s", f->name, e.text);
    harness_fill_memory(1);
    native = start;
    harness_native(run, run->insn_count, &native);
    harness_save_memory(bench.native_memory);
    harness_fill_memory(1);
    woven = start;
    harness_woven(&woven);
    harness_save_memory(bench.woven_memory);
    assert_memory_equal(native.gpr, woven.gpr, sizeof native.gpr);
    assert_int_equal(native.flags & X86_ARITH, woven.flags & X86_ARITH);
    assert_memory_equal(native.ymm, woven.ymm, sizeof native.ymm);
    assert_memory_equal(bench.native_memory, bench.woven_memory, sizeof bench.woven_memory);
    assert_int_equal(native.exit, woven.exit);
}

static void told_as_it_is(void **state)
{
    (void)state;
    harness_seed(5);
    for (unsigned turn = 0; turn < 40; turn++)
        for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
            const form *f = &forms[i];
            isa_mem m;
            weave_run *run = run_of(f->bytes, f->size, f->elements, &m);
            harness_random_state(&start);
            start.gpr[f->base] = (uintptr_t)bench.data + 1600;
            good_indices(f);
            compare_with_native(run, f, turn % 4);
            check_told(f, before);
            check_told(f, after);
        }
}

/* --- AVX-512 --- */
enum { LANES, PACKED, ANY, WHOLE };
typedef struct wide_form {
    const char *name;
    uint8_t bytes[8], size;
    unsigned elements, element, how, lanes, mask;
    const char *kmov;
    unsigned index, index_bytes, index_size, scale;
    int disp;
    unsigned base;
} wide_form;
/* clang-format off */
static const wide_form wide_forms[] = {
    {"vgatherqps ymm1{k1}, [rbx+zmm18*4+16]", {0x62, 0xf2, 0x7d, 0x41, 0x93, 0x4c, 0x93, 4}, 8,
     8, 4, LANES, 8, 1, "kmovw", 18, 64, 8, 4, 16, X86_RBX},
    {"vpscatterdq [rbx+ymm2*8]{k3}, zmm1", {0x62, 0xf2, 0xfd, 0x4b, 0xa0, 0x0c, 0xd3}, 7,
     8, 8, LANES, 8, 3, "kmovw", 2, 64, 4, 8, 0, X86_RBX},
    {"vpgatherdd xmm1{k2}, [rsi+xmm31]", {0x62, 0xb2, 0x7d, 0x02, 0x90, 0x0c, 0x3e}, 7,
     4, 4, LANES, 4, 2, "kmovw", 31, 16, 4, 1, 0, X86_RSI},
    {"vmovdqu8 zmm1{k1}, [rbx+64]", {0x62, 0xf1, 0x7f, 0x49, 0x6f, 0x4b, 1}, 7,
     64, 1, LANES, 64, 1, "kmovq", NO_INDEX, 0, 0, 1, 64, X86_RBX},
    {"vmovups [rbx]{k2}, ymm1", {0x62, 0xf1, 0x7c, 0x2a, 0x11, 0x0b}, 6,
     8, 4, LANES, 8, 2, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vcompresspd [rbx]{k1}, ymm1", {0x62, 0xf2, 0xfd, 0x29, 0x8a, 0x0b}, 6,
     4, 8, PACKED, 4, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vpexpandb zmm1{k4}{z}, [rbx]", {0x62, 0xf2, 0x7d, 0xcc, 0x62, 0x0b}, 6,
     64, 1, PACKED, 64, 4, "kmovq", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vpcompressw [rbx]{k4}, ymm1", {0x62, 0xf2, 0xfd, 0x2c, 0x63, 0x0b}, 6,
     16, 2, PACKED, 16, 4, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vaddps zmm1{k1}, zmm2, [rbx]{1to16}", {0x62, 0xf1, 0x6c, 0x59, 0x58, 0x0b}, 6,
     1, 4, ANY, 16, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vbroadcastf32x2 ymm1{k1}, [rbx]", {0x62, 0xf2, 0x7d, 0x29, 0x19, 0x0b}, 6,
     2, 4, ANY, 8, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vpbroadcastb zmm1{k7}, [rbx]", {0x62, 0xf2, 0x7d, 0x4f, 0x78, 0x0b}, 6,
     1, 1, ANY, 64, 7, "kmovq", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vaddss xmm1{k1}, xmm2, [rbx]", {0x62, 0xf1, 0x6e, 0x09, 0x58, 0x0b}, 6,
     1, 4, LANES, 1, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vcvtps2ph [rbx]{k1}, xmm1, 1", {0x62, 0xf3, 0x7d, 0x09, 0x1d, 0x0b, 1}, 7,
     4, 2, LANES, 4, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vpmovqb [rbx]{k1}, zmm1", {0x62, 0xf2, 0x7e, 0x49, 0x32, 0x0b}, 6,
     8, 1, LANES, 8, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vextractf32x4 [rbx]{k1}, zmm1, 1", {0x62, 0xf3, 0x7d, 0x49, 0x19, 0x0b, 1}, 7,
     4, 4, LANES, 4, 1, "kmovw", NO_INDEX, 0, 0, 1, 0, X86_RBX},
    {"vpermd zmm1{k1}, zmm2, [rbx] (reads all)", {0x62, 0xf2, 0x6d, 0x49, 0x36, 0x0b}, 6,
     1, 64, WHOLE, 0, 1, NULL, NO_INDEX, 0, 0, 1, 0, X86_RBX},
};
/* clang-format on */

static bool is_evex(const isa_insn *in) { return in->opcode_at >= 4 && in->raw[in->opcode_at - 4] == 0x62; }

/* The register that the instruction stores, and where in the frame it does. */
static unsigned stored(const isa_insn *in, int64_t *to)
{
    isa_operand op[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    assert_int_equal(isa_x86_64.memory(in, mem), 1);
    assert_int_equal(mem[0].segment, X86_SEG_GS);
    assert_int_equal(mem[0].base, ISA_NO_REG);
    assert_int_equal(mem[0].access, ISA_WRITE);
    *to = mem[0].disp;
    int n = isa_x86_64.operands(in, op);
    for (int i = 0; i < n; i++) /* but not the opmask k0, that is: none */
        if (op[i].kind == ISA_OPERAND_VEC || op[i].kind == ISA_OPERAND_MASK) return op[i].reg;
    fail_msg("nothing is stored");
    return 0;
}

/* Checks the stores in the woven code and takes out what this machine may not be able to run. */
static void take_apart(const wide_form *f)
{
    unsigned masks = 0, indices = 0;
    isa_insn in;
    for (size_t at = 0; at < bench.code.at; at += in.len) {
        uint8_t *p = bench.code.write + at;
        if (isa_x86_64.decode(p, bench.code.at - at, bench.code.exec + at, &in) != ISA_OK) return;
        const char *name = isa_x86_64.mnemonic(in.op);
        bool own = in.len == f->size && memcmp(p, f->bytes, f->size) == 0;
        bool vector = strcmp(name, "movups") == 0 || strcmp(name, "vmovups") == 0;
        int64_t to;
        if (strncmp(name, "kmov", 4) == 0) {
            assert_string_equal(name, f->kmov);
            assert_int_equal(stored(&in, &to), f->mask);
            assert_int_equal(to, WEAVE_OFF(element_mask));
            masks++;
        } else if (vector && !own) {
            isa_mem mem[ISA_MAX_MEM];
            isa_x86_64.memory(&in, mem);
            assert_int_equal(stored(&in, &to), f->index);
            assert_int_equal(to, WEAVE_OFF(element_index));
            assert_int_equal(mem[0].size, f->index_bytes);
            indices++;
        } else if (!own) {
            assert_false(is_evex(&in));
            continue;
        }
        x86_code c = {.write = p, .exec = bench.code.exec + at, .size = in.len};
        x86_nop(&c, in.len);
    }
    assert_int_equal(masks, f->kmov != NULL);
    assert_int_equal(indices, f->index != NO_INDEX);
}

static bool expected(const wide_form *f, uint64_t mask, unsigned e)
{
    unsigned set = 0;
    bool any = false;
    if (f->how == WHOLE) return true;
    for (unsigned i = 0; i < f->lanes; i++) {
        set += mask >> i & 1;
        any |= i % f->elements == e && mask >> i & 1;
    }
    return f->how == PACKED ? set > e : any;
}

static void check_wide(const wide_form *f, uint64_t mask, const uint8_t index[64], const told_element *told)
{
    for (unsigned e = 0; e < f->elements; e++) {
        bool on = expected(f, mask, e);
        uint64_t i = 0, address = start.gpr[f->base] + (uint64_t)(int64_t)f->disp;
        memcpy(&i, index + e * f->index_size, f->index_size);
        if (f->index_size == 4) i = (uint64_t)(int64_t)(int32_t)i;
        address += f->index == NO_INDEX ? e * f->element : i * f->scale;
        if (told[e].active != on || told[e].address != (on ? address : 0))
            fail_msg("%s, mask %#lx: element %u: active %d, address %#lx instead of %d, %#lx", f->name, (long)mask, e,
                     (int)told[e].active, (long)told[e].address, on, (long)address);
    }
}

static void one_wide(const wide_form *f, unsigned turn)
{
    inl_error e;
    isa_mem m;
    weave_options options = {.stress = turn % 4, .seed = harness_random()};
    weave_run *run = run_of(f->bytes, f->size, f->elements, &m);
    if (f->how != WHOLE) assert_int_equal(m.element, f->element);
    assert_int_equal(m.lanes, f->lanes);
    assert_int_equal(m.index_size, f->index_size);
    harness_random_state(&start);
    inl_status status = harness_weave(run, &options, turn & 1, &e);
    if (status) fail_msg("%s: %s", f->name, e.text);
    take_apart(f);
    uint8_t index[64];
    uint64_t mask = (uint64_t)harness_random() << 32 | harness_random();
    if (turn % 3 == 0) mask &= mask >> 7 & mask >> 21;
    if (turn % 7 == 0) mask = turn % 2 ? 0 : ~(uint64_t)0;
    for (unsigned i = 0; i < 64; i++) index[i] = (uint8_t)harness_random();
    /* what kmovw leaves alone is anything */
    memcpy(bench.frame->element_mask, &mask, 8);
    memcpy(bench.frame->element_index, index, 64);
    woven = start;
    harness_woven(&woven);
    assert_memory_equal(start.gpr, woven.gpr, sizeof start.gpr);
    assert_memory_equal(start.ymm, woven.ymm, sizeof start.ymm);
    assert_int_equal(start.flags & X86_ARITH, woven.flags & X86_ARITH);
    check_wide(f, mask, index, before);
    check_wide(f, mask, index, after);
}

static void wide_forms_taken_apart(void **state)
{
    (void)state;
    harness_seed(9);
    for (unsigned turn = 0; turn < 40; turn++)
        for (unsigned i = 0; i < sizeof wide_forms / sizeof *wide_forms; i++) one_wide(&wide_forms[i], turn);
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_as_it_is),
        cmocka_unit_test(wide_forms_taken_apart),
    };
    if (getenv("WEAVE_TEST")) cmocka_set_test_filter(getenv("WEAVE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
