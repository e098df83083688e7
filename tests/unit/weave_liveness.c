/* Liveness along a line: read later, seen by a fault, killed, wanted at an exit. */
#include "cfg/liveness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const cfg_need all = {0xff, 0x3f};
static const cfg_need nothing = {0, 0};

static void reads_and_kills(void **state)
{
    (void)state;
    cfg_step steps[] = {
        {.kills = {1, 0}},                     /* r0 = ... */
        {.reads = {1, 0}, .kills = {2, 0x3f}}, /* r1 = f(r0), all flags */
        {.reads = {2, 1}},
    };
    cfg_live live[4] = {[3] = {nothing, nothing}};
    cfg_liveness(steps, 3, all, live);
    assert_int_equal(live[0].live.regs, 0);
    assert_int_equal(live[1].live.regs, 1);
    assert_int_equal(live[2].live.regs, 2);
    assert_int_equal(live[2].live.flags, 1);
    assert_int_equal(live[1].live.flags, 0);
    assert_int_equal(live[1].seen.regs, 1);
}

/* What an instruction reads it reads before it writes: a register or a flag that is both is wanted in front. */
static void reads_come_before_kills(void **state)
{
    (void)state;
    cfg_step steps[] = {
        {.kills = {1, 0}, .reads = {1, 0}},                                /* r0 = f(r0) */
        {.kills = {2, 3}, .reads = {0, 1}},                                /* r1 = carry, and new flags */
        {.kills = {4, 4}, .reads = {6, 0}, .exits = true, .exit = {4, 4}}, /* leaves in front of its write */
        {.kills = {8, 0}, .reads = {8, 0}, .may_fault = true},
    };
    cfg_live live[5] = {[4] = {nothing, nothing}};
    cfg_liveness(steps, 4, all, live);
    assert_int_equal(live[3].live.regs, 8);
    assert_int_equal(live[3].seen.regs, 0xff);
    assert_int_equal(live[2].live.regs, 8 | 4 | 2);
    assert_int_equal(live[2].live.flags, 4);
    assert_int_equal(live[2].seen.regs, 0xff);
    assert_int_equal(live[1].live.regs, 8 | 4);
    assert_int_equal(live[1].live.flags, 4 | 1);
    assert_int_equal(live[0].live.regs, 8 | 4 | 1);
    assert_int_equal(live[0].live.flags, 4 | 1);
}

static void reads_are_seen(void **state)
{
    (void)state;
    cfg_step steps[] = {{.kills = {1, 2}, .reads = {1, 2}}, {.kills = {6, 0}, .reads = {4, 0}}};
    cfg_live live[3] = {[2] = {nothing, nothing}};
    cfg_liveness(steps, 2, all, live);
    assert_int_equal(live[1].seen.regs, 4);
    assert_int_equal(live[0].seen.regs, 4 | 1);
    assert_int_equal(live[0].seen.flags, 2);
}

static void faults_show_everything(void **state)
{
    (void)state;
    cfg_step steps[] = {{.kills = {0xf0, 0}}, {.may_fault = true, .kills = {1, 0x3f}}, {.kills = {2, 0}}};
    cfg_live live[4] = {[3] = {all, all}};
    cfg_liveness(steps, 3, all, live);
    assert_int_equal(live[2].seen.regs, 0xfd);
    assert_int_equal(live[1].live.regs, 0xfc);
    assert_int_equal(live[1].live.flags, 0);
    assert_int_equal(live[1].seen.regs, 0xff);
    assert_int_equal(live[1].seen.flags, 0x3f);
    assert_int_equal(live[0].seen.regs, 0x0f);
}

static void exits_want_theirs(void **state)
{
    (void)state;
    cfg_step steps[] = {
        {.exits = true, .exit = {4, 2}},
        {.kills = {0xff, 0x3f}},
        {.exits = true, .ends = true, .exit = {8, 0}},
        {.reads = {0xff, 0}},
    };
    cfg_live live[5] = {[4] = {all, all}};
    cfg_liveness(steps, 4, all, live);
    assert_int_equal(live[2].live.regs, 8);
    assert_int_equal(live[1].live.regs, 0);
    assert_int_equal(live[0].live.regs, 4);
    assert_int_equal(live[0].seen.flags, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_kills),   cmocka_unit_test(reads_come_before_kills),
        cmocka_unit_test(reads_are_seen),    cmocka_unit_test(faults_show_everything),
        cmocka_unit_test(exits_want_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
