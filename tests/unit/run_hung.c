/* What asks to end while the tool's code runs: it is kept where it comes once more too soon, by the time itself and not
 * by how many seconds have begun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run/kernel.h"

enum { SECOND = 1000, TOO_SOON = 1100, STILL_TOO_SOON = 1700, TRIES = 50 };

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Near the end of a second, so that another one is over a little later, and a third one has begun. */
static void await_end_of_second(void)
{
    while (milliseconds() % SECOND < SECOND - 50) usleep(1000);
}

/* False: this machine was too busy for it to be soon. */
static bool keeps(run_thread *t, const siginfo_t *info)
{
    uint64_t mask = ~(uint64_t)0;
    await_end_of_second();
    int64_t began = milliseconds();
    run_hung_watch(t, &mask);
    assert_false(mask & RUN_BIT(SIGTERM));
    usleep(TOO_SOON * 1000);
    if (milliseconds() - began > STILL_TOO_SOON) return false;
    assert_true(run_hung_again(t, info, NULL, true));
    return true;
}

static void two_seconds_are_whole(void **state)
{
    (void)state;
    static run_thread t;
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGTERM;
    t.pending.info.si_signo = SIGHUP;
    bool tried = false;
    for (int i = 0; i < TRIES && !tried; i++) tried = keeps(&t, &info);
    assert_true(tried);
    assert_true(t.hung.again_set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_seconds_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
