/* Signal frames and sizes of the vector state on processors that are not at hand: their layouts, as CPUID tells
 * them, are fed in. AMX's tiles must be asked for: they are in no frame before the thread has used them; its
 * configuration is in every frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "run/x86_64/abi.h"
#include "run/x86_64/sigvectors.h"

/* clang-format off */
enum {
    ROOM = 16 << 10, STACK = 64 << 10, FLAGS = 8, FPSTATE_POINTER = 8 + 40 + 184, SW = 464,
    TILE_CONFIG = 2752, TILES = 2816, X87 = 1, SSE = 2, AVX = 4, AVX512 = 0xe0, UC_FP_XSTATE = 1,
};
/* clang-format on */
#define PKRU   (1ull << X86_PART_PKRU)
#define CONFIG (1ull << X86_PART_TILE_CONFIG)
#define DATA   (1ull << X86_PART_TILE_DATA)

/* Sapphire Rapids: component, size, offset, whether it is aligned in the compacted form. */
static void intel(unsigned sub, uint32_t out[4])
{
    static const uint32_t parts[][4] = {{2, 256, 576, 0}, {5, 64, 1088, 0},  {6, 512, 1152, 0},  {7, 1024, 1664, 0},
                                        {9, 8, 2688, 0},  {17, 64, 2752, 1}, {18, 8192, 2816, 1}};
    memset(out, 0, 16);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i][0] == sub) out[0] = parts[i][1], out[1] = parts[i][2], out[2] = parts[i][3] << 1;
}

/* Zen 4: closer together. */
static void amd(unsigned sub, uint32_t out[4])
{
    static const uint32_t parts[][3] = {{2, 256, 576}, {5, 64, 832}, {6, 512, 896}, {7, 1024, 1408}, {9, 8, 2432}};
    memset(out, 0, 16);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i][0] == sub) out[0] = parts[i][1], out[1] = parts[i][2];
}

static const uint64_t all = X87 | SSE | AVX | AVX512 | PKRU | CONFIG | DATA;

static void sizes_are_those_of_what_is_permitted(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, all, all & ~DATA, intel);
    assert_int_equal(x.room, 11008);
    assert_int_equal(x86_xstate_size(&x, UINT64_MAX), 2816);
    assert_int_equal(x86_xstate_size(&x, X87 | SSE | AVX | AVX512 | PKRU), 2696);
    assert_int_equal(x86_xstate_compacted(&x, 0xee), 2432);
    assert_int_equal(x86_xstate_compacted(&x, UINT64_MAX), 2432 + 8 + 56 + 64);
    x86_xstate_describe(&x, all, all, intel);
    assert_int_equal(x86_xstate_size(&x, UINT64_MAX), 11008);
    assert_int_equal(x86_xstate_compacted(&x, CONFIG | DATA), 576 + 64 + 8192);
    x86_xstate_describe(&x, X87 | SSE | AVX | AVX512 | PKRU, UINT64_MAX, amd);
    assert_int_equal(x86_xstate_size(&x, UINT64_MAX), 2440);
    x86_xstate_describe(&x, X87 | SSE, UINT64_MAX, amd);
    assert_int_equal(x86_xstate_size(&x, UINT64_MAX), 576);
    x86_xstate_describe(&x, 0, UINT64_MAX, amd);
    assert_int_equal(x86_xstate_size(&x, UINT64_MAX), 512);
    assert_int_equal(x.room, 576);
}

/* --- frames --- */

static char stack[STACK] __attribute__((aligned(64)));

static const run_engine engine; /* one that has no copies of code */

static run_thread *thread_on(const x86_xstate *x)
{
    run_thread *t = mmap(NULL, sizeof *t + ROOM + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(t, MAP_FAILED);
    sigvectors_use(x);
    run_sigframe_init();
    run_here.engine = &engine;
    t->frame.vector_area = (char *)(((uintptr_t)(t + 1) + 63) & ~63ull);
    t->frame.no_xsave = !x->xsave;
    run_vectors_init(t);
    t->altstack.ss_flags = SS_DISABLE;
    run_set_sp(&t->ctx, (uint64_t)(uintptr_t)stack + sizeof stack - 256);
    return t;
}

static uint8_t *area_of(run_thread *t) { return t->frame.vector_area; }

static void set_header(run_thread *t, uint64_t features) { memcpy(area_of(t) + 512, &features, 8); }

static void push(run_thread *t)
{
    siginfo_t info = {.si_signo = SIGUSR1};
    run_action a = {.handler = 0x1234, .flags = SA_SIGINFO | SA_RESTORER, .restorer = 0x5678};
    memset(stack, 0, sizeof stack);
    assert_true(run_sigframe_push(t, SIGUSR1, &info, &a, 0));
}

static uint8_t *state_in_frame(const run_thread *t)
{
    uint8_t *at;
    memcpy(&at, (const char *)(uintptr_t)run_sp(&t->ctx) + FPSTATE_POINTER, sizeof at);
    return at;
}

static void frame_says(const run_thread *t, uint32_t size, uint32_t extended, uint64_t features)
{
    uint32_t words[5], magic2;
    uint64_t told;
    const uint8_t *at = state_in_frame(t);
    memcpy(words, at + SW, sizeof words);
    memcpy(&told, at + SW + 8, sizeof told);
    assert_int_equal(words[0], FP_XSTATE_MAGIC1);
    assert_int_equal(words[1], extended);
    assert_int_equal(told, features);
    assert_int_equal(words[4], size);
    memcpy(&magic2, at + size, sizeof magic2);
    if (size > 512) assert_int_equal(magic2, FP_XSTATE_MAGIC2);
}

static void pop(run_thread *t, bool good)
{
    uint64_t mask;
    run_set_sp(&t->ctx, run_sp(&t->ctx) + 8);
    assert_int_equal(run_sigframe_pop(t, &mask), good);
}

static void tile_configuration_is_kept(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, all, all & ~DATA, intel);
    run_thread *t = thread_on(&x);
    memset(area_of(t) + TILE_CONFIG, 0x5a, 64);
    set_header(t, X87 | SSE | CONFIG);
    push(t);
    frame_says(t, 2816, 2820, all & ~DATA);
    assert_int_equal(state_in_frame(t)[TILE_CONFIG + 63], 0x5a);
    memset(area_of(t) + TILE_CONFIG, 0, 64);
    pop(t, true);
    assert_int_equal(area_of(t)[TILE_CONFIG], 0x5a);
    uint64_t header;
    memcpy(&header, area_of(t) + 512, 8);
    assert_int_equal(header, X87 | SSE | CONFIG);
}

static void tiles_are_in_frames_of_threads_that_use_them(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, all, all, intel);
    run_thread *t = thread_on(&x);
    push(t);
    frame_says(t, 2816, 2820, all & ~DATA);
    pop(t, true);
    memset(area_of(t) + TILES, 0x77, 8192);
    set_header(t, X87 | SSE | CONFIG | DATA);
    push(t);
    frame_says(t, 11008, 11012, all);
    memset(area_of(t) + TILES, 0, 8192);
    pop(t, true);
    assert_int_equal(area_of(t)[TILES + 8191], 0x77);
    set_header(t, X87 | SSE); /* released: the kernel's buffer stays as large */
    push(t);
    frame_says(t, 11008, 11012, all);
}

static void kernels_frame_tells_what_is_used(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, all, all, intel);
    run_thread *t = thread_on(&x);
    static uint8_t kernels[512];
    uint32_t magic = FP_XSTATE_MAGIC1;
    uint64_t features = all;
    memcpy(kernels + SW, &magic, 4);
    memcpy(kernels + SW + 8, &features, 8);
    ucontext_t uc = {.uc_mcontext.fpregs = (fpregset_t)kernels};
    run_vectors_note(t, &uc);
    push(t);
    frame_says(t, 11008, 11012, all);
}

static void larger_frames_than_permitted_are_legacy(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, all, all & ~DATA, intel);
    run_thread *t = thread_on(&x);
    memset(area_of(t) + 576, 0x11, 256);
    set_header(t, X87 | SSE | AVX);
    push(t);
    uint32_t size = 11008;
    memcpy(state_in_frame(t) + SW + 16, &size, sizeof size);
    pop(t, true);
    uint64_t header;
    memcpy(&header, area_of(t) + 512, 8);
    assert_int_equal(header, X87 | SSE);
}

static void keys_begin_as_the_kernel_sets_them(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, X87 | SSE | AVX | PKRU, UINT64_MAX, amd);
    run_thread *t = thread_on(&x);
    uint32_t pkru;
    memcpy(&pkru, area_of(t) + 2432, sizeof pkru);
    assert_int_equal(pkru, 0x55555554);
    push(t);
    frame_says(t, 2440, 2444, X87 | SSE | AVX | PKRU);
}

static void without_xsave_frames_end_at_512(void **state)
{
    (void)state;
    x86_xstate x;
    x86_xstate_describe(&x, 0, UINT64_MAX, amd);
    run_thread *t = thread_on(&x);
    area_of(t)[160] = 0x42;
    push(t);
    frame_says(t, 512, 516, 0);
    uint64_t flags;
    memcpy(&flags, (const char *)(uintptr_t)run_sp(&t->ctx) + FLAGS, sizeof flags);
    assert_false(flags & UC_FP_XSTATE);
    area_of(t)[160] = 0;
    pop(t, true);
    assert_int_equal(area_of(t)[160], 0x42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_what_is_permitted),
        cmocka_unit_test(tile_configuration_is_kept),
        cmocka_unit_test(tiles_are_in_frames_of_threads_that_use_them),
        cmocka_unit_test(kernels_frame_tells_what_is_used),
        cmocka_unit_test(larger_frames_than_permitted_are_legacy),
        cmocka_unit_test(keys_begin_as_the_kernel_sets_them),
        cmocka_unit_test(without_xsave_frames_end_at_512),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
