/* The recorder's clock while others run as well: a thread is preempted between any two readings. Time is made here,
 * some nanoseconds for each reading. */
#include "../../tools/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

enum { READING = 20, AWAY = 5 * 1000 * 1000, TICKS_OF_10 = 25 }; /* ns, ns, of ten nanoseconds */

static uint64_t now;
static unsigned reading, away_at, away_for; /* preempted at each of so many readings */

static uint64_t read_now(void)
{
    now += READING + (reading - away_at < away_for ? AWAY : 0);
    reading++;
    return now;
}

uint64_t inlay_cycles_now(void) { return read_now() * TICKS_OF_10 / 10; }
uint64_t inlay_own_cycles_now(void) { return 0; }

int clock_gettime(clockid_t clock, struct timespec *t)
{
    uint64_t ns = read_now();
    (void)clock;
    *t = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return 0;
}

static void frequency_is_right(void **state)
{
    const uint64_t right = TICKS_OF_10 * 100000000ull;
    (void)state;
    for (away_for = 0; away_for < 8; away_for++)
        for (away_at = 0; away_at < 60; away_at++) {
            reading = 0;
            uint64_t found = trace_frequency(INLAY_TRACE_CYCLES);
            assert_true(found >= right - right / 1000 && found <= right + right / 1000);
        }
    assert_int_equal(trace_frequency(INLAY_TRACE_MONOTONIC), 1000000000);
}

static void pairs_are_of_one_moment(void **state)
{
    uint64_t ticks, ns;
    (void)state;
    for (away_at = 0, away_for = 3; away_at < 12; away_at++) {
        reading = 0;
        trace_pair(INLAY_TRACE_CYCLES, &ticks, &ns);
        uint64_t here = ticks * 10 / TICKS_OF_10;
        assert_true(here >= ns - READING && here <= ns + READING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequency_is_right),
        cmocka_unit_test(pairs_are_of_one_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
