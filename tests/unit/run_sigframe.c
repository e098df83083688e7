/* The frame Inlay builds for a handler, against one that the kernel built: the same bytes at the same
 * distance from the top of the alternate stack; and the way back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "run/kernel.h"
#include "run/x86_64/abi.h"

enum { STACK = 64 << 10, FRAME = 440, INFO = 312, MASK = 304, FPSTATE_POINTER = 8 + 40 + 184 };

static char kernel_stack[STACK] __attribute__((aligned(4096)));
static char our_stack[STACK] __attribute__((aligned(4096)));
static char copy[STACK];
static siginfo_t seen_info;
static ucontext_t *seen_context;
static uint64_t frame_at; /* offset of the kernel's frame in its stack */

static void handler(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    seen_info = *info;
    seen_context = uc;
    frame_at = (uint64_t)((char *)uc - 8 - kernel_stack);
    memcpy(copy, kernel_stack, sizeof copy);
}

static void receive_a_signal(void)
{
    stack_t ss = {.ss_sp = kernel_stack, .ss_size = sizeof kernel_stack};
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    memset(kernel_stack, 0, sizeof kernel_stack);
    assert_int_equal(sigaltstack(&ss, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
    __asm__ volatile("pcmpeqd %%xmm7, %%xmm7" ::: "xmm7");
    raise(SIGUSR1);
}

static uint64_t word(const char *stack, uint64_t at)
{
    uint64_t v;
    memcpy(&v, stack + at, sizeof v);
    return v;
}

static const run_engine engine; /* one that has no copies of code */

/* A thread that is where the kernel's frame says, with the vector state the kernel saved. */
static run_thread *thread_like_it(void)
{
    run_thread *t = mmap(NULL, 2 * sizeof *t + (64 << 10), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(t, MAP_FAILED);
    t->frame.vector_area = (char *)(((uintptr_t)(t + 1) + 63) & ~63ull);
    run_here.engine = &engine;
    run_vectors_begin(t);
    run_vectors_note(t, copy + frame_at + 8);
    run_uc_context(copy + frame_at + 8, t, 0, &t->ctx);
    run_uc_keep_trap(t, copy + frame_at + 8);
    uint64_t fp = word(copy, frame_at + FPSTATE_POINTER) - (uint64_t)(uintptr_t)kernel_stack;
    memcpy(t->frame.vector_area, copy + fp, (size_t)(STACK - fp) < run_vector_room() ? STACK - fp : run_vector_room());
    memset((char *)t->frame.vector_area + 464, 0, 48);
    t->altstack = (stack_t){.ss_sp = our_stack, .ss_size = sizeof our_stack};
    return t;
}

static void relocate(char *stack, uint64_t at, uint64_t from, uint64_t to)
{
    uint64_t v = word(stack, at) - from + to;
    memcpy(stack + at, &v, sizeof v);
}

static void same_bytes(const char *what, uint64_t low, uint64_t high)
{
    for (uint64_t i = low; i < high; i++)
        if (copy[i] != our_stack[i])
            fail_msg("%s: byte %ld: kernel %#x, Inlay %#x", what, (long)(i - low), copy[i] & 0xff, our_stack[i] & 0xff);
}

static void frame_equals_the_kernels(void **state)
{
    (void)state;
    receive_a_signal();
    run_sigframe_init();
    run_thread *t = thread_like_it();
    uint64_t mask = word(copy, frame_at + MASK);
    run_action a = {
        .handler = 0x1234, .flags = SA_ONSTACK | SA_SIGINFO | SA_RESTORER, .restorer = word(copy, frame_at)};
    weave_context before = t->ctx;
    assert_true(run_sigframe_push(t, SIGUSR1, &seen_info, &a, mask));

    uint64_t sp = run_sp(&t->ctx) - (uint64_t)(uintptr_t)our_stack;
    assert_int_equal(sp, frame_at);
    assert_int_equal(t->ctx.pc, 0x1234);
    assert_int_equal(t->ctx.gpr[RUN_RDI], SIGUSR1);
    assert_int_equal(t->ctx.gpr[RUN_RSI], (uint64_t)(uintptr_t)our_stack + sp + INFO);
    assert_int_equal(t->ctx.gpr[RUN_RDX], (uint64_t)(uintptr_t)our_stack + sp + 8);
    relocate(our_stack, frame_at + 8 + 16, (uint64_t)our_stack, (uint64_t)kernel_stack);
    relocate(our_stack, frame_at + FPSTATE_POINTER, (uint64_t)our_stack, (uint64_t)kernel_stack);
    same_bytes("frame", frame_at, frame_at + FRAME);
    uint64_t fp = word(copy, frame_at + FPSTATE_POINTER) - (uint64_t)(uintptr_t)kernel_stack;
    same_bytes("vector state", fp, STACK);

    relocate(our_stack, frame_at + 8 + 16, (uint64_t)kernel_stack, (uint64_t)our_stack);
    relocate(our_stack, frame_at + FPSTATE_POINTER, (uint64_t)kernel_stack, (uint64_t)our_stack);
    run_set_sp(&t->ctx, run_sp(&t->ctx) + 8);
    uint64_t back = 0;
    t->ctx.gpr[RUN_RBX] = 77;
    assert_true(run_sigframe_pop(t, &back));
    assert_int_equal(back, mask);
    assert_memory_equal(t->ctx.gpr, before.gpr, sizeof before.gpr);
    assert_int_equal(t->ctx.pc, before.pc);
    static const char ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    assert_memory_equal((char *)t->frame.vector_area + 160 + 16 * 7, ones, sizeof ones);
}

static void small_stack_is_refused(void **state)
{
    (void)state;
    run_thread *t = thread_like_it();
    run_action a = {.handler = 0x1234, .flags = SA_ONSTACK | SA_SIGINFO | SA_RESTORER};
    t->altstack.ss_size = 512;
    assert_false(run_sigframe_push(t, SIGUSR1, &seen_info, &a, 0));
    a.flags = SA_ONSTACK | SA_SIGINFO;
    t->altstack.ss_size = sizeof our_stack;
    assert_false(run_sigframe_push(t, SIGUSR1, &seen_info, &a, 0));
}

static void invalid_mxcsr_is_refused(void **state)
{
    (void)state;
    run_thread *t = thread_like_it();
    run_action a = {.handler = 0x1234, .flags = SA_ONSTACK | SA_SIGINFO | SA_RESTORER};
    uint64_t pc = t->ctx.pc, rbx = t->ctx.gpr[RUN_RBX];
    assert_true(run_sigframe_push(t, SIGUSR1, &seen_info, &a, RUN_BIT(SIGUSR2)));
    t->ctx.gpr[RUN_RBX] = ~rbx;
    uint64_t sp = run_sp(&t->ctx) - (uint64_t)(uintptr_t)our_stack;
    uint64_t fp = word(our_stack, sp + FPSTATE_POINTER) - (uint64_t)(uintptr_t)our_stack;
    our_stack[fp + 24 + 3] = (char)0x80;
    run_set_sp(&t->ctx, run_sp(&t->ctx) + 8);
    uint64_t mask = 0;
    assert_false(run_sigframe_pop(t, &mask));
    assert_int_equal(mask, RUN_BIT(SIGUSR2)); /* all else is as a good frame has it */
    assert_int_equal(t->ctx.pc, pc);
    assert_int_equal(t->ctx.gpr[RUN_RBX], rbx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_equals_the_kernels),
        cmocka_unit_test(small_stack_is_refused),
        cmocka_unit_test(invalid_mxcsr_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
