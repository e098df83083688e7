/* The small things that all parts share: the binary search, pages, checks that end the process. */
#include "base/addr.h"
#include "base/check.h"
#include "base/log.h"
#include "base/page.h"
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

/* What a child says whose check fails, and how it ends. */
static int fails(char *said, size_t size)
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
        INL_CHECK(size > 0, "this holds");
        INL_CHECK(size == 0, "a region of %d bytes at %#lx", 17, 0xabcl);
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
    int status = fails(said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "inlay: internal error at base_rules.c:"));
    assert_non_null(strstr(said, ": a region of 17 bytes at 0xabc\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_of_every_length),
        cmocka_unit_test(searches_nest),
        cmocka_unit_test(pages),
        cmocka_unit_test(worlds_of_addresses),
        cmocka_unit_test(failed_check_says_what_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
