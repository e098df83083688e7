/* Names of events, and the protocol of the kernel's page for them, on pages that are made up. */
#include "tool/perf.h"
#include "tool/perf_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the page --- */

static struct perf_event_mmap_page page;
static unsigned changes, reads;

/* While the counter is read, the kernel changes the page, `changes` times. */
static uint64_t counter(uint32_t number)
{
    reads++;
    if (changes) {
        changes--;
        page.lock++;
        page.offset += 1000;
    }
    return number == 4 ? 0xfffffffffff0 : 5;
}

static uint64_t value_of(bool *can)
{
    uint64_t value = 0;
    reads = 0;
    *can = perf_page_read(&page, counter, &value);
    return value;
}

static void counters_have_a_sign(void **state)
{
    bool can;
    (void)state;
    page = (struct perf_event_mmap_page){.lock = 2, .index = 5, .offset = 100, .pmc_width = 48, .cap_user_rdpmc = 1};
    assert_int_equal(value_of(&can), 100 - 16);
    assert_true(can);
    page.index = 1;
    assert_int_equal(value_of(&can), 105);
    page.pmc_width = 64;
    assert_int_equal(value_of(&can), 105);
}

static void what_changes_is_read_again(void **state)
{
    bool can;
    (void)state;
    page = (struct perf_event_mmap_page){.index = 1, .offset = 100, .pmc_width = 48, .cap_user_rdpmc = 1};
    changes = 3;
    assert_int_equal(value_of(&can), 3105);
    assert_int_equal(reads, 4);
}

static void without_a_counter_the_offset_is_all(void **state)
{
    bool can;
    (void)state;
    page = (struct perf_event_mmap_page){.index = 0, .offset = 77, .pmc_width = 48, .cap_user_rdpmc = 1};
    assert_int_equal(value_of(&can), 77);
    assert_true(can);
    assert_int_equal(reads, 0);
    page = (struct perf_event_mmap_page){.index = 2, .offset = 77, .pmc_width = 48};
    value_of(&can);
    assert_false(can);
    assert_int_equal(reads, 0);
}

/* --- names --- */

static perf_asked found[INLAY_PERF_MOST];
static char why[256];

static void names_are_those_of_the_kernel(void **state)
{
    (void)state;
    assert_int_equal(
        perf_names_read("cycles,L1-dcache-load-misses,r1b2:u,page-faults,x=7/0x10/3/4:k", found, why, sizeof why), 5);
    assert_int_equal(found[0].type, PERF_TYPE_HARDWARE);
    assert_int_equal(found[0].config, PERF_COUNT_HW_CPU_CYCLES);
    assert_int_equal(found[1].type, PERF_TYPE_HW_CACHE);
    assert_int_equal(found[1].config, PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
    assert_int_equal(found[2].type, PERF_TYPE_RAW);
    assert_int_equal(found[2].config, 0x1b2);
    assert_true(found[2].no_kernel && found[2].no_hypervisor && !found[2].no_user);
    assert_string_equal(found[2].name, "r1b2:u");
    assert_int_equal(found[4].type, 7);
    assert_int_equal(found[4].config, 16);
    assert_int_equal(found[4].config1, 3);
    assert_int_equal(found[4].config2, 4);
    assert_true(found[4].no_user && !found[4].no_kernel);
    assert_string_equal(found[4].name, "x");
}

static void groups_are_braces_and_software(void **state)
{
    (void)state;
    assert_int_equal(
        perf_names_read("faults,cycles,{cycles,instructions},cs,branches,task-clock", found, why, sizeof why), 7);
    assert_int_equal(found[0].group, found[4].group);
    assert_int_equal(found[2].group, found[3].group);
    assert_int_not_equal(found[1].group, found[2].group);
    assert_int_not_equal(found[5].group, found[2].group);
    assert_int_not_equal(found[5].group, found[1].group);
    assert_int_not_equal(found[6].group, found[0].group);
}

static void what_is_wrong_is_said(void **state)
{
    static const char *const wrong[] = {"",        ",",        "cycles,",   "{cycles",  "cycles}", "{{cycles}}",
                                        "cycles:", "cycles:z", "x=",        "x=1",      "x=1/",    "=1/2",
                                        "r",       "rxyz",     "L1-dcache", "{cycles}x"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        why[0] = 0;
        assert_int_equal(perf_names_read(wrong[i], found, why, sizeof why), 0);
        assert_true(strlen(why) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_have_a_sign),
        cmocka_unit_test(what_changes_is_read_again),
        cmocka_unit_test(without_a_counter_the_offset_is_all),
        cmocka_unit_test(names_are_those_of_the_kernel),
        cmocka_unit_test(groups_are_braces_and_software),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
