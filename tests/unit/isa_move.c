/* Instructions moved to another address: decoded again by Zydis, they must say the same, save that a
 * PC-relative operand is reached from the new place, or through the register asked for. Random
 * RIP-relative instructions of all encodings are tried besides the named ones. */
#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "isa/x86_64/x86.h"
#include "isa_zydis.h"

static const uint64_t FROM = 0x7f0000401000;
static ZydisDecoder decoder;

typedef struct decoded {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
} decoded;

static bool decode_with_zydis(const uint8_t *bytes, size_t n, decoded *d)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &d->in, d->op));
}

static int pcrel_operand(const decoded *d)
{
    for (int i = 0; i < d->in.operand_count; i++)
        if (d->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (d->op[i].mem.base == ZYDIS_REGISTER_RIP || d->op[i].mem.base == ZYDIS_REGISTER_EIP))
            return i;
    return -1;
}

/* Everything but the operand numbered `apart` is equal. */
static bool same_but(const decoded *a, const decoded *b, int apart)
{
    if (a->in.mnemonic != b->in.mnemonic || a->in.operand_count != b->in.operand_count ||
        a->in.operand_width != b->in.operand_width || a->in.avx.vector_length != b->in.avx.vector_length ||
        a->in.avx.mask.reg != b->in.avx.mask.reg)
        return false;
    for (int i = 0; i < a->in.operand_count; i++) {
        const ZydisDecodedOperand *x = &a->op[i], *y = &b->op[i];
        if (x->type != y->type || x->size != y->size || x->actions != y->actions) return false;
        if (i == apart) continue;
        if (x->type == ZYDIS_OPERAND_TYPE_REGISTER && x->reg.value != y->reg.value) return false;
        if (x->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && x->imm.value.u != y->imm.value.u) return false;
        if (x->type == ZYDIS_OPERAND_TYPE_MEMORY && x->mem.base != y->mem.base) return false;
    }
    return true;
}

static void dump(const char *what, const uint8_t *bytes, unsigned n)
{
    print_message("%s:", what);
    for (unsigned i = 0; i < n; i++) print_message(" %02x", bytes[i]);
    print_message("\n");
}

static bool check_relocated(const isa_insn *in, const decoded *before, int apart, uint64_t to)
{
    uint8_t out[16], len;
    decoded after;
    ZyanU64 target;
    isa_move m = isa_x86_64.relocate(in, to, out, &len);
    int64_t away = (int64_t)(in->target - (to + in->len));
    bool reaches = away == (int32_t)away || before->in.address_width == 32;
    if (!reaches) return m == (in->flow == ISA_FLOW_NEXT ? ISA_MOVE_FAR : m) && len == 0;
    if (m == ISA_MOVE_FAR || len != in->len || !decode_with_zydis(out, len, &after)) return false;
    ZydisCalcAbsoluteAddress(&after.in, &after.op[apart], to, &target);
    return target == in->target && same_but(before, &after, apart);
}

static bool check_rebased(const isa_insn *in, const decoded *before, int apart, unsigned reg)
{
    uint8_t out[16], len;
    decoded after;
    isa_effects e;
    isa_x86_64.effects(in, &e);
    if ((e.reads | e.writes) >> reg & 1) return true; /* not asked for */
    if (!isa_x86_64.rebase(in, reg, out, &len)) {
        /* Only a high-byte register stands in the way of REX. */
        const ZydisDecodedOperand *o = before->op;
        for (int i = 0; i < before->in.operand_count; i++)
            if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER && o[i].reg.value >= ZYDIS_REGISTER_AH &&
                o[i].reg.value <= ZYDIS_REGISTER_BH && reg >= 8)
                return true;
        return false;
    }
    if (len > 15 || !decode_with_zydis(out, len, &after) || after.in.length != len) return false;
    const ZydisDecodedOperand *o = &after.op[apart];
    ZydisRegister base = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base);
    return base == (ZydisRegister)(ZYDIS_REGISTER_RAX + reg) && o->mem.index == ZYDIS_REGISTER_NONE &&
           o->mem.disp.value == 0 && same_but(before, &after, apart);
}

/* One instruction, if it is RIP-relative and known to both: all registers and some distances. */
static bool check_moves(const uint8_t *bytes, size_t avail, unsigned *tried)
{
    static const int64_t distances[] = {0, 0x1000, -0x7fffff00, 0x7ffff000, 0x100000000, -0x300000000};
    isa_insn in;
    decoded before;
    if (isa_x86_64.decode(bytes, avail, FROM, &in) != ISA_OK || !(in.bits & ISA_BIT_PCREL_MEM)) return true;
    if (!decode_with_zydis(bytes, avail, &before)) return true;
    if (before.in.meta.isa_ext == ZYDIS_ISA_EXT_MPX) return true; /* ignores 67; a nop by now */
    int apart = pcrel_operand(&before);
    if (apart < 0) return false;
    ++*tried;
    for (unsigned i = 0; i < sizeof distances / sizeof *distances; i++)
        if (!check_relocated(&in, &before, apart, FROM + (uint64_t)distances[i])) {
            dump("relocate", bytes, in.len);
            return false;
        }
    for (unsigned reg = 0; reg < 16; reg++)
        if (!check_rebased(&in, &before, apart, reg)) {
            print_message("register %u ", reg);
            dump("rebase", bytes, in.len);
            return false;
        }
    return true;
}

static unsigned parse(const char *hex, uint8_t out[16])
{
    unsigned n = 0, byte;
    int used;
    memset(out, 0, 16);
    while (sscanf(hex, " %2x%n", &byte, &used) == 1) {
        out[n++] = byte;
        hex += used;
    }
    return n;
}

/* clang-format off */
static void named(void **state)
{
    static const char *const rows[] = {
        "8b 05 10 00 00 00", "48 8b 05 10 00 00 00", "4c 8b 25 10 00 00 00", "c6 05 10 00 00 00 07",
        "48 81 3d 10 00 00 00 01 02 03 04", "f3 0f 10 05 10 00 00 00", "66 0f 3a 0f 05 10 00 00 00 08",
        "f0 ff 05 10 00 00 00", "88 25 10 00 00 00", "0f b6 05 10 00 00 00", "c5 f8 28 05 10 00 00 00",
        "c4 e2 7d 18 05 10 00 00 00", "c5 7d 6f 05 10 00 00 00", "62 f1 7c 48 28 05 10 00 00 00",
        "62 f1 7c 59 58 05 10 00 00 00", "64 8b 05 10 00 00 00", "67 8b 05 10 00 00 00",
        "0f 0f 05 10 00 00 00 9e", "8f e8 78 c0 05 10 00 00 00 01", "ff 25 10 00 00 00",
        "ff 15 10 00 00 00", "48 63 05 10 00 00 00", "48 8d 05 10 00 00 00",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[16];
        unsigned n = parse(rows[i], bytes), tried = 0;
        assert_true(check_moves(bytes, n, &tried));
        assert_int_equal(tried, 1);
    }
}
/* clang-format on */

static void random_moves(void **state)
{
    uint64_t seed = 0x243f6a8885a308d3;
    unsigned tried = 0;
    (void)state;
    for (int i = 0; i < 2000000 && tried < 20000; i++) {
        uint8_t bytes[32];
        isa_insn in;
        isa_random_bytes(&seed, true, bytes);
        if (isa_x86_64.decode(bytes, sizeof bytes, FROM, &in) != ISA_OK || !in.modrm_at) continue;
        bytes[in.modrm_at] = (bytes[in.modrm_at] & 0x38) | 5;
        assert_true(check_moves(bytes, sizeof bytes, &tried));
    }
    assert_true(tried > 10000);
}

/* clang-format off */
static void branches(void **state)
{
    static const struct { const char *hex; unsigned length; } rows[] = {
        {"eb 10", 0}, {"74 10", 0}, {"e3 10", 0}, {"e2 10", 0}, {"e8 10 00 00 00", 0}, {"e9 10 00 00 00", 0},
        {"0f 85 10 00 00 00", 0}, {"c7 f8 10 00 00 00", 0},
        {"c3", 1}, {"ff e0", 2}, {"ff 25 10 00 00 00", 6}, {"ff d0", 2}, {"41 ff e3", 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[16], out[16], len;
        isa_insn in;
        assert_int_equal(isa_x86_64.decode(bytes, parse(rows[i].hex, bytes), FROM, &in), ISA_OK);
        assert_int_equal(isa_x86_64.relocate(&in, FROM + 64, out, &len), ISA_MOVE_BRANCH);
        assert_int_equal(len, rows[i].length);
    }
}
/* clang-format on */

static void plain(void **state)
{
    static const char *const rows[] = {"90", "48 89 c3", "0f a2", "f3 48 ab", "0f 05", "c4 e2 7b d2 c1"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[16], out[16], len;
        unsigned n = parse(rows[i], bytes);
        isa_insn in;
        isa_x86_64.decode(bytes, n, FROM, &in);
        assert_int_equal(isa_x86_64.relocate(&in, 64, out, &len), ISA_MOVE_COPIED);
        assert_int_equal(len, n);
        assert_memory_equal(out, bytes, n);
        assert_false(isa_x86_64.rebase(&in, X86_RBX, out, &len));
    }
}

/* An unknown instruction's operand is moved like any other's: VEX, APX's EVEX, REX2. */
static void unknown(void **state)
{
    static const struct {
        const char *hex, *rebased;
    } rows[] = {
        {"c4 e2 7b d2 05 10 00 00 00", "c4 c2 7b d2 04 24"},
        {"62 f4 7c 18 01 05 10 00 00 00", "62 d4 7c 18 01 04 24"},
        {"d5 48 8b 05 10 00 00 00", "d5 49 8b 04 24"},
        {"0f 38 fc 05 10 00 00 00", "41 0f 38 fc 04 24"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[16], want[16], out[16], len;
        unsigned n = parse(rows[i].hex, bytes), m = parse(rows[i].rebased, want);
        int32_t disp;
        isa_insn in;
        isa_x86_64.decode(bytes, n, FROM, &in);
        assert_int_equal(in.target, FROM + n + 0x10);
        assert_int_equal(isa_x86_64.relocate(&in, FROM - 0x100, out, &len), ISA_MOVE_COPIED);
        memcpy(&disp, out + in.disp_at, 4);
        assert_int_equal(disp, 0x110);
        assert_true(isa_x86_64.rebase(&in, X86_R12, out, &len));
        assert_int_equal(len, m);
        assert_memory_equal(out, want, m);
    }
}

/* Addresses that are not simply what the fields say, and bytes that are none of the instruction's. */
static void addresses(void **state)
{
    (void)state;
    static const uint8_t pop[] = {0x8f, 0x44, 0x24, 0x08}, push32[] = {0x67, 0x50}, load32[] = {0x67, 0x8b, 0x03};
    isa_insn in;
    isa_mem mem[ISA_MAX_MEM];
    assert_int_equal(isa_x86_64.decode(pop, sizeof pop, FROM, &in), ISA_OK); /* pop 8(%rsp): after the addition */
    int n = isa_x86_64.memory(&in, mem), to = n == 2 && mem[0].access == ISA_WRITE ? 0 : 1;
    assert_int_equal(n, 2);
    assert_int_equal(mem[to].base, X86_RSP);
    assert_int_equal(mem[to].disp, 16);
    assert_int_equal(mem[1 - to].disp, 0);
    assert_int_equal(isa_x86_64.decode(push32, sizeof push32, FROM, &in), ISA_OK); /* the stack is 64 bits wide */
    assert_int_equal(isa_x86_64.memory(&in, mem), 1);
    assert_int_equal(mem[0].bits & ISA_MEM_ADDR32, 0);
    assert_int_equal(isa_x86_64.decode(load32, sizeof load32, FROM, &in), ISA_OK);
    assert_int_equal(isa_x86_64.memory(&in, mem), 1);
    assert_true(mem[0].bits & ISA_MEM_ADDR32);
}

static void what_follows_does_not_count(void **state)
{
    (void)state;
    static const uint8_t long_one[] = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, short_one[] = {0x90};
    for (unsigned k = 0; k < 2; k++) {
        const uint8_t *bytes = k ? short_one : long_one;
        unsigned size = k ? sizeof short_one : sizeof long_one;
        uint8_t with[64];
        isa_insn alone, followed;
        memset(with, 0xcc, sizeof with);
        memcpy(with, bytes, size);
        assert_int_equal(isa_x86_64.decode(bytes, size, FROM, &alone), ISA_OK);
        assert_int_equal(isa_x86_64.decode(with, sizeof with, FROM, &followed), ISA_OK);
        assert_memory_equal(&alone, &followed, sizeof alone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named),
        cmocka_unit_test(random_moves),
        cmocka_unit_test(branches),
        cmocka_unit_test(plain),
        cmocka_unit_test(unknown),
        cmocka_unit_test(addresses),
        cmocka_unit_test(what_follows_does_not_count),
    };
    isa_zydis_init();
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
