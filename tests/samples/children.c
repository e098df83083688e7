/* fork, vfork, posix_spawn, system, clone with CLONE_VM|CLONE_VFORK, an exec chain of itself, and an exec that only
 * asks. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int status_of(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int chain(const char *self, int left)
{
    char next[16];
    if (left == 0) {
        printf("end of chain\n");
        return 9;
    }
    snprintf(next, sizeof next, "%d", left - 1);
    execl("/proc/self/exe", self, next, (char *)NULL);
    return 1;
}

static volatile int shared;
static int clone_body(void *arg)
{
    shared = *(int *)arg;
    _exit(6);
}

/* AT_EXECVE_CHECK, since Linux 6.14: whether it might be executed. Other flags there are none, so all others are an
 * error. */
static void ask(const char *path, char **args)
{
    enum { CHECK = 0x10000, OTHERS = 0xfff };
    long answer = syscall(SYS_execveat, AT_FDCWD, path, args, environ, CHECK);
    printf("may %s be executed: %ld, %d\n", path, answer, answer ? errno : 0);
    answer = syscall(SYS_execveat, AT_FDCWD, path, args, environ, OTHERS);
    printf("with all flags: %ld, %d\n", answer, errno);
}

int main(int argc, char **argv)
{
    if (argc > 1) return chain(argv[0], atoi(argv[1]));
    setvbuf(stdout, NULL, _IOLBF, 0);

    pid_t pid = fork();
    if (pid == 0) {
        printf("in the child\n");
        pid_t grandchild = fork();
        if (grandchild == 0) _exit(4);
        _exit(status_of(grandchild) + 1);
    }
    printf("fork %d\n", status_of(pid));

    pid = vfork();
    if (pid == 0) {
        shared = 77;
        _exit(3);
    }
    printf("vfork %d shared %d\n", status_of(pid), shared);

    pid = vfork();
    if (pid == 0) {
        execl("/bin/echo", "echo", "from vfork and exec", (char *)NULL);
        _exit(127);
    }
    printf("exec %d\n", status_of(pid));

    char *args[] = {"sh", "-c", "echo spawned; exit 5", NULL};
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ) == 0) printf("posix_spawn %d\n", status_of(pid));
    printf("no such file %d\n", posix_spawn(&pid, "/nonexistent", NULL, NULL, args, environ));
    fflush(stdout);
    printf("system %d\n", WEXITSTATUS(system("echo by system; exit 2")));

    ask("/bin/sh", args);
    ask("/etc/passwd", args);
    ask("/nonexistent", args);

    int value = 55;
    char *stack = malloc(65536);
    pid = clone(clone_body, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, &value);
    printf("clone %d shared %d\n", status_of(pid), shared);

    pid = fork();
    if (pid == 0) chain(argv[0], 5);
    printf("chain %d\n", status_of(pid));

    pid = fork();
    if (pid == 0) abort();
    printf("aborted child %d\n", status_of(pid));
    for (int i = 0; i < 20; i++) {
        if ((pid = fork()) == 0) _exit(i);
        if (status_of(pid) != i) printf("wrong status\n");
    }
    return 0;
}
