/* Threads that ask at the same moment for the number that marks are made of get the same one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "moved/private.h"

enum { THREADS = 2, PROCESSES = 400 };

static atomic_int waiting = THREADS;
static uint64_t told[THREADS];

static void *asks(void *at)
{
    atomic_fetch_sub(&waiting, 1);
    while (atomic_load(&waiting)) {}
    *(uint64_t *)at = moved_cookie();
    return NULL;
}

static int differ(void)
{
    pthread_t threads[THREADS];
    int wrong = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, asks, &told[i]) != 0) return 2;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) wrong |= !told[i] || told[i] != told[0] || told[i] != moved_cookie();
    return wrong;
}

/* It is made once a process. */
static void first_asked_by_several(void **state)
{
    (void)state;
    for (int k = 0; k < PROCESSES; k++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(differ());
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_asked_by_several)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
