/* Patches over code that lie over each other: the later one stays, whether they were prepared before or not. And rooms
 * for moved code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/page.h"
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

/* Many libraries were promised much and have given most of it back: a large one's room is still in one piece. */
static void rooms_stay_together(void **state)
{
    enum { LIBRARIES = 200, MB = 1 << 20 };
    const uint64_t low = 0x7ffff0000000, high = low + (uint64_t)LIBRARIES * MB;
    live_process p = {0};
    live_mapping all = {.low = low, .high = high, .name = (char *)""};
    (void)state;
    assert_true(inl_vec_push(&p.mappings, all));
    for (unsigned k = 0; k < LIBRARIES; k++) {
        const uint64_t from = low + (uint64_t)k * MB, size = (uint64_t)(1 + k % 100) * MB;
        const uint64_t at = live_find_room(&p, from, from + MB, size, LIVE_REACH);
        assert_true(at && at + size <= low && from + MB - at < LIVE_REACH);
        live_keep_room(&p, at, size / 40 + 1);
    }
    assert_true(live_find_room(&p, high - 20 * MB, high, 512 * MB, LIVE_REACH));
    inl_vec_free(&p.taken);
    inl_vec_free(&p.mappings);
}

/* What is free right below where the program's heap will begin is the tool's, in part: this process is given the
 * program's part, with all taken below it. */
static void room_spares_tool(void **state)
{
    enum { MB = 1 << 20 };
    const uint64_t tool = inl_own_base(), low = tool - 3072ull * MB, high = tool - 2048ull * MB;
    live_process p = {.pid = getpid()};
    live_mapping below = {.low = INL_PAGE, .high = high, .name = (char *)""};
    (void)state;
    assert_true(inl_vec_push(&p.mappings, below));
    for (uint64_t size = 1; size <= 1024ull * MB; size *= 2) {
        const uint64_t at = live_find_room(&p, low, high, size, 6144ull * MB);
        assert_true(at >= high);
        assert_true(at + size <= tool || at >= tool + LIVE_TOOL_MOST);
        live_keep_room(&p, at, 0);
    }
    inl_vec_free(&p.taken);
    inl_vec_free(&p.mappings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(later_stays), cmocka_unit_test(added_behind),
                                       cmocka_unit_test(rooms_stay_together), cmocka_unit_test(room_spares_tool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
