/* Who takes the place of an unwinder's procedures forgets it with the image's new code, and not before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "moved/private.h"

extern uint64_t moved_next_walk;

/* No room was found for another image's code: nothing of that was there. */
static void another_was_given_up(void **state)
{
    moved_later other = {.low = 0x1000};
    (void)state;
    moved_next_walk = 0x7000;
    moved_later_drop(&other);
    assert_true(moved_walks());
}

static void goes_with_its_code(void **state)
{
    (void)state;
    moved_next_walk = 0x7000;
    moved_walks_forget(0x6000, 0x1000);
    moved_walks_forget(0x7001, 0x1000);
    assert_true(moved_walks());
    moved_walks_forget(0x6000, 0x1001);
    assert_false(moved_walks());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_was_given_up), cmocka_unit_test(goes_with_its_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
