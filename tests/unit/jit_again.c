/* An engine is taken down and set up again in one process, and nothing of it is left in between: no mapping, no
 * descriptor, no action of a signal. */
#include "base/sys.h"
#include "jit/jit.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STACK = 64 << 10 };

/* The program: counts down by calls and returns, and ends by a system call, without any library. */
static __attribute__((noinline)) long depth(long n)
{
    __asm__ volatile("" : "+r"(n));
    return n ? 1 + depth(n - 1) : 0;
}

static void program(void)
{
    long status = depth(40) + 2;
    sys_call1(SYS_exit_group, status);
}

static run_start_state start_at(void (*entry)(void))
{
    static uint8_t stack[STACK] __attribute__((aligned(16)));
    run_start_state s = {0};
    s.ctx.pc = (uint64_t)(uintptr_t)entry;
    run_set_sp(&s.ctx, (uint64_t)(uintptr_t)(stack + STACK) - 8);
    s.ctx.flags = 0x202;
    s.ctx.tls_base = run_tls_base();
    return s;
}

/* Mapped bytes and open descriptors of this process. */
static void measure(unsigned long *pages, unsigned *files)
{
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", pages), 1);
    fclose(f);
    *files = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) ++*files;
    closedir(d);
}

static void handler(int signo) { (void)signo; }

static void begin(void)
{
    inl_error e;
    run_start_state s = start_at(program);
    jit_options o = {.chain_jumps = true};
    assert_int_equal(jit_init(NULL, &o, &s, &e), INL_OK);
}

static void nothing_is_left(void **state)
{
    (void)state;
    unsigned long pages[3];
    unsigned files[3];
    struct sigaction a = {.sa_handler = handler}, now;
    sigaction(SIGUSR1, &a, NULL);
    for (int i = 0; i < 3; i++) { /* the first time the C library takes memory of its own */
        begin();
        jit_end();
        measure(&pages[i], &files[i]);
    }
    assert_int_equal(files[2], files[0]);
    assert_int_equal(pages[2], pages[1]);
    for (int signo = 1; signo <= 31; signo++) {
        if (signo == SIGKILL || signo == SIGSTOP) continue;
        sigaction(signo, NULL, &now);
        assert_true(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
    }
    uint64_t base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    assert_int_equal(base, 0);
}

static void runs_after_it_was_taken_down(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        begin();
        jit_end();
        begin();
        jit_run();
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

int main(void)
{
    inl_error e;
    if (run_check_processor(&e)) {
        printf("skipped: %s\n", e.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_after_it_was_taken_down),
        cmocka_unit_test(nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
