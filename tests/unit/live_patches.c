/* Patches over code that lie over each other: the later one stays, whether they were prepared before or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "live/change.h"

enum { SIZE = 32 };
static uint8_t bytes[SIZE];

static live_patch patch(unsigned at, unsigned size, char c)
{
    live_patch p = {.at = (uintptr_t)bytes + at, .size = (uint8_t)size};
    memset(p.bytes, c, size);
    return p;
}

static void write_all(live_patch *p, size_t count, bool prepared, const char *expected)
{
    const live_process self = {.pid = getpid()};
    inl_error e = {0};
    memset(bytes, '.', sizeof bytes);
    if (prepared) live_patch_prepare(&self, p, count);
    assert_int_equal(live_patch_all(&self, p, count, &e), INL_OK);
    assert_memory_equal(bytes, expected, SIZE);
}

static void later_stays(void **state)
{
    (void)state;
    for (int prepared = 0; prepared < 2; prepared++) {
        live_patch up[] = {patch(0, 5, 'a'), patch(2, 5, 'b'), patch(20, 2, 'c')};
        write_all(up, 3, prepared, "aabbbbb.............cc..........");
        live_patch down[] = {patch(20, 2, 'c'), patch(2, 5, 'a'), patch(0, 5, 'b')};
        write_all(down, 3, prepared, "bbbbbaa.............cc..........");
        live_patch same[] = {patch(4, 5, 'a'), patch(0, 1, 'x'), patch(4, 5, 'b'), patch(4, 2, 'c')};
        write_all(same, 4, prepared, "x...ccbbb.......................");
    }
}

static void added_behind(void **state)
{
    const live_process self = {.pid = getpid()};
    live_patch p[] = {patch(6, 2, 'a'), patch(4, 4, 'b'), patch(5, 3, 'c')};
    (void)state;
    live_patch_prepare(&self, p, 2);
    write_all(p, 3, false, "....bccc........................");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(later_stays), cmocka_unit_test(added_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
