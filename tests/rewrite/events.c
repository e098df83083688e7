/* What callbacks of a tool are about: system calls of all kinds, signals that come during them, threads, fork,
 * vfork, exec, an end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

extern char **environ;
static volatile sig_atomic_t caught;
static volatile int frame_count;
static int tube[2];

static int frames_here(void)
{
#ifdef __GLIBC__
    void *frames[32];
    return backtrace(frames, 32);
#else
    return 0;
#endif
}

static void on_signal(int signo)
{
    caught = signo;
    if (signo == SIGALRM) frame_count = frames_here();
    if (signo == SIGUSR2) write(tube[1], "x", 1);
}

static void say(const char *text, long n)
{
    char line[100];
    int size = snprintf(line, sizeof line, "%s %ld\n", text, n);
    write(1, line, size);
}

static void handle(int signo, int flags)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(signo, &a, NULL);
}

static void *thread(void *arg)
{
    for (int i = 0; i < 3; i++) sched_yield();
    say("thread", (long)arg);
    return NULL;
}

static void *knocks(void *arg)
{
    struct timespec t = {0, 60000000};
    nanosleep(&t, NULL);
    pthread_kill(*(pthread_t *)arg, SIGUSR2); /* its handler ends the read, which is restarted */
    return NULL;
}

/* What the kernel is asked for otherwise is no change of the program's registers. */
static void keeps(void)
{
    register long number asm("rax") = SYS_write, fd asm("rdi") = 77, size asm("rdx") = 6;
    register const char *text asm("rsi") = "to 77\n";
    asm volatile("syscall" : "+r"(number), "+r"(fd), "+r"(text), "+r"(size) : : "rcx", "r11", "memory");
    say("kept", fd == 77 && size == 6 && number == 6);
    say("other", syscall(SYS_getgid) - geteuid());
}

static void sleeps(void)
{
    struct timespec t = {0, 3000000}, more = {1, 0}, rest;
    char byte[77] = {0};
    pthread_t other, self = pthread_self();
    say("sleep", nanosleep(&t, NULL));
    int outside = frames_here();
    handle(SIGALRM, 0);
    ualarm(50000, 0);
    long r = nanosleep(&more, &rest);
    say("interrupted", r < 0 ? errno : 0);
    say("more frames in its handler", frame_count - outside);
    handle(SIGUSR2, SA_RESTART);
    pthread_create(&other, NULL, knocks, &self);
    say("read again", read(tube[0], byte, sizeof byte));
    say("byte", byte[0]);
    pthread_join(other, NULL);
    struct pollfd p = {tube[0], POLLIN, 0};
    say("poll", poll(&p, 1, 5));
    sigset_t set, none;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    handle(SIGUSR1, 0);
    raise(SIGUSR1);
    say("blocked", caught == SIGUSR1);
    sigsuspend(&none);
    say("then", caught == SIGUSR1);
}

static int await(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    return status;
}

static void processes(void)
{
    pid_t pid = fork();
    if (!pid) {
        say("child", getpid() != 0);
        _exit(5);
    }
    say("forked", await(pid));
    char *argv[] = {"true", "argument", NULL};
    posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);
    say("spawned", await(pid));
    execv("/nowhere/at/all", argv);
    say("exec", errno);
}

int main(int argc, char **argv)
{
    (void)argc;
    syscall(0x1234);
    say("ppid", syscall(SYS_getppid));
    say("uid", syscall(SYS_getuid) - geteuid());
    keeps();
    say("bad", read(-1, argv, 1));
    say("unknown", syscall(0x4321));
    pipe2(tube, O_CLOEXEC);
    close(dup2(tube[0], 60));
    pthread_t t[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&t[i], NULL, thread, (void *)i);
        pthread_join(t[i], NULL);
    }
    sleeps();
    processes();
    if (argv[1]) execl("/bin/echo", "echo", "the end", NULL);
    kill(getpid(), SIGTERM);
    return 0;
}
