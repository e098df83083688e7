/* Calls step() a known number of times, in a way that the argument names, and ends.
 *
 *     exit     10                                            fork     10, child 5 more and again a child 2 more,
 *     exec     7, then another program                                parent 3 more, so 17, 15 and 13
 *     noexec   6, an exec that fails, 2 more                 threads  8 threads, 20000 each
 *     signal   4, then SIGTERM                               fault    4, then a fault
 *     vfork    9, a child that execs, 3 more */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

__attribute__((noinline)) int step(int n)
{
    __asm__ volatile("");
    return n > 3 ? n : n + 1;
}

static void steps(int n)
{
    while (n-- > 0) step(n);
}

static void *many(void *arg)
{
    steps(20000);
    return arg;
}

static void threads(void)
{
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, many, NULL)) exit(2);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
}

static void forks(void)
{
    steps(10);
    if (fork() == 0) {
        steps(5);
        if (fork() == 0) steps(2);
        else wait(NULL);
        exit(0);
    }
    wait(NULL);
    steps(3);
}

static void execs(const char *path)
{
    char *argv[] = {(char *)path, NULL};
    execv(path, argv);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "exit";
    if (!strcmp(way, "exit")) steps(10);
    if (!strcmp(way, "fork")) forks();
    if (!strcmp(way, "threads")) threads();
    if (!strcmp(way, "exec")) steps(7), execs("/bin/true");
    if (!strcmp(way, "noexec")) steps(6), execs("/nowhere/at/all"), steps(2);
    if (!strcmp(way, "signal")) steps(4), raise(SIGTERM);
    if (!strcmp(way, "fault")) steps(4), *(volatile int *)0 = 1;
    if (!strcmp(way, "vfork")) {
        steps(9);
        if (vfork() == 0) execs("/bin/true"), _exit(1);
        wait(NULL);
        steps(3);
    }
    return 0;
}
