/* What a program sees of a tool's thread: nothing. Where WORKER_SHOWS names a file, it asks now and then whether that
 * thread is at work: it takes the file away, and waits until it is there again. Calls numbered() in each thread. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void numbered(int times)
{
    __asm__ volatile("" : "+r"(times));
    if (times > 1) numbered(times - 1);
}

static void ask(void)
{
    const char *path = getenv("WORKER_SHOWS");
    if (!path) return;
    unlink(path);
    while (access(path, F_OK)) usleep(500);
}

static int threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static int told(const char *name)
{
    char line[256];
    int n = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) n = atoi(line + strlen(name));
    if (f) fclose(f);
    return n;
}

static pthread_barrier_t all;

static void *work(void *arg)
{
    numbered(10);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    return arg;
}

static void several(void)
{
    pthread_t t[2];
    pthread_barrier_init(&all, NULL, 3);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, NULL);
    pthread_barrier_wait(&all);
    printf("%d threads\n", threads());
    if (getenv("WORKER_TOLD")) printf("told of %d\n", told("Threads:\t"));
    pthread_barrier_wait(&all);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
}

static void forks(void)
{
    int status;
    pid_t child = fork();
    if (!child) {
        int before = threads();
        numbered(5);
        ask();
        printf("%d in the child\n", before);
        exit(3);
    }
    waitpid(child, &status, 0);
    printf("child ended with %d\n", WEXITSTATUS(status));
}

__attribute__((noinline)) static void trap(void) { __asm__ volatile("int3"); }

/* Whoever traces it finds it in its own code. */
static void traced(void)
{
    int status;
    struct user_regs_struct r;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        ask();
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        trap();
        _exit(4);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_GETREGS, child, 0, &r);
    printf("stopped by %d, at home %d\n", WSTOPSIG(status), r.rip - (unsigned long)trap < 64);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    printf("traced child ended with %d\n", WEXITSTATUS(status));
}

static void alone(void)
{
    int user = unshare(CLONE_NEWUSER) ? errno : 0;
    ask();
    int thread = unshare(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM) ? errno : 0;
    ask();
    printf("unshare: %d %d\n", user, thread);
}

static void blocked(void)
{
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 3; i++) {
        kill(getpid(), SIGSEGV);
        ask();
        int signo = sigwaitinfo(&set, &info);
        printf("signal %d of %d\n", signo, info.si_pid == getpid());
    }
}

static void *ends_last(void *arg)
{
    (void)arg;
    usleep(1000);
    numbered(7);
    ask();
    syscall(SYS_exit, 0);
    return NULL;
}

static void last(void)
{
    pthread_t t;
    pthread_create(&t, NULL, ends_last, NULL);
    fflush(stdout);
    syscall(SYS_exit, 6);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    char *const no[] = {"no", NULL}, *const again[] = {argv[0], "several", NULL};
    numbered(1);
    ask();
    if (!strcmp(what, "several")) several();
    if (!strcmp(what, "forks")) forks();
    if (!strcmp(what, "alone")) alone();
    if (!strcmp(what, "traced")) traced();
    if (!strcmp(what, "blocked")) blocked();
    if (!strcmp(what, "last")) last();
    if (!strcmp(what, "execs")) {
        printf("execve: %d\n", execv("/no/such", no));
        ask();
        fflush(stdout);
        execv("/proc/self/exe", again);
    }
    if (!strcmp(what, "waits"))
        for (int c; (c = getchar()) != EOF;) numbered(1), putchar(c), fflush(stdout);
    ask();
    puts("over");
    return 5;
}
