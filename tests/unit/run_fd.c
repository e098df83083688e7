/* Inlay's descriptors: out of the program's reach, whatever it closes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "run/kernel.h"

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void hidden_above_the_soft_limit(void **state)
{
    (void)state;
    struct rlimit before, after;
    getrlimit(RLIMIT_NOFILE, &before);
    before.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    int fd = open("/dev/null", O_RDONLY);
    int hidden = run_fd_hide(fd);
    assert_true(hidden >= 256);
    assert_true(is_open(hidden));
    assert_false(is_open(fd));
    assert_true(run_fd_is_hidden(hidden));
    assert_false(run_fd_is_hidden(fd));
    assert_false(run_fd_is_hidden(-1));
    assert_int_equal(fcntl(hidden, F_GETFD), FD_CLOEXEC);
    getrlimit(RLIMIT_NOFILE, &after);
    assert_int_equal(after.rlim_cur, 256);
}

static void close_range_goes_around(void **state)
{
    (void)state;
    int first = run_fd_hide(open("/dev/null", O_RDONLY));
    int second = run_fd_hide(open("/dev/null", O_RDONLY));
    int plain = fcntl(1, F_DUPFD, 100);
    assert_true(first >= 0 && second > first && plain >= 100);
    assert_int_equal(run_close_range(NULL, 100, ~0u, 0), 0);
    assert_true(is_open(first) && is_open(second));
    assert_false(is_open(plain));
    assert_int_equal(run_close_range(NULL, (uint64_t)first, (uint64_t)first, 0), 0);
    assert_true(is_open(first));
    assert_true(run_close_range(NULL, 5, 4, 0) < 0);
}

/* All places, to the last one. What comes then is refused, and stays the program's. */
static void as_many_as_there_are_places(void **state)
{
    (void)state;
    int first = (int)run_fd_base, last = first + RUN_FD_PLACES - 1, hidden = -1;
    while (hidden != last) {
        hidden = run_fd_hide(open("/dev/null", O_RDONLY));
        assert_true(hidden >= first && hidden <= last);
    }
    for (int fd = first; fd <= last; fd++) assert_true(run_fd_is_hidden(fd) && is_open(fd));
    assert_false(run_fd_is_hidden(first - 1));
    assert_false(run_fd_is_hidden(last + 1));
    int fd = open("/dev/null", O_RDONLY);
    struct rlimit before, most;
    getrlimit(RLIMIT_NOFILE, &before);
    most = before;
    most.rlim_cur = most.rlim_max; /* it is not the limit that says so */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
    assert_true(run_fd_hide(fd) < 0);
    assert_true(is_open(fd));
    assert_false(is_open(last + 1) || run_fd_is_hidden(last + 1));
    close(fd);
    assert_int_equal(run_close_range(NULL, (uint64_t)last, (uint64_t)last, 0), 0);
    assert_true(is_open(last));
    assert_int_equal(run_close_range(NULL, (uint64_t)first - 1, ~0u, 0), 0);
    for (fd = first; fd <= last; fd++) assert_true(is_open(fd));
    setrlimit(RLIMIT_NOFILE, &before);
    fcntl(first, F_SETFD, 0);
    fcntl(last, F_SETFD, 0);
    run_fd_seal();
    assert_int_equal(fcntl(first, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(last, F_GETFD), FD_CLOEXEC);
}

static void copies_stop_where_memory_does(void **state)
{
    (void)state;
    char from[8] = "abcdefg", to[8];
    assert_int_equal(run_safe_copy(to, from, sizeof to), 0);
    assert_string_equal(to, "abcdefg");
    assert_int_equal(run_read_string(to, (uint64_t)(uintptr_t)from, sizeof to), 7);
    assert_true(run_read_string(to, (uint64_t)(uintptr_t)from, 3) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_above_the_soft_limit),
        cmocka_unit_test(close_range_goes_around),
        cmocka_unit_test(as_many_as_there_are_places),
        cmocka_unit_test(copies_stop_where_memory_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
