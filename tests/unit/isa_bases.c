/* Whether FS base can be read by its instruction, and what finding out leaves behind. */
#include "isa/x86_64/bases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void never(int signo) { (void)signo; }

/* A child that may die of it. */
static bool a_child_can(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        uint64_t base;
        signal(SIGILL, SIG_DFL);
        __asm__ volatile("rdfsbase %0" : "=r"(base));
        _exit(base == 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !status;
}

static void what_is_found_is_so(void **state)
{
    (void)state;
    bool can = a_child_can();
    assert_int_equal(x86_bases_readable(), can);
    if (getauxval(AT_HWCAP2) & 2) assert_int_equal(x86_bases_of(getauxval(AT_HWCAP2)), X86_BASES_BY_INSTRUCTION);
    assert_int_equal(x86_bases_of(0), can ? X86_BASES_BY_CALL : X86_BASES_NOT);
}

static void handlers_and_masks_stay(void **state)
{
    (void)state;
    struct sigaction ours = {.sa_handler = never, .sa_flags = SA_RESTART}, after;
    sigset_t held, mask;
    sigemptyset(&held);
    sigaddset(&held, SIGILL);
    sigaddset(&held, SIGUSR1);
    assert_int_equal(sigaction(SIGILL, &ours, NULL), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &held, NULL), 0);
    bool readable = x86_bases_readable();
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigaction(SIGILL, NULL, &after), 0);
    assert_true(after.sa_handler == never && after.sa_flags & SA_RESTART);
    for (int s = 1; s < 32; s++) assert_int_equal(sigismember(&mask, s), s == SIGILL || s == SIGUSR1);
    assert_int_equal(sigprocmask(SIG_UNBLOCK, &held, NULL), 0);
    assert_int_equal(readable, a_child_can());
}

static void no_child_is_made(void **state)
{
    (void)state;
    int status;
    (void)x86_bases_readable();
    assert_int_equal(waitpid(-1, &status, __WALL | WNOHANG), -1);
}

/* The handler, where the instruction does fault: one as long in its place. */
static void who_handles_the_fault_goes_on_behind_it(void **state)
{
    (void)state;
    struct sigaction before;
    struct {
        void (*handler)(void);
        uint64_t flags;
        void (*restorer)(void);
        uint64_t mask;
    } ours = {x86_bases_illegal, SA_SIGINFO | 0x04000000, x86_bases_back, 0};
    bool went_on;
    assert_int_equal(sigaction(SIGILL, NULL, &before), 0);
    assert_int_equal(syscall(SYS_rt_sigaction, SIGILL, &ours, NULL, 8), 0);
    __asm__ volatile("clc\n\t"
                     "ud2\n\t"
                     "nopl (%%rax)\n\t"
                     "setc %0"
                     : "=r"(went_on)
                     :
                     : "cc", "memory");
    assert_int_equal(sigaction(SIGILL, &before, NULL), 0);
    assert_true(went_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_is_so),
        cmocka_unit_test(handlers_and_masks_stay),
        cmocka_unit_test(no_child_is_made),
        cmocka_unit_test(who_handles_the_fault_goes_on_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
