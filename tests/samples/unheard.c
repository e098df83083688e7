/* What a program sees of SIGPIPE and SIGXFSZ around calls of getppid, at which a tool of the test's writes in vain: not
 * handled, handled, blocked with none, one or two of them that wait already. Files may have 4096 bytes. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handle(int signo)
{
    (void)signo;
    handled++;
}

static void *call(void *arg)
{
    getppid();
    return arg;
}

static int taken(const sigset_t *set)
{
    static const struct timespec now;
    int n = 0;
    while (sigtimedwait(set, NULL, &now) > 0) n++;
    return n;
}

/* Of so many that wait for the thread and the process, how many wait behind the call? */
static void look(const sigset_t *set, int signo, int threads, int processes)
{
    if (threads) raise(signo);
    if (processes) kill(getpid(), signo);
    getppid();
    printf("signal %d: %d and %d waited, %d do\n", signo, threads, processes, taken(set));
}

static void watch(int signo)
{
    sigset_t set;
    pthread_t t;
    sigemptyset(&set);
    sigaddset(&set, signo);
    getppid();
    signal(signo, handle);
    getppid();
    if (pthread_create(&t, NULL, call, NULL) == 0) pthread_join(t, NULL);
    printf("signal %d: handled %d times\n", signo, (int)handled);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int n = 0; n < 4; n++) look(&set, signo, n & 1, n >> 1);
}

int main(void)
{
    struct rlimit small = {4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 1;
    watch(SIGPIPE);
    watch(SIGXFSZ);
    return 3;
}
