/* Code that is moved by its fix-ups leads where it did, whatever is written: operands, calls, jumps out. */
#include "weave/isa.h"
#include "isa/x86_64/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ROOM = 256, FIXUPS = 8 };
static const uint64_t FIRST = 0x10000000, THEN = 0x18000040;

static uint8_t bytes[ROOM];
static isa_fixup items[FIXUPS];
static isa_fixups list;

static x86_code begin(unsigned room)
{
    memset(bytes, 0, sizeof bytes);
    list = (isa_fixups){.items = items, .room = room};
    return (x86_code){.write = bytes, .exec = FIRST, .size = ROOM, .fixups = &list};
}

static bool place(const x86_code *c, uint64_t exec)
{
    return weave_isa_here()->place(&list, c->write, exec, c->exec, c->exec + c->size);
}

static isa_insn decoded(const x86_code *c, size_t at, uint64_t exec)
{
    isa_insn in;
    assert_int_equal(isa_x86_64.decode(c->write + at, c->at - at, exec + at, &in), ISA_OK);
    return in;
}

/* Each instruction of the code leads to the same address as before. */
static void check(const x86_code *c, const uint64_t *targets, unsigned count)
{
    for (unsigned round = 0; round < 2; round++) {
        uint64_t exec = round ? THEN : FIRST;
        size_t at = 0;
        if (round) assert_true(place(c, THEN));
        for (unsigned i = 0; i < count; i++) {
            isa_insn in = decoded(c, at, exec);
            assert_int_equal(in.target, targets[i]);
            at += in.len;
        }
        assert_int_equal(at, c->at);
    }
}

static void operands(void **state)
{
    const uint64_t to = FIRST + 0x5000;
    const uint64_t targets[] = {to, to, to + 8, to, to};
    (void)state;
    x86_code c = begin(FIXUPS);
    x86_load(&c, 8, X86_RAX, x86_rip(to));
    x86_store_imm(&c, 4, x86_rip(to), 0x12345678); /* with bytes behind the displacement */
    x86_alu_mi(&c, X86_ADD, 1, x86_rip(to + 8), 5);
    x86_vec_load(&c, 32, 3, x86_rip(to));
    x86_vec_store(&c, 64, x86_rip(to), 19);
    assert_int_equal(list.count, 5);
    check(&c, targets, 5);
}

/* What would be short where it is written is not, since it may be far from where it goes. */
static void jumps_out(void **state)
{
    const uint64_t front = FIRST - 16, behind = FIRST + ROOM;
    const uint64_t targets[] = {front, front, behind, behind};
    (void)state;
    x86_code c = begin(FIXUPS);
    x86_jmp_to(&c, front);
    x86_jcc_to(&c, X86_E, front);
    x86_call_to(&c, behind);
    x86_jmp_rel32(&c, behind, false);
    assert_int_equal(c.at, 5 + 6 + 5 + 5);
    assert_int_equal(list.count, 4);
    check(&c, targets, 4);
}

static void jumps_within(void **state)
{
    (void)state;
    x86_code c = begin(FIXUPS);
    x86_nop(&c, 3);
    x86_jmp_to(&c, FIRST);
    assert_int_equal(c.at, 5);
    assert_int_equal(list.count, 0);
    assert_true(place(&c, THEN));
    assert_int_equal(decoded(&c, 3, THEN).target, THEN);
}

static void labels_elsewhere(void **state)
{
    const uint64_t targets[] = {FIRST + 0x3000};
    (void)state;
    x86_code c = begin(FIXUPS);
    isa_label l = weave_isa_here()->jump(&c, false);
    weave_isa_here()->bind_to(&c, l, targets[0]);
    assert_int_equal(list.count, 1);
    check(&c, targets, 1);
}

static void copied_instructions(void **state)
{
    /* mov dword [rip + 0x100], 7; the same with an address-size prefix */
    static const uint8_t both[][11] = {{0xc7, 0x05, 0, 1, 0, 0, 7, 0, 0, 0},
                                       {0x67, 0xc7, 0x05, 0, 1, 0, 0, 7, 0, 0, 0}};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        x86_code c = begin(FIXUPS);
        isa_insn in;
        uint8_t len;
        assert_int_equal(isa_x86_64.decode(both[i], sizeof both[i], FIRST + 0x8000, &in), ISA_OK);
        assert_int_equal(isa_x86_64.relocate(&in, isa_here(&c), bytes, &len), ISA_MOVE_COPIED);
        c.at += len;
        weave_isa_here()->fix_relocated(&c, &in);
        assert_int_equal(list.count, 1);
        check(&c, &in.target, 1);
        assert_int_equal(place(&c, FIRST + (1ull << 40)), i == 1); /* modulo 4 GB everything is near */
    }
}

static void refusals(void **state)
{
    (void)state;
    x86_code c = begin(1);
    x86_call_to(&c, FIRST + ROOM);
    assert_false(c.full);
    assert_false(place(&c, FIRST + (1ull << 32)));
    x86_call_to(&c, FIRST + ROOM);
    assert_true(c.full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands),         cmocka_unit_test(jumps_out),           cmocka_unit_test(jumps_within),
        cmocka_unit_test(labels_elsewhere), cmocka_unit_test(copied_instructions), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
