/* A handler's frame is found on the stack that the handler runs on, and nothing else is taken for one. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "move/live.h"
#include "moved/private.h"

static unsigned found, right, cut;

static void handler(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    const uint64_t low = (uint64_t)(uintptr_t)__builtin_frame_address(0) & ~7ull, end = low + MOVE_ASK_WINDOW;
    for (uint64_t at = low; at < end; at += 8) {
        const run_frame *f = moved_frame_on(at, end);
        found += f != NULL;
        right += f && (const void *)&f->flags == context;
        cut += f && moved_frame_on(at, at + sizeof *f - 8) != NULL;
    }
}

/* The room is the stack's that is looked at behind the frame. */
static __attribute__((noinline)) void interrupt(int byte)
{
    volatile uint8_t room[2 * MOVE_ASK_WINDOW];
    memset((void *)room, byte, sizeof room);
    raise(SIGUSR1);
    assert_int_equal(room[MOVE_ASK_WINDOW], byte);
}

static void frame_is_found(void **state)
{
    (void)state;
    static const int bytes[] = {0, 0x40, 0xff};
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
    for (unsigned i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        found = right = cut = 0;
        interrupt(bytes[i]);
        assert_int_equal(found, 1);
        assert_int_equal(right, 1);
        assert_int_equal(cut, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frame_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
