/* Whose children end, as a program finds out that begins with SIGCHLD blocked, or ignored, or with a child that it had
 * before: nobody's but its own. What is pending at its first instruction, whom a wait finds, which signals come to a
 * handler that is there from the first moment on, and which reads they interrupt. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void on_end(int signo) { (void)signo, came++; }

static void block(int how)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(how, &ends, NULL);
}

/* Returns who has ended, by the signal that is pending; 0: none is. */
static int take(void)
{
    sigset_t ends;
    siginfo_t why;
    const struct timespec now = {0};
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    return sigtimedwait(&ends, &why, &now) == SIGCHLD ? why.si_pid : 0;
}

static const char *found(void)
{
    int pid = waitpid(-1, NULL, WNOHANG | __WALL);
    return pid < 0 ? strerror(errno) : pid ? "ended" : "runs";
}

static void again(const char *how, int child)
{
    char number[16];
    snprintf(number, sizeof number, "%d", child);
    fflush(stdout);
    execl("/proc/self/exe", "childends", how, number, (char *)NULL);
    _exit(9);
}

static void look(const char *how)
{
    struct timespec begun, now;
    printf("%s: pending %d, found: %s\n", how, take() != 0, found());
    signal(SIGCHLD, on_end);
    block(SIG_UNBLOCK);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 200);
    printf("%s: came %d, found: %s\n", how, (int)came, found());
}

static int with_child(void)
{
    siginfo_t why;
    block(SIG_BLOCK);
    signal(SIGCHLD, SIG_DFL);
    int child = fork();
    if (child == 0) _exit(5);
    waitid(P_PID, (id_t)child, &why, WEXITED | WNOWAIT);
    return child;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!*how) {
        look("first");
        block(SIG_BLOCK);
        again("blocked", 0);
    } else if (!strcmp(how, "blocked")) {
        look(how);
        signal(SIGCHLD, SIG_IGN);
        again("ignored", 0);
    } else if (!strcmp(how, "ignored")) {
        look(how);
        again("own", with_child());
    }
    int status, child = atoi(argv[2]), who = take(), got = waitpid(child, &status, 0);
    printf("own: pending %d, ended %d with %d, found: %s\n", who == child, got == child, WEXITSTATUS(status), found());
    look("own");
    return 0;
}
