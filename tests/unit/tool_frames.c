/* Frames from entries and exits: what closes them, and on which stack they are. */
#include <inlay/frames.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROOM = 64, FAR = 1 << 24 };
#define MAIN UINT64_C(0x7ffd00000000)

typedef struct seen {
    uint64_t total[16], inner[16];
    unsigned closed[16], order[64], count;
} seen;

static inlay_frame room[ROOM];
static inlay_frames frames;
static seen all;

static void closed(inlay_frames *f, const inlay_frame *frame, uint64_t now, void *arg)
{
    seen *s = arg;
    (void)f;
    s->total[frame->proc] += now - frame->start;
    s->inner[frame->proc] += frame->inner;
    s->closed[frame->proc]++;
    s->order[s->count++ % 64] = frame->proc;
}

static int begin(void **state)
{
    (void)state;
    all = (seen){0};
    inlay_frames_init(&frames, room, ROOM, closed, &all);
    return 0;
}

static uint32_t top(void) { return inlay_frames_top(&frames) ? inlay_frames_top(&frames)->proc : 0; }

static void calls_nest(void **state)
{
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN - 32, 10);
    inlay_frames_leave(&frames, 2, false, MAIN - 32, 25);
    inlay_frames_enter(&frames, 2, MAIN - 32, 30);
    inlay_frames_leave(&frames, 2, false, MAIN - 32, 31);
    inlay_frames_leave(&frames, 1, false, MAIN, 100);
    assert_int_equal(all.total[1], 100);
    assert_int_equal(all.inner[1], 16);
    assert_int_equal(all.closed[2], 2);
    assert_int_equal(frames.left + frames.unmatched, 0);
}

static void what_unwinds_closes_what_it_leaves(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 5; n++) inlay_frames_enter(&frames, n, MAIN - 16 * n, 10 * n);
    inlay_frames_enter(&frames, 6, MAIN - 32 - 8, 100); /* called by 2: 3, 4 and 5 are gone */
    assert_int_equal(all.count, 3);
    assert_int_equal(all.order[0], 5);
    assert_int_equal(all.total[3], 70);
    inlay_frames_leave(&frames, 1, false, MAIN - 16, 110); /* 2 and 6, too */
    assert_int_equal(all.count, 6);
    assert_int_equal(top(), 0);
}

/* Two coroutines, the second one's stack right below the first one's. */
static void stacks_may_lie_close_to_each_other(void **state)
{
    enum { STACK = 64 << 10 };
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN - FAR, 10);
    inlay_frames_enter(&frames, 3, MAIN - FAR - 64, 11);
    inlay_frames_enter(&frames, 4, MAIN - 16, 20); /* they wait */
    inlay_frames_enter(&frames, 5, MAIN - FAR - STACK, 30);
    inlay_frames_leave(&frames, 4, false, MAIN - 16, 40);
    inlay_frames_leave(&frames, 3, false, MAIN - FAR - 64, 50); /* goes on */
    assert_int_equal(top(), 2);
    inlay_frames_leave(&frames, 5, false, MAIN - FAR - STACK, 60);
    assert_int_equal(frames.left + frames.unmatched, 0);
}

/* A handler on a stack of its own that jumps out, past the frame that it interrupted. */
static void what_is_on_top_of_a_frame_that_is_left_is_gone(void **state)
{
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN - 64, 10);
    inlay_frames_enter(&frames, 3, MAIN - FAR, 20);
    inlay_frames_enter(&frames, 4, MAIN - 32, 30);
    assert_int_equal(all.count, 2);
    assert_int_equal(all.order[0], 3);
    assert_int_equal(all.order[1], 2);
    inlay_frames_enter(&frames, 5, MAIN - FAR - 400,
                       40); /* the next handler, somewhat lower: not called by the first */
    assert_int_equal(inlay_frames_below(&frames, inlay_frames_top(&frames))->proc, 4);
}

/* A tail call: the same stack pointer for the next one, whose exit is the caller's. */
static void jumps_go_on_at_the_same_place(void **state)
{
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN - 16, 1);
    inlay_frames_leave(&frames, 2, false, MAIN - 16, 2);
    inlay_frames_enter(&frames, 3, MAIN - 16, 2);
    assert_int_equal(inlay_frames_below(&frames, inlay_frames_top(&frames))->proc, 1);
    inlay_frames_leave(&frames, 3, false, MAIN - 16, 5);
    assert_int_equal(top(), 1);
    /* In the midst of it, to a part that lies elsewhere: it goes on. */
    inlay_frames_leave(&frames, 1, false, MAIN - 24, 6);
    assert_int_equal(top(), 1);
    assert_int_equal(frames.unmatched, 0);
}

static void stubs_leave_with_words_on_the_stack(void **state)
{
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN - 16, 1);
    inlay_frames_leave(&frames, 2, true, MAIN - 24, 2);
    assert_int_equal(all.closed[2], 1);
    inlay_frames_enter(&frames, 3, MAIN - 24, 3);
    inlay_frames_leave(&frames, 3, true, MAIN - 40, 4);
    assert_int_equal(all.closed[3], 1);
    assert_int_equal(top(), 1);
}

/* A handler on a stack of its own runs on top of what it interrupts. */
static void another_stack_is_on_top(void **state)
{
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN + FAR, 10);
    assert_int_equal(inlay_frames_below(&frames, inlay_frames_top(&frames))->proc, 1);
    inlay_frames_leave(&frames, 2, false, MAIN + FAR, 30);
    assert_int_equal(top(), 1);
    inlay_frames_leave(&frames, 1, false, MAIN, 100);
    assert_int_equal(all.total[1], 100);
    assert_int_equal(all.inner[1], 20);
}

/* Two that lie beside each other, nearer than a stack may be large. */
static void coroutines_wait_without_time(void **state)
{
    (void)state;
    const uint64_t stacks[] = {MAIN + FAR, MAIN + FAR + 65536};
    inlay_frames_enter(&frames, 1, MAIN, 0);
    for (unsigned k = 0; k < 2; k++) {
        inlay_frames_enter(&frames, 2, MAIN - 16, 10);
        inlay_frames_enter(&frames, 3 + k, stacks[k], 10);
        inlay_frames_enter(&frames, 5, stacks[k] - 16, 10);
        inlay_frames_leave(&frames, 2, false, MAIN - 16, 20);
    }
    for (unsigned k = 0; k < 2; k++) {
        inlay_frames_enter(&frames, 2, MAIN - 16, 100);
        inlay_frames_leave(&frames, 5, false, stacks[k] - 16, 103);
        assert_int_equal(top(), 3 + k);
        inlay_frames_leave(&frames, 3 + k, false, stacks[k], 105);
        assert_int_equal(top(), 2);
        inlay_frames_leave(&frames, 2, false, MAIN - 16, 110);
    }
    inlay_frames_leave(&frames, 1, false, MAIN, 200);
    assert_int_equal(all.total[1], 200);
    assert_int_equal(all.closed[5], 2);
    /* 10 until it yields, 2 behind that (its resumption is told by its first exit). */
    assert_int_equal(all.total[3], 12);
    assert_int_equal(all.total[4], 12);
}

static void what_is_open_at_the_end_is_closed(void **state)
{
    (void)state;
    inlay_frames_enter(&frames, 1, MAIN, 0);
    inlay_frames_enter(&frames, 2, MAIN - 16, 5);
    inlay_frames_end(&frames, 20);
    assert_int_equal(all.total[1], 20);
    assert_int_equal(all.total[2], 15);
    assert_int_equal(frames.left, 2);
    inlay_frames_leave(&frames, 9, false, MAIN + 512, 21);
    assert_int_equal(frames.unmatched, 1);
}

static void there_may_be_no_room(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < ROOM + 4; n++) inlay_frames_enter(&frames, 1, MAIN - 16 * n, n);
    assert_int_equal(frames.full, 5); /* the first place is nobody's */
    inlay_frames_leave(&frames, 1, false, MAIN, 100);
    assert_int_equal(all.closed[1], ROOM - 1);
}

/* Whatever comes: nothing is lost, and no frame is closed twice. */
static void random_events(void **state)
{
    (void)state;
    uint64_t seed = 1, entered = 0;
    for (unsigned k = 0; k < 200000; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t sp = MAIN + (seed >> 33) % 40 * (1 << 18) - (seed >> 50) % 16 * 8;
        uint32_t proc = (uint32_t)(seed >> 40) % 15 + 1;
        if (seed >> 63) entered += inlay_frames_enter(&frames, proc, sp, k) != NULL;
        else inlay_frames_leave(&frames, proc, seed >> 62 & 1, sp, k);
    }
    inlay_frames_end(&frames, 200000);
    uint64_t gone = 0;
    for (unsigned k = 0; k < 16; k++) gone += all.closed[k];
    assert_int_equal(gone, entered);
    assert_true(entered > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(calls_nest, begin),
        cmocka_unit_test_setup(what_unwinds_closes_what_it_leaves, begin),
        cmocka_unit_test_setup(stacks_may_lie_close_to_each_other, begin),
        cmocka_unit_test_setup(what_is_on_top_of_a_frame_that_is_left_is_gone, begin),
        cmocka_unit_test_setup(jumps_go_on_at_the_same_place, begin),
        cmocka_unit_test_setup(stubs_leave_with_words_on_the_stack, begin),
        cmocka_unit_test_setup(another_stack_is_on_top, begin),
        cmocka_unit_test_setup(coroutines_wait_without_time, begin),
        cmocka_unit_test_setup(what_is_open_at_the_end_is_closed, begin),
        cmocka_unit_test_setup(there_may_be_no_room, begin),
        cmocka_unit_test_setup(random_events, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
