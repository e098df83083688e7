/* The first process of a namespace of processes, which signals without a handler do not reach from within: its
 * children, a fork that begins there, what it handles itself, and how it ends. Says so where it may not make one. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void on_signal(int signo) { seen = signo; }

static int status_of(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A child sends it to the first. */
static int sent(int signo)
{
    pid_t child = fork();
    if (child == 0) _exit(kill(1, signo) != 0);
    return status_of(child);
}

/* It does not even wake up. */
static int sleeps_on(void)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends)) return -1;
    pid_t child = fork();
    if (child == 0) {
        usleep(30000);
        kill(1, SIGTERM);
        usleep(30000);
        _exit(write(ends[1], "x", 1) != 1);
    }
    long n = read(ends[0], &byte, 1);
    return status_of(child) ? -1 : (int)n;
}

/* Faults, which it does not handle, are none where the kernel reads for it. */
static int refused(void) { return prctl(PR_SET_SECCOMP, 2, NULL) < 0; }

static int first(void)
{
    printf("number %d, refused %d\n", getpid(), refused());
    const int fatal[] = {SIGTERM, SIGUSR2, SIGHUP, SIGSEGV, SIGKILL};
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++) printf("signal %d: %d\n", fatal[i], sent(fatal[i]));
    printf("asleep: %d\n", sleeps_on());
    signal(SIGTERM, on_signal);
    printf("handled: %d, %d\n", sent(SIGTERM), seen);
    signal(SIGTERM, SIG_DFL);
    printf("no longer: %d\n", sent(SIGTERM));
    pid_t child = fork();
    if (child == 0) pause();
    kill(child, SIGTERM); /* others die of it */
    printf("second: %d\n", status_of(child));
    fflush(stdout);
    return system("exit 3") >> 8;
}

/* A fault is no signal that somebody sends. */
static int crashes(void)
{
    volatile int *volatile nowhere = (volatile int *)8;
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    *nowhere = 1;
    return 0;
}

static int in_namespace(int (*f)(void))
{
    pid_t maker = fork();
    if (maker) return status_of(maker);
    if (unshare(CLONE_NEWPID)) {
        printf("may not\n");
        exit(0);
    }
    pid_t child = fork();
    if (child == 0) exit(f());
    printf("ended: %d\n", status_of(child));
    exit(0);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    return in_namespace(first) | in_namespace(crashes);
}
