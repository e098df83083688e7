/* The instructions of AArch64 against capstone: for millions of words the registers and flags that are read and
 * written; and without it: what is encoded again is the word it came from, how an instruction moves, constants.
 * Where capstone is known to be wrong (4.0) less is compared, by operation and with the reason. */
#include <capstone/capstone.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "isa/aarch64/encode.h"
#include "isa/aarch64/move.h"

enum { RANDOM_WORDS = 3000000 };

static uint32_t random_word(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 16);
}

static isa_result decode(uint32_t word, uint64_t addr, isa_insn *in)
{
    return isa_aarch64.decode((const uint8_t *)&word, 4, addr, in);
}

/* --- what is read and written --- */

typedef struct sets {
    isa_regs reads, writes;
    uint32_t vec_reads, vec_writes;
    bool flags_read, flags_written;
} sets;

static int within(unsigned reg, unsigned first, unsigned count)
{
    return reg >= first && reg < first + count ? (int)(reg - first) : -1;
}

static isa_regs general(unsigned reg)
{
    int n = within(reg, ARM64_REG_X0, 29);
    if (n < 0) n = within(reg, ARM64_REG_W0, 31);
    if (n < 0) n = reg == ARM64_REG_X29 ? 29 : reg == ARM64_REG_X30 ? 30 : -1;
    if (n < 0 && (reg == ARM64_REG_SP || reg == ARM64_REG_WSP)) n = 31;
    return n < 0 ? 0 : 1ull << n;
}

static uint32_t vector(unsigned reg)
{
    static const unsigned firsts[] = {ARM64_REG_B0, ARM64_REG_H0, ARM64_REG_S0,
                                      ARM64_REG_D0, ARM64_REG_Q0, ARM64_REG_V0};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if (within(reg, firsts[i], 32) >= 0) return 1u << within(reg, firsts[i], 32);
    return 0;
}

static sets what_capstone_says(csh handle, const cs_insn *insn)
{
    sets s = {0};
    cs_regs reads, writes;
    uint8_t read_count, write_count;
    assert_int_equal(cs_regs_access(handle, insn, reads, &read_count, writes, &write_count), 0);
    for (int i = 0; i < read_count; i++) {
        s.reads |= general(reads[i]);
        s.vec_reads |= vector(reads[i]);
        s.flags_read |= reads[i] == ARM64_REG_NZCV;
    }
    for (int i = 0; i < write_count; i++) {
        s.writes |= general(writes[i]);
        s.vec_writes |= vector(writes[i]);
        s.flags_written |= writes[i] == ARM64_REG_NZCV;
    }
    return s;
}

static sets what_we_say(const isa_insn *in)
{
    isa_effects fx;
    isa_aarch64.effects(in, &fx);
    assert_int_equal(fx.kills & ~fx.writes, 0);
    assert_int_equal(fx.vec_kills & ~fx.vec_writes, 0);
    assert_int_equal(fx.flags_kill & ~fx.flags_written, 0);
    return (sets){fx.reads, fx.writes, fx.vec_reads, fx.vec_writes, fx.flags_read != 0, fx.flags_written != 0};
}

static bool is_one_of(const char *name, const char *list)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

/* What is only written, capstone takes for read as well. */
static const char written_only[] = "movn movz sbfm ubfm mrs sysl movi mvni fmov sshr ushr urshr uabd sabd sabdl sabdl2 "
                                   "uabdl uabdl2 uaddlp saddlp aesmc aesimc ld1r ld2r ld3r ld4r";
/* That the lower half stays, that the destination is a summand, what is inverted: it does not see. */
static const char read_too[] = "addhn2 subhn2 raddhn2 rsubhn2 xtn2 sqxtn2 sqxtun2 uqxtn2 fcvtn2 fcvtxn2 shrn2 rshrn2 "
                               "sqshrn2 sqrshrn2 uqshrn2 uqrshrn2 sqshrun2 sqrshrun2 srsra bic orr";
/* Lists of registers, and what is written as an alias with fewer operands: directions are mixed up. */
static const char mixed_up[] = "adds subs ands tbl tbx ld1 ld2 ld3 ld4 st1 st2 st3 st4 ld1r ld2r ld3r ld4r sys msr";

/* The register of a post-index is overlooked. */
static isa_regs post_index(const isa_insn *in)
{
    isa_operand ops[ISA_MAX_OPERANDS];
    isa_regs set = 0;
    int n = isa_aarch64.operands(in, ops);
    for (int i = 0; i < n; i++)
        if (ops[i].kind == ISA_OPERAND_MEM && ops[i].reg < 32) set |= 1ull << ops[i].reg;
    return set;
}

static bool agree(const char *name, const isa_insn *in, sets a, sets b)
{
    const a64_row *row = &a64_rows[in->row];
    if (is_one_of(name, written_only)) b.reads &= ~(a.writes & ~a.reads), b.vec_reads &= ~(a.vec_writes & ~a.vec_reads);
    if (is_one_of(name, read_too)) b.vec_reads |= a.vec_reads;
    if (row->cond && (a64_word(in) >> a64_cond_at(row) & 15) >= A64_AL) a.flags_read = b.flags_read; /* always */
    if (a.flags_read != b.flags_read || a.flags_written != b.flags_written) return false;
    if (is_one_of(name, mixed_up))
        return (a.reads | a.writes) == (b.reads | b.writes | post_index(in)) &&
               !((b.vec_reads | b.vec_writes) & ~(a.vec_reads | a.vec_writes)); /* a list that goes round stops */
    return a.reads == b.reads && a.writes == b.writes && a.vec_reads == b.vec_reads && a.vec_writes == b.vec_writes;
}

static bool leaves(const isa_insn *in)
{
    return in->flow == ISA_FLOW_SYSCALL || in->flow == ISA_FLOW_TRAP || in->flow == ISA_FLOW_FAR;
}

static void effects_agree(void **unused)
{
    int major = 0, minor = 0;
    cs_version(&major, &minor);
    if (major != 4) {
        print_message("capstone %d reads more instructions than it knows the registers of: not compared\n", major);
        skip();
    }
    uint64_t state = 88172645463325252ull;
    unsigned compared = 0, left = 0;
    csh handle;
    (void)unused;
    assert_int_equal(cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &handle), CS_ERR_OK);
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    cs_insn *insn = cs_malloc(handle);
    for (int i = 0; i < RANDOM_WORDS; i++) {
        uint32_t word = random_word(&state);
        const uint8_t *at = (const uint8_t *)&word;
        size_t size = 4;
        uint64_t addr = 0x100000;
        isa_insn in;
        if (decode(word, addr, &in) != ISA_OK || !cs_disasm_iter(handle, &at, &size, &addr, insn)) continue;
        sets ours = what_we_say(&in), theirs = what_capstone_says(handle, insn);
        if (leaves(&in)) { /* by what capstone says, nothing is looked at, or the link register is written */
            assert_int_equal(ours.reads, 0xffffffff);
            assert_int_equal(ours.writes, in.flow == ISA_FLOW_SYSCALL);
            assert_true(ours.flags_read && !ours.flags_written);
            left++;
            continue;
        }
        if (!agree(isa_aarch64.mnemonic(in.op), &in, ours, theirs))
            fail_msg("%08x %s %s: reads %lx writes %lx vectors %x %x flags %d %d, capstone %lx %lx %x %x %d %d", word,
                     insn->mnemonic, insn->op_str, ours.reads, ours.writes, ours.vec_reads, ours.vec_writes,
                     ours.flags_read, ours.flags_written, theirs.reads, theirs.writes, theirs.vec_reads,
                     theirs.vec_writes, theirs.flags_read, theirs.flags_written);
        compared++;
    }
    cs_free(insn, 1);
    cs_close(&handle);
    assert_true(compared > RANDOM_WORDS / 5);
    assert_true(left > 100);
}

/* --- encoding --- */

/* Encodes what `in` decodes to; the word is the same, or one that decodes to the same operands. */
static void check_round_trip(const isa_insn *in)
{
    isa_operand ops[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    uint32_t word;
    char text[128], again_text[128];
    isa_insn again;
    isa_aarch64.operands(in, ops);
    isa_aarch64.memory(in, mem);
    isa_aarch64.format(in, text, sizeof text);
    if (!a64_encode(in->row, a64_word(in), ops, mem, in->addr, &word)) fail_msg("%08x %s: refused", a64_word(in), text);
    if (word == a64_word(in)) return;
    assert_int_equal(decode(word, in->addr, &again), ISA_OK);
    assert_int_equal(again.row, in->row);
    isa_aarch64.format(&again, again_text, sizeof again_text);
    assert_string_equal(text, again_text);
}

static void every_row_encodes(void **unused)
{
    uint64_t state = 7;
    (void)unused;
    for (unsigned row = 1; row < A64_ROW_COUNT; row++)
        for (int i = 0; i < 500; i++) {
            const a64_row *r = &a64_rows[row];
            isa_insn in;
            uint32_t word = (random_word(&state) & ~r->mask) | r->value;
            if (decode(word, 0x7fff12340000, &in) == ISA_OK) check_round_trip(&in);
        }
}

static void masks_are_all_found(void **unused)
{
    unsigned count[2] = {0};
    (void)unused;
    for (unsigned size = 4; size <= 8; size += 4)
        for (unsigned field = 0; field < 1u << 13; field++) {
            uint64_t value, again;
            unsigned back;
            if (!a64_mask_value(field, size, &value)) continue;
            assert_true(a64_mask_encode(value, size, &back));
            assert_true(a64_mask_value(back, size, &again));
            assert_int_equal(value, again);
            count[size == 8] += back == field;
        }
    assert_int_equal(count[0], 1302); /* of 32 bits, and of 64: each once */
    assert_int_equal(count[1], 5334);
}

static void numbers_without_a_mask(void **unused)
{
    static const uint64_t none[] = {0, ~0ull, 5, 0x123456789, 0xff00ff01, 0x5555555555555554};
    unsigned field;
    (void)unused;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(a64_mask_encode(none[i], 8, &field));
    assert_false(a64_mask_encode(0xffffffff, 4, &field));
}

/* --- moving --- */

static uint64_t moved_target(const uint8_t *bytes, uint64_t at, isa_insn *in)
{
    assert_int_equal(isa_aarch64.decode(bytes, 4, at, in), ISA_OK);
    return in->target;
}

static void branches_move(void **unused)
{
    static const uint32_t words[] = {0x14000010, 0x94000010, 0x54000201, 0xb4000200,
                                     0x35000203, 0xb7f80204, 0x36000205};
    static const int64_t near[] = {1 << 27, 1 << 27, 1 << 20, 1 << 20, 1 << 20, 1 << 15, 1 << 15};
    uint64_t from = 0x10000000;
    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        isa_insn in, now, jump;
        uint8_t out[A64_MOVED_BRANCH];
        assert_int_equal(decode(words[i], from, &in), ISA_OK);
        assert_int_equal(in.target, from + 64);
        assert_int_equal(a64_move_branch(&in, 0x10000000, 0x10000000 + near[i] - 4, out), 4);
        assert_int_equal(moved_target(out, 0x10000000, &now), 0x10000000 + near[i] - 4);
        assert_int_equal(now.op, in.op);
        assert_int_equal(a64_move_branch(&in, 0x20000000, 0x20000000 - near[i], out), 4);
        unsigned far = a64_move_branch(&in, 0x10000000, 0x10000000 + near[i], out);
        if (i < 2) {
            assert_int_equal(far, 0);
            continue;
        }
        assert_int_equal(far, 8);
        assert_int_equal(moved_target(out, 0x10000000, &now), 0x10000008);
        assert_int_equal(now.flow, in.flow);
        assert_true((a64_word(&now) ^ words[i]) & (i == 2 ? 1u : 1u << 24)); /* the opposite */
        assert_int_equal(moved_target(out + 4, 0x10000004, &jump), 0x10000000 + near[i]);
        assert_int_equal(jump.flow, ISA_FLOW_JUMP);
        assert_int_equal(a64_move_branch(&in, 0x10000000, 0x20000000, out), 0);
    }
}

static uint64_t value_loaded_from(const uint8_t *out, uint8_t len, uint64_t at, isa_insn *last)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < len; i += 4) {
        isa_mem mem[ISA_MAX_MEM];
        isa_operand ops[ISA_MAX_OPERANDS];
        assert_int_equal(isa_aarch64.decode(out + i, 4, at + i, last), ISA_OK);
        isa_aarch64.operands(last, ops);
        if (last->bits & ISA_BIT_PCREL_MEM) value = last->target;
        else if (isa_aarch64.memory(last, mem)) value += (uint64_t)mem[0].disp;
        else value += (uint64_t)ops[2].imm;
    }
    return value;
}

static void addresses_move(void **unused)
{
    /* adr x1; adrp x2; ldr w3; ldr x4; ldrsw x5; ldr q6; prfm: each of something 72 bytes on, or its page */
    static const uint32_t words[] = {0x10000241, 0xb0000002, 0x18000243, 0x58000244,
                                     0x98000245, 0x9c000246, 0xd8000240};
    static const uint64_t moves[] = {0x1000, 0xfff00, 0x180000, 0x7fff0004, 0x90000000000};
    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t k = 0; k < sizeof moves / sizeof *moves; k++) {
            isa_insn in, last;
            uint8_t out[16], len;
            uint64_t to = 0x10000000 + moves[k];
            assert_int_equal(decode(words[i], 0x10000000, &in), ISA_OK);
            isa_move how = isa_aarch64.relocate(&in, to, out, &len);
            if (how == ISA_MOVE_COPIED) {
                assert_int_equal(value_loaded_from(out, len, to, &last), in.target);
                assert_true(len > 4 || last.op == in.op);
            } else {
                assert_int_equal(how, ISA_MOVE_FAR);
                assert_true(k == 4 || (k >= 2 && i >= 5));
            }
            assert_true(isa_aarch64.rebase(&in, 9, out, &len));
            assert_int_equal(len, 4);
            isa_effects fx, was;
            assert_int_equal(isa_aarch64.decode(out, 4, to, &last), ISA_OK);
            isa_aarch64.effects(&last, &fx);
            isa_aarch64.effects(&in, &was);
            assert_int_equal(fx.reads, 1 << 9);
            assert_int_equal(fx.writes, was.writes);
            assert_int_equal(fx.vec_writes, was.vec_writes);
        }
}

/* --- what is no instruction, and what is not known --- */

static void what_is_not_known(void **unused)
{
    static const struct {
        uint32_t word;
        isa_result result;
    } words[] = {
        {0x04b549c4, ISA_UNKNOWN},                                         /* SVE: index z4.s, #14, w21 */
        {0x80968a61, ISA_UNKNOWN},                                         /* SME: fmopa */
        {0x91cc9c0b, ISA_UNKNOWN},                                         /* umin x11, x0, #39 */
        {0xd5734e1a, ISA_UNKNOWN},                                         /* mrrs x26, x27, s2_3_c4_c14_0 */
        {0x00010000, ISA_INVALID},                                         /* reserved */
        {0x56000000, ISA_INVALID},                                         /* among branches: it might be one */
        {0xd6ff0000, ISA_INVALID}, {0x0a00ffff & 0x06ffffff, ISA_INVALID}, /* not allocated */
    };
    isa_insn in;
    isa_effects fx;
    uint8_t bytes[4] = {0};
    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_int_equal(decode(words[i].word, 0, &in), words[i].result);
        if (words[i].result != ISA_UNKNOWN) continue;
        assert_int_equal(in.flow, ISA_FLOW_NEXT);
        isa_aarch64.effects(&in, &fx);
        assert_int_equal(fx.reads, 0xffffffff);
        assert_int_equal(fx.kills, 0);
        assert_int_equal(fx.flags_read, A64_NZCV);
    }
    assert_int_equal(isa_aarch64.decode(bytes, 3, 0, &in), ISA_TRUNCATED);
    assert_int_equal(decode(0xd503201f, 2, &in), ISA_INVALID); /* not aligned */
    assert_int_equal(in.len, 2);
}

static void constants_of_move_wide(void **unused)
{
    static const struct {
        uint32_t word;
        uint64_t value, mask;
    } words[] = {{0xd2a24680, 0x12340000, ~0ull},
                 {0x12824680, 0xffffedcb, 0xffffffff},
                 {0x92c24680, 0xffffedcbffffffff, ~0ull},
                 {0xf2e24680, 0x1234000000000000, 0xffff000000000000}};
    (void)unused;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        isa_insn in;
        uint64_t value, mask;
        assert_int_equal(decode(words[i].word, 0, &in), ISA_OK);
        assert_true(a64_wide_constant(&in, &value, &mask));
        assert_int_equal(value, words[i].value);
        assert_int_equal(mask, words[i].mask);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_agree),       cmocka_unit_test(every_row_encodes),
        cmocka_unit_test(masks_are_all_found), cmocka_unit_test(numbers_without_a_mask),
        cmocka_unit_test(branches_move),       cmocka_unit_test(addresses_move),
        cmocka_unit_test(what_is_not_known),   cmocka_unit_test(constants_of_move_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
