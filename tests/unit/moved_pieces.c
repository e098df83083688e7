/* A piece whose tables are looked at stays mapped: a mutator unmaps those into whose text no register and no word of
 * memory leads, wherever threads are stopped (live/in_use.c). */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <ucontext.h>

#include "moved/pieces.h"

enum { TEXT = 0x7130000, TEXT_SIZE = 0x4000, OLD = 0x52410000, TABLES = 0x1000, WORDS = sizeof(mcontext_t) / 8 };

static moved_piece piece = {.image = {.text = TEXT, .text_size = TEXT_SIZE, .map_base = OLD}};
static const uint64_t *stack_end;
static bool leads_there;
static sigjmp_buf away;

/* All of the stack, and so what lies between variables, too. */
__attribute__((no_sanitize("address"))) static void look(const uint64_t *from, const uint64_t *to)
{
    for (const uint64_t *w = from; w < to; w++) leads_there = leads_there || *w - TEXT < TEXT_SIZE;
}

/* The tables cannot be read: whoever looks at them is stopped here. */
static void stopped(int signo, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    const uint64_t *registers = (const uint64_t *)&uc->uc_mcontext;
    (void)signo, (void)info;
    look(registers, registers + WORDS);
    look((const uint64_t *)((uintptr_t)__builtin_frame_address(0) & ~7ull), stack_end);
    siglongjmp(away, 1);
}

static void what_is_looked_at_is_led_to(void **state)
{
    struct sigaction on = {.sa_sigaction = stopped, .sa_flags = SA_SIGINFO}, before;
    (void)state;
    piece.image.map = mmap(NULL, TABLES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved_pieces_now = (moved_pieces){.all = &piece, .count = 1};
    stack_end = __builtin_frame_address(0);
    sigaction(SIGSEGV, &on, &before);
    if (!sigsetjmp(away, 1)) moved_piece_to(OLD);
    sigaction(SIGSEGV, &before, NULL);
    moved_pieces_now = (moved_pieces){0};
    assert_true(leads_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_looked_at_is_led_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
