/* The small things that all parts share: the binary search, pages, checks that end the process. */
#include "base/addr.h"
#include "base/check.h"
#include "base/log.h"
#include "base/lock.h"
#include "base/page.h"
#include "base/ranges.h"
#include "base/search.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void first_of_every_length(void **state)
{
    (void)state;
    int sorted[40];
    for (int i = 0; i < 40; i++) sorted[i] = 2 * i / 3 * 3; /* with repetitions */
    for (size_t n = 0; n <= 40; n++)
        for (int value = -1; value < 90; value++) {
            size_t expected = 0;
            while (expected < n && sorted[expected] < value) expected++;
            assert_int_equal(INL_FIRST(n, k, sorted[k] >= value), expected);
        }
}

static void searches_nest(void **state)
{
    (void)state;
    static const int rows[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
    size_t row = INL_FIRST(3, r, INL_FIRST(4, c, rows[r][c] >= 7) < 4);
    assert_int_equal(row, 1);
}

static void pages(void **state)
{
    (void)state;
    assert_int_equal(inl_page_down(2 * INL_PAGE - 1), INL_PAGE);
    assert_int_equal(inl_page_up(INL_PAGE + 1), 2 * INL_PAGE);
    assert_int_equal(inl_page_up(INL_PAGE), INL_PAGE);
    assert_int_equal(inl_page_up(0), 0);
    assert_true(inl_page_down(UINT64_MAX) == UINT64_MAX - (INL_PAGE - 1));
    inl_error e;
    assert_int_equal(inl_page_check(&e), INL_OK);
}

static void worlds_of_addresses(void **state)
{
    (void)state;
    link_addr l = {0x1234};
    assert_true(inl_real(l, 0x555500000000).at == 0x555500001234);
    assert_true(inl_link(inl_real(l, 0x1000), 0x1000).at == l.at);
}

static void fails(void)
{
    INL_CHECK(getpid() > 0, "this holds");
    INL_CHECK(getpid() == 0, "a region of %d bytes at %#lx", 17, 0xabcl);
}

/* What a child says that does it, and how it ends. */
static int ends(void (*what)(void), char *said, size_t size)
{
    int channel[2];
    assert_int_equal(pipe(channel), 0);
    pid_t child = fork();
    if (!child) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        signal(SIGABRT, SIG_IGN);
        inl_log_fd = channel[1];
        what();
        _exit(0);
    }
    close(channel[1]);
    ssize_t n = read(channel[0], said, size - 1);
    close(channel[0]);
    said[n > 0 ? n : 0] = '\0';
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void failed_check_says_what_and_ends(void **state)
{
    (void)state;
    char said[256];
    int status = ends(fails, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "inlay: internal error at base_rules.c:"));
    assert_non_null(strstr(said, ": a region of 17 bytes at 0xabc\n"));
}

static void takes_both_ways(void)
{
    inl_lock a = {0}, b = {0};
    inl_debug = true;
    inl_lock_take(&a);
    inl_lock_take(&b);
    inl_lock_release(&a);
    inl_lock_release(&b);
    inl_lock_take(&b);
    inl_lock_take(&a);
}

static void takes_twice(void)
{
    inl_lock a = {0};
    inl_debug = true;
    inl_lock_take(&a);
    inl_lock_take(&a);
}

static void overlapping_ranges(void)
{
    inl_ranges v = {0};
    inl_ranges_put(&v, (inl_range){0x1000, 0x3000, 1});
    inl_ranges_put(&v, (inl_range){0x3000, 0x4000, 2});
    inl_ranges_check(&v);
    v.items[1].low = 0x2fff;
    inl_ranges_check(&v);
}

static void expect_failure(void (*what)(void), const char *text)
{
    char said[256];
    int status = ends(what, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, text));
}

static void structures_are_checked(void **state)
{
    (void)state;
    expect_failure(takes_both_ways, " and was the other way round before");
    expect_failure(takes_twice, " is taken by a thread that holds it");
    expect_failure(overlapping_ranges, "ranges 0 and 1 overlap at 0x2fff");
}

static void ranges(void **state)
{
    (void)state;
    inl_ranges v = {0};
    inl_ranges_put(&v, (inl_range){0x1000, 0x2000, 1});
    inl_ranges_put(&v, (inl_range){0x2000, 0x3000, 1});
    assert_int_equal(v.count, 1);
    inl_ranges_put(&v, (inl_range){0x1800, 0x2800, 2});
    assert_int_equal(v.count, 3);
    assert_int_equal(inl_ranges_behind(&v, 0x17ff), 0);
    assert_int_equal(inl_ranges_behind(&v, 0x1800), 1);
    inl_ranges_cut(&v, 0, 0x1900);
    assert_int_equal(v.count, 2);
    assert_true(v.items[0].low == 0x1900 && v.items[0].kind == 2);
    inl_ranges_cut(&v, 0x2900, 0x2a00);
    assert_int_equal(v.count, 3);
    assert_true(v.items[2].low == 0x2a00 && v.items[2].high == 0x3000);
    inl_ranges_check(&v);
    inl_vec_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_of_every_length),
        cmocka_unit_test(searches_nest),
        cmocka_unit_test(pages),
        cmocka_unit_test(worlds_of_addresses),
        cmocka_unit_test(failed_check_says_what_and_ends),
        cmocka_unit_test(structures_are_checked),
        cmocka_unit_test(ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
