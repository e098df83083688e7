/* The frame that Inlay builds for a handler on AArch64: against one that the kernel built, the same bytes at the same
 * distance from the top of the alternate stack; and handed to the kernel, which returns from it to what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <asm/sigcontext.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "run/aarch64/abi.h"
#include "run/aarch64/sigframe.h"
#include "run/aarch64/sigvectors.h"
#include "weave/aarch64/vectors.h"

enum { STACK = 64 << 10, LENGTH_BITS = 0xffff };

static char kernel_stack[STACK] __attribute__((aligned(4096)));
static char our_stack[STACK] __attribute__((aligned(4096)));
static char copy[STACK];
static siginfo_t seen_info;
static uint64_t frame_at, link_at; /* offsets of the kernel's frame and of the two words in its stack */

static unsigned vector_length(void)
{
    int answer = prctl(PR_SVE_GET_VL);
    return answer < 0 ? 0 : (unsigned)answer & LENGTH_BITS;
}

static void handler(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    uint64_t *link = __builtin_frame_address(0);
    seen_info = *info;
    frame_at = (uint64_t)((char *)uc - RUN_FRAME_CONTEXT - kernel_stack);
    link_at = link[0] - (uint64_t)(uintptr_t)kernel_stack; /* the handler's x29 */
    memcpy(copy, kernel_stack, sizeof copy);
}

static void receive_a_signal(void)
{
    stack_t ss = {.ss_sp = kernel_stack, .ss_size = sizeof kernel_stack};
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    memset(kernel_stack, 0, sizeof kernel_stack);
    assert_int_equal(sigaltstack(&ss, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
    __asm__ volatile("movi v7.16b, #0xa5" ::: "v7");
    raise(SIGUSR1);
}

static run_thread *new_thread(void)
{
    size_t room = sizeof(run_thread) + run_vector_room() + 64;
    run_thread *t = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(t, MAP_FAILED);
    t->frame.vector_area = (char *)(((uintptr_t)(t + 1) + 63) & ~63ull);
    run_vectors_begin(t);
    t->altstack = (stack_t){.ss_sp = our_stack, .ss_size = sizeof our_stack};
    return t;
}

/* A thread that is where the kernel's frame says, with the vector state that the kernel saved. */
static run_thread *thread_like_it(void)
{
    run_thread *t = new_thread();
    const void *uc = copy + frame_at + RUN_FRAME_CONTEXT;
    run_uc_context(uc, t, 0, &t->ctx);
    run_uc_keep_trap(t, uc);
    assert_true(sigvectors_take(t, (uint64_t)(uintptr_t)copy + frame_at + RUN_FRAME_RECORDS));
    return t;
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
    run_thread *t = thread_like_it();
    run_frame *k = (run_frame *)(copy + frame_at);
    run_action a = {.handler = 0x1234, .flags = SA_ONSTACK | SA_SIGINFO | SA_RESTORER, .restorer = 0x5678};
    weave_context before = t->ctx;
    k->stack.ss_sp = our_stack;
    assert_true(run_sigframe_push(t, SIGUSR1, &seen_info, &a, k->mask));

    uint64_t sp = run_sp(&t->ctx) - (uint64_t)(uintptr_t)our_stack;
    assert_int_equal(t->ctx.pc, 0x1234);
    assert_int_equal(t->ctx.gpr[0], SIGUSR1);
    assert_int_equal(t->ctx.gpr[1], (uint64_t)(uintptr_t)our_stack + sp);
    assert_int_equal(t->ctx.gpr[2], (uint64_t)(uintptr_t)our_stack + sp + RUN_FRAME_CONTEXT);
    assert_int_equal(t->ctx.gpr[29], (uint64_t)(uintptr_t)our_stack + link_at);
    assert_int_equal(t->ctx.gpr[30], 0x5678);
    if (!vector_length()) { /* the kernel leaves long vectors out at a system call */
        assert_int_equal(sp, frame_at);
        same_bytes("frame", frame_at, link_at + 16);
    } else {
        memmove(our_stack + frame_at, our_stack + sp, offsetof(run_frame, mc.__reserved));
        memcpy(our_stack + frame_at + RUN_FRAME_RECORDS, our_stack + sp + RUN_FRAME_RECORDS,
               sizeof(struct fpsimd_context));
        same_bytes("context", frame_at, frame_at + RUN_FRAME_RECORDS + sizeof(struct fpsimd_context));
        same_bytes("link", link_at, link_at + 16);
    }
    uint8_t area[WEAVE_VECTOR_ROOM];
    memcpy(area, t->frame.vector_area, sizeof area);
    assert_int_equal(area[16 * 7 + 15], 0xa5);
    memset(t->frame.vector_area, 0x55, sizeof area);
    uint64_t back = 0;
    t->ctx.gpr[19] = 77;
    if (vector_length()) return; /* it has been moved */
    assert_true(run_sigframe_pop(t, &back));
    assert_int_equal(back, k->mask);
    assert_memory_equal(t->ctx.gpr, before.gpr, sizeof before.gpr);
    assert_int_equal(t->ctx.pc, before.pc);
    assert_memory_equal(area, t->frame.vector_area, sizeof area);
}

/* --- given to the kernel --- */

static sigjmp_buf way_back;
static run_thread *arrived;
static uint64_t arrived_sp;

static void landed(void)
{
    arrived_sp = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    siglongjmp(way_back, 1);
}

static void note_syndrome(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    (void)info;
    run_uc_keep_trap(arrived, uc);
    siglongjmp(way_back, 1);
}

/* As the kernel gives it, if it does, in the frame of a fault. */
static uint64_t syndrome_of_a_write(void)
{
    struct sigaction sa = {.sa_sigaction = note_syndrome, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, NULL);
    volatile uint64_t nowhere = 16;
    if (!sigsetjmp(way_back, 1)) *(volatile char *)nowhere = 1;
    signal(SIGSEGV, SIG_DFL);
    assert_int_equal(arrived->trap_addr, 16);
    return arrived->trap_err;
}

static void fill(run_thread *t)
{
    uint8_t *area = t->frame.vector_area;
    unsigned length = vector_length();
    for (unsigned i = 0; i < 512; i++) area[i] = (uint8_t)(i * 7 + 1);
    area[VECTOR_STATUS] = 0x10; /* inexact */
    for (unsigned i = 0; i < 32 * length; i++)
        area[VECTOR_LONG + i] = i % length < 16 ? area[i / length * 16 + i % length] : (uint8_t)(i * 5 + 3);
    for (unsigned i = 32 * length; i < 32 * length + 17 * length / 8; i++) area[VECTOR_LONG + i] = (uint8_t)(i * 3);
    memset(area + VECTOR_LONG + 32 * length + 16 * length / 8, 0xff, length / 8); /* only such are first faults' */
}

static void kernel_returns_from_it(void **state)
{
    (void)state;
    static char stack[STACK] __attribute__((aligned(16)));
    run_action a = {.handler = 0x1234, .flags = SA_ONSTACK | SA_SIGINFO};
    sigset_t mask;
    uint64_t saved = 0;
    run_thread *t = new_thread();
    arrived = new_thread();
    fill(t);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    memcpy(&saved, &mask, sizeof saved);
    t->trap_err = syndrome_of_a_write(); /* a record of its own, where the kernel knows such */
    t->ctx.pc = (uint64_t)(uintptr_t)arrived->frame.save_vectors;
    t->ctx.gpr[17] = (uint64_t)(uintptr_t)arrived;
    t->ctx.gpr[30] = (uint64_t)(uintptr_t)landed;
    run_set_sp(&t->ctx, (uint64_t)(uintptr_t)stack + STACK);
    assert_true(run_sigframe_push(t, SIGUSR1, &seen_info, &a, saved));
    weave_context c = {.tls_base = run_tls_base()};
    if (!sigsetjmp(way_back, 1)) run_sigreturn_for_good(run_sp(&t->ctx), &c);
    assert_true(arrived_sp - (uint64_t)(uintptr_t)stack <= STACK);
    assert_memory_equal(arrived->frame.vector_area, t->frame.vector_area, WEAVE_VECTOR_ROOM);

    uint8_t area[WEAVE_VECTOR_ROOM];
    memcpy(area, t->frame.vector_area, sizeof area);
    memset(t->frame.vector_area, 0x55, sizeof area);
    assert_true(run_sigframe_pop(t, &saved));
    assert_memory_equal(area, t->frame.vector_area, sizeof area);
}

static void what_the_kernel_refuses_is_refused(void **state)
{
    (void)state;
    run_thread *t = new_thread();
    run_action a = {.handler = 0x1234, .flags = SA_ONSTACK | SA_SIGINFO};
    uint64_t mask;
    t->altstack.ss_size = 4096;
    assert_false(run_sigframe_push(t, SIGUSR1, &seen_info, &a, 0)); /* no room */
    t->altstack.ss_size = sizeof our_stack;
    assert_true(run_sigframe_push(t, SIGUSR1, &seen_info, &a, 0));
    run_frame *f = (run_frame *)run_sp(&t->ctx);
    struct _aarch64_ctx *first = (struct _aarch64_ctx *)f->mc.__reserved;
    first->size -= 16;
    assert_false(run_sigframe_pop(t, &mask));
    first->size += 16;
    first->magic ^= 1;
    assert_false(run_sigframe_pop(t, &mask));
    first->magic ^= 1;
    run_set_sp(&t->ctx, run_sp(&t->ctx) + 8);
    assert_false(run_sigframe_pop(t, &mask)); /* not aligned */
    run_set_sp(&t->ctx, run_sp(&t->ctx) - 8);
    assert_true(run_sigframe_pop(t, &mask));
}

static void writes_are_told_from_reads(void **state)
{
    (void)state;
    ucontext_t *uc = calloc(1, sizeof *uc);
    struct esr_context esr = {{ESR_MAGIC, sizeof esr}, 0x92000046};
    struct fpsimd_context f = {.head = {FPSIMD_MAGIC, sizeof f}};
    assert_false(run_uc_is_write(uc));
    memcpy(uc->uc_mcontext.__reserved, &f, sizeof f);
    memcpy(uc->uc_mcontext.__reserved + sizeof f, &esr, sizeof esr);
    assert_true(run_uc_is_write(uc));
    esr.esr = 0x92000006;
    memcpy(uc->uc_mcontext.__reserved + sizeof f, &esr, sizeof esr);
    assert_false(run_uc_is_write(uc));
    free(uc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_equals_the_kernels),
        cmocka_unit_test(kernel_returns_from_it),
        cmocka_unit_test(what_the_kernel_refuses_is_refused),
        cmocka_unit_test(writes_are_told_from_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
