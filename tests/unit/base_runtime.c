/* Errors, log lines, the lock under contention, and raw system calls. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sys.h"

static void test_error_text_and_code(void **state)
{
    (void)state;
    inl_error e;
    assert_int_equal(inl_fail(&e, INL_ERR_FORMAT, "%s: bad %d\n", "a.out", 7), INL_ERR_FORMAT);
    assert_int_equal(e.code, INL_ERR_FORMAT);
    assert_int_equal(e.address, 0);
    assert_string_equal(e.text, "a.out: bad 7");
    assert_int_equal(inl_fail_at(&e, INL_ERR_RANGE, 0x1234, "far"), INL_ERR_RANGE);
    assert_int_equal(e.address, 0x1234);
    assert_string_equal(e.text, "far");
    assert_int_equal(inl_fail(NULL, INL_ERR_USAGE, "nobody listens"), INL_ERR_USAGE);
}

static void test_error_may_wrap_its_own_text(void **state)
{
    (void)state;
    inl_error e;
    inl_fail(&e, INL_ERR_NOT_FOUND, "no such file");
    inl_fail(&e, e.code, "cannot open x: %s", e.text);
    assert_string_equal(e.text, "cannot open x: no such file");
}

static void test_long_error_is_cut(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    inl_error e;
    inl_fail(&e, INL_ERR_SYSTEM, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

/* Log lines go to a pipe. */

static int log_pipe[2];

static int open_log(void **state)
{
    (void)state;
    if (pipe(log_pipe)) return -1;
    inl_log_fd = log_pipe[1];
    inl_log_mask = 0;
    return 0;
}

static int close_log(void **state)
{
    (void)state;
    inl_log_fd = 2;
    inl_log_mask = 0;
    return close(log_pipe[0]) | close(log_pipe[1]);
}

static size_t logged(char *out, size_t size)
{
    ssize_t n = read(log_pipe[0], out, size - 1);
    assert_true(n > 0);
    out[n] = '\0';
    return (size_t)n;
}

static void test_log_names(void **state)
{
    (void)state;
    assert_true(inl_log_enable(""));
    assert_int_equal(inl_log_mask, 0);
    assert_false(inl_log_enable("cache,nonsense"));
    assert_false(inl_log_enable("cach"));
    assert_int_equal(inl_log_mask, 0);
    assert_true(inl_log_enable("cache,signal"));
    assert_int_equal(inl_log_mask, 1u << INL_LOG_CACHE | 1u << INL_LOG_SIGNAL);
    assert_true(inl_log_enable("all"));
    assert_int_equal(inl_log_mask, (1u << INL_LOG_DOMAINS) - 1);

    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    inl_log_list(f);
    fclose(f);
    assert_non_null(strstr(text, "translate"));
    assert_non_null(strstr(text, "all"));
    free(text);
}

static int evaluated;

static int evaluate(void) { return ++evaluated; }

static void test_log_line(void **state)
{
    (void)state;
    evaluated = 0;
    inl_log(INL_LOG_CACHE, "%d", evaluate());
    assert_int_equal(evaluated, 0); /* off: arguments are not evaluated */
    assert_true(inl_log_enable("cache"));
    errno = EXDEV;
    inl_log(INL_LOG_SIGNAL, "off");
    inl_log(INL_LOG_CACHE, "at %#x, %d", 0x1000, evaluate());
    assert_int_equal(errno, EXDEV);
    char line[256], expected[64];
    logged(line, sizeof line);
    snprintf(expected, sizeof expected, "inlay %d cache: at 0x1000, 1\n", (int)getpid());
    assert_string_equal(line, expected);
}

static void test_long_log_line_is_cut(void **state)
{
    (void)state;
    char text[3000], line[4000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_true(inl_log_enable("image"));
    inl_log(INL_LOG_IMAGE, "%s", text);
    size_t n = logged(line, sizeof line);
    assert_true(n > 900 && n <= 1024);
    assert_int_equal(line[n - 1], '\n');
    assert_int_equal(line[n - 2], 'y');
}

/* The lock. */

enum { THREADS = 4, ROUNDS = 20000 };
static inl_lock lock;
static volatile uint64_t guarded;

static void *count_up(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        inl_lock_take(&lock);
        guarded = guarded + 1;
        if (i % 64 == 0) sys_call0(SYS_sched_yield); /* make the others sleep on it */
        inl_lock_release(&lock);
    }
    return NULL;
}

static void test_lock_excludes(void **state)
{
    (void)state;
    guarded = 0;
    pthread_t t[THREADS];
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, count_up, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    assert_int_equal(guarded, (uint64_t)THREADS * ROUNDS);
    assert_int_equal(lock.word, 0);
}

static volatile bool asks;

static void *take_once(void *arg)
{
    asks = true;
    inl_lock_take(&lock);
    inl_lock_release(&lock);
    return arg;
}

/* One sleeps on it, and nobody takes it afterwards: the release itself must wake. */
static void test_lock_wakes_the_only_one_who_waits(void **state)
{
    (void)state;
    pthread_t t;
    void *answer = NULL;
    struct timespec until;
    asks = false;
    inl_lock_take(&lock);
    assert_int_equal(pthread_create(&t, NULL, take_once, &lock), 0);
    while (!asks) sys_call0(SYS_sched_yield);
    usleep(100000); /* asleep by now */
    inl_lock_release(&lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    assert_int_equal(pthread_timedjoin_np(t, &answer, &until), 0);
    assert_ptr_equal(answer, &lock);
}

static void test_lock_is_reset_in_a_forked_child(void **state)
{
    (void)state;
    inl_lock_take(&lock);
    pid_t child = fork();
    if (child == 0) {
        inl_lock_reset(&lock);
        inl_lock_take(&lock);
        inl_lock_release(&lock);
        _exit(lock.word);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    inl_lock_release(&lock);
}

static void test_raw_system_calls(void **state)
{
    (void)state;
    errno = EXDEV;
    assert_int_equal(sys_call0(SYS_getpid), getpid());
    long answer = sys_call1(SYS_close, -1);
    assert_int_equal(answer, -EBADF);
    assert_true(sys_failed(answer));
    assert_int_equal(errno, EXDEV);
    long page = sys_call(SYS_mmap, 0, 4096, 3, 0x22, -1, 0); /* six arguments */
    assert_false(sys_failed(page));
    *(volatile char *)page = 1;
    assert_int_equal(sys_call2(SYS_munmap, page, 4096), 0);
}

static inl_lock busy_lock, free_lock;
static bool enough;

static void *takes_and_releases(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
        inl_lock_take(&busy_lock);
        inl_lock_release(&busy_lock);
    }
    return NULL;
}

/* The order of locks is watched, and a fork leaves a thread behind that is just being asked about one. */
static void test_watched_locks_over_fork(void **state)
{
    (void)state;
    pthread_t other;
    inl_debug = true;
    assert_int_equal(pthread_create(&other, NULL, takes_and_releases, NULL), 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(20); /* or it would wait for ever */
            inl_lock_take(&free_lock);
            inl_lock_release(&free_lock);
            _exit(0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    inl_debug = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_text_and_code),
        cmocka_unit_test(test_error_may_wrap_its_own_text),
        cmocka_unit_test(test_long_error_is_cut),
        cmocka_unit_test_setup_teardown(test_log_names, open_log, close_log),
        cmocka_unit_test_setup_teardown(test_log_line, open_log, close_log),
        cmocka_unit_test_setup_teardown(test_long_log_line_is_cut, open_log, close_log),
        cmocka_unit_test(test_lock_excludes),
        cmocka_unit_test(test_lock_wakes_the_only_one_who_waits),
        cmocka_unit_test(test_lock_is_reset_in_a_forked_child),
        cmocka_unit_test(test_raw_system_calls),
        cmocka_unit_test(test_watched_locks_over_fork),
    };
    return cmocka_run_group_tests_name("base: errors, log, lock", tests, NULL, NULL);
}
