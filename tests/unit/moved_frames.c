/* A handler's frame is found on the stack that the handler runs on, and nothing else is taken for one. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "moved/private.h"

enum { ROOM = 256 << 10 };

static uint8_t *stack;
static unsigned found, right, cut;

static void look(uint64_t low, uint64_t end, const void *context)
{
    for (uint64_t at = (low + 7) & ~7ull; at < end; at += 8) {
        const run_frame *f = moved_frame_on(at, end);
        found += f != NULL;
        right += f && (const void *)&f->flags == context;
        cut += f && moved_frame_on(at, at + sizeof *f - 8) != NULL;
    }
}

/* Behind its own frame is nothing but the kernel's. */
static void handler(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    look((uint64_t)(uintptr_t)__builtin_frame_address(0), (uint64_t)(uintptr_t)stack + ROOM, context);
}

static void frame_is_found(void **state)
{
    (void)state;
    struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack = malloc(ROOM);
    assert_non_null(stack);
    stack_t own = {.ss_sp = stack, .ss_size = ROOM}, before;
    assert_int_equal(sigaltstack(&own, &before), 0);
    assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
    raise(SIGUSR1);
    assert_int_equal(sigaltstack(&before, NULL), 0);
    free(stack);
    assert_int_equal(found, 1);
    assert_int_equal(right, 1);
    assert_int_equal(cut, 0);
}

/* Not in words of any kind, be they addresses of what is there. */
static void nothing_else_is(void **state)
{
    (void)state;
    uint64_t *words = calloc(ROOM, 1);
    assert_non_null(words);
    const uint64_t low = (uint64_t)(uintptr_t)words, end = low + ROOM;
    found = 0;
    look(low, end, NULL);
    for (size_t i = 0; i < ROOM / 8; i++) words[i] = (low + 8 * i + 1024) & ~63ull;
    look(low, end, NULL);
    memset(words, 0xff, ROOM);
    look(low, end, NULL);
    free(words);
    assert_int_equal(found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frame_is_found), cmocka_unit_test(nothing_else_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
