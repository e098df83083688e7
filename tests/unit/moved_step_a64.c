/* Single steps out of line (moved/aarch64/step.c): a procedure that is stepped through, instruction by instruction,
 * computes what it does when it is called; and a signal in the middle of a step finds the thread where it is in the
 * procedure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "moved/private.h"

enum { WORDS = 12, MOST = 200, INSN = 4 };

/* void stepped_walk(uint64_t out[WORDS]); stepped_trap is a breakpoint in front of it. What depends on where it stands:
 * addresses, literals, branches of all kinds that are taken and that are not; what must not be trapped in its middle.
 */
void stepped_walk(uint64_t *out);
void stepped_trap(uint64_t *out);
extern const char stepped_end[], stepped_add[], stepped_cond[], stepped_far[];
__asm__(".text\n"
        ".balign 4096\n"
        ".globl stepped_walk, stepped_trap, stepped_end, stepped_add, stepped_cond, stepped_far\n"
        "stepped_trap: brk 7\n"
        "stepped_walk:\n"
        "  stp x29, x30, [sp, -16]!\n"
        "  adr x1, stepped_walk\n"
        "  adrp x2, stepped_walk\n"
        "  stp x1, x2, [x0]\n"
        "  ldr x3, 7f\n"
        "  ldrsw x4, 7f\n"
        "  ldr d5, 7f\n"
        "  fmov x5, d5\n"
        "  stp x3, x4, [x0, 16]\n"
        "  str x5, [x0, 32]\n"
        "  mov x6, 3\n"
        "  mov x7, 0\n"
        "1:\n"
        "stepped_add: add x7, x7, x6\n"
        "  subs x6, x6, 1\n"
        "stepped_cond: b.ne 1b\n"
        "  cbnz x6, 9f\n"
        "  cbz x6, 2f\n"
        "  mov x7, 99\n"
        "2: tbnz x7, 0, 9f\n"
        "  tbz x7, 0, 3f\n"
        "  mov x7, 98\n"
        "3: str x7, [x0, 40]\n"
        "  bl 8f\n"
        "  adr x9, 8f\n"
        "  blr x9\n"
        "  str x8, [x0, 48]\n"
        "  add x10, x0, 56\n"
        "  mov x12, 41\n"
        "  str x12, [x10]\n"
        "4: ldaxr x11, [x10]\n"
        "  add x11, x11, 1\n"
        "  stlxr w12, x11, [x10]\n"
        "  cbnz w12, 4b\n"
        "  mrs x13, tpidr_el0\n"
        "  stp x12, x13, [x0, 64]\n"
        "  mrs x14, nzcv\n"
        "  str x14, [x0, 80]\n"
        "  b 5f\n"
        "9: brk 9\n"
        "7: .quad 0x123456789abcdef0\n"
        "8: add x8, x30, x7\n"
        "  ret\n"
        "5: ldp x29, x30, [sp], 16\n"
        "stepped_end: ret\n"
        "stepped_far: .inst 0xd61f081f\n");

static run_thread *thread;
static unsigned steps, wrong;
static uint64_t places[MOST];

static void on_trap(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    mcontext_t *mc = &((ucontext_t *)uc)->uc_mcontext;
    if (mc->pc == (uint64_t)(uintptr_t)stepped_trap) mc->pc += INSN;
    else if (moved_step_ended(thread, info, uc) != MOVED_STEP_ENDED) wrong++;
    if (steps < MOST) places[steps++] = mc->pc;
    if (mc->pc != (uint64_t)(uintptr_t)stepped_end && !moved_uc_step(thread, uc, true)) wrong++;
}

static int make_thread(void **state)
{
    (void)state;
    struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    void *p = mmap(NULL, WEAVE_COUNTERS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 1;
    thread = p;
    return sigaction(SIGTRAP, &a, NULL);
}

static unsigned times_at(const char *label)
{
    unsigned n = 0;
    for (unsigned i = 0; i < steps; i++) n += places[i] == (uint64_t)(uintptr_t)label;
    return n;
}

static void steps_compute_the_same(void **state)
{
    (void)state;
    uint64_t called[WORDS] = {0}, stepped[WORDS] = {0};
    stepped_walk(called);
    stepped_trap(stepped);
    assert_memory_equal(called, stepped, sizeof called);
    assert_int_equal(wrong, 0);
    assert_int_equal(called[7], 42);
    assert_int_equal(times_at(stepped_cond), 3);
    assert_int_equal(steps, 46); /* the exclusive ones are one step, what is jumped over is none */
    assert_ptr_equal(places[steps - 1], stepped_end);
}

/* At `label`, once the signal finds the thread `offset` bytes into the page. */
static uint64_t found_at(const char *label, unsigned offset, int signo, moved_stepped what)
{
    ucontext_t uc = {0};
    siginfo_t info = {.si_signo = signo, .si_code = signo == SIGTRAP ? TRAP_BRKPT : SI_USER};
    uc.uc_mcontext.pc = (uint64_t)(uintptr_t)label;
    assert_true(moved_uc_step(thread, &uc, true));
    assert_int_not_equal(uc.uc_mcontext.pc, label);
    uc.uc_mcontext.pc += offset;
    assert_int_equal(moved_step_ended(thread, &info, &uc), what);
    return uc.uc_mcontext.pc - (uint64_t)(uintptr_t)label;
}

static void signals_find_the_procedure(void **state)
{
    (void)state;
    assert_int_equal(found_at(stepped_add, 0, SIGSEGV, MOVED_STEP_CUT), 0);
    assert_int_equal(found_at(stepped_add, INSN, SIGUSR1, MOVED_STEP_CUT), INSN);
    assert_int_equal(found_at(stepped_add, INSN, SIGTRAP, MOVED_STEP_ENDED), INSN);
    assert_int_equal(found_at(stepped_cond, INSN, SIGTRAP, MOVED_STEP_ENDED), INSN);
    assert_int_equal(found_at(stepped_cond, 2 * INSN, SIGTRAP, MOVED_STEP_ENDED), -2 * INSN);
}

static void others_are_none(void **state)
{
    (void)state;
    ucontext_t uc = {0};
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_BRKPT};
    uc.uc_mcontext.pc = (uint64_t)(uintptr_t)stepped_trap;
    assert_int_equal(moved_step_ended(thread, &info, &uc), MOVED_NO_STEP);
    assert_ptr_equal(uc.uc_mcontext.pc, stepped_trap);
    uc.uc_mcontext.pc = (uint64_t)(uintptr_t)stepped_far;
    assert_false(moved_uc_step(thread, &uc, true));
    assert_ptr_equal(uc.uc_mcontext.pc, stepped_far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_compute_the_same),
        cmocka_unit_test(signals_find_the_procedure),
        cmocka_unit_test(others_are_none),
    };
    return cmocka_run_group_tests(tests, make_thread, NULL);
}
