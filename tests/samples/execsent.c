/* Signals that are sent all the time while a process executes a program: each comes before that, to the handler that
 * there is, or after it, and none stays blocked in the new program. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 8, PATIENCE = 20 }; /* seconds, until it hangs */

static volatile sig_atomic_t seen;
static void sees(int signo) { seen = signo; }

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* By the signal in the new program, or where that ignores it, by itself. */
static int is_good(int signo, int status) { return status == 0 || (signo == SIGHUP && status == SIGHUP); }

static int ends_well(int signo)
{
    int status = 0, ready[2];
    char c = 0;
    if (pipe(ready)) return 0;
    pid_t child = fork();
    if (!child) {
        signal(signo, sees);
        if (write(ready[1], &c, 1) != 1) _exit(3);
        execl("/proc/self/exe", "execsent", "look", (char *)NULL);
        _exit(2);
    }
    if (read(ready[0], &c, 1) != 1) return 0;
    for (time_t begun = now(); waitpid(child, &status, WNOHANG) == 0;) {
        kill(child, now() - begun > PATIENCE ? SIGKILL : signo);
        for (volatile int i = 0; i < 300; i++) continue;
    }
    close(ready[0]);
    close(ready[1]);
    if (!is_good(signo, status)) printf("signal %d: status %#x\n", signo, (unsigned)status);
    return is_good(signo, status);
}

/* What the new program has: nothing blocked. */
static int look(void)
{
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int signo = 1; signo < 32; signo++)
        if (sigismember(&mask, signo)) return 10 + signo;
    return 0;
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGHUP, SIGURG};
    if (argc > 1) return strcmp(argv[1], "look") ? 1 : look();
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned s = 0; s < sizeof signals / sizeof *signals; s++) {
        int good = 0;
        for (int i = 0; i < ROUNDS && good == i; i++) good += ends_well(signals[s]);
        printf("signal %d: %s\n", signals[s], good == ROUNDS ? "as it should be" : "wrong");
    }
    return 0;
}
