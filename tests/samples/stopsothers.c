/* A task that shares the program's memory, but is another process, stops the program's threads by ptrace, does some
 * work while they stand, and lets them go: so LeakSanitizer looks at memory. The threads execute code that is always
 * new, and so does the task while they stand: what a thread may be in the middle of, the task needs. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 40, STACK = 1 << 16, SIZE = 4096 };

static pid_t tids[THREADS];
static atomic_int begun, done;
static char stack[STACK] __attribute__((aligned(64)));
static int stopped, wrong;

/* Many procedures: mov $NUMBER,%eax ; ret. How many of them answer otherwise. */
static int run_new(int number)
{
    unsigned char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int wrong = at == MAP_FAILED;
    if (wrong) return 1;
    for (int i = 0; i < SIZE; i += 16, number++) {
        at[i] = 0xb8;
        memcpy(at + i + 1, &number, 4);
        at[i + 5] = 0xc3;
        wrong += ((int (*)(void))(at + i))() != number;
    }
    munmap(at, SIZE);
    return wrong;
}

static void *work(void *of)
{
    tids[(pid_t *)of - tids] = (pid_t)syscall(SYS_gettid);
    begun++;
    for (int i = 0; !done; i++)
        if (run_new(i)) abort();
    return NULL;
}

/* A signal may come first; the thread gets it, and stands right behind. */
static int stop(pid_t tid)
{
    int status;
    if (ptrace(PTRACE_ATTACH, tid, 0, 0)) return 0;
    while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) == SIGSTOP) return 1;
        ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status));
    }
    return 0;
}

static int stop_all(void *none)
{
    (void)none;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++) stopped += stop(tids[i]);
        wrong += run_new(round);
        for (int i = 0; i < THREADS; i++) wrong += ptrace(PTRACE_DETACH, tids[i], 0, 0) != 0;
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    int status;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &tids[i]);
    while (begun < THREADS) sched_yield();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t task = clone(stop_all, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | SIGCHLD, NULL);
    if (task < 0 || waitpid(task, &status, __WALL) != task) return 1;
    done = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d stopped, %d wrong, status %#x\n", stopped, wrong, status);
    return 0;
}
