/* Stands in some place until it is told to go on, for whoever looks at its stack: at commands on standard input
 *
 *     read      at the end of a chain of calls, in a system call; until the next line
 *     ask       likewise, in one whose number only the process knows
 *     spin      in a loop; until SIGUSR2, as are the following
 *     suspend   in a system call with another mask of signals
 *     wait      for a child, until that ends
 *     handler   in a signal's handler, spinning
 *     throw     an exception comes through the chain; then as `spin`, in what has caught it
 *     thread    another thread spins, this one waits for it
 *
 * and answers each when it is over. */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile sig_atomic_t goes_on;
static volatile int sum;

static void wake(int) { goes_on = 1; }

static APART void spin()
{
    while (!goes_on) sum = sum + 1;
    goes_on = 0;
    sum = sum + 2;
}

static APART void in_handler() { spin(); sum = sum + 3; }
static void handle(int) { in_handler(); sum = sum + 4; }

static APART void read_on()
{
    char line[64];
    if (read(0, line, sizeof line) < 0) perror("read");
    sum = sum + 5;
}

static APART void ask()
{
    char line[64];
    if (syscall(SYS_read, 0, line, sizeof line) < 0) perror("read");
    sum = sum + 9;
}

static APART void suspend()
{
    sigset_t none;
    sigemptyset(&none);
    while (!goes_on) sigsuspend(&none);
    goes_on = 0;
}

static APART void wait_for_child()
{
    pid_t child = fork();
    if (!child) {
        pause();
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0) sum = sum + 6;
    sum = sum + 7;
}

namespace deep {
struct chain {
    const char *what;
    APART void leaf(int n) const
    {
        if (!strcmp(what, "read")) read_on();
        else if (!strcmp(what, "ask")) ask();
        else if (!strcmp(what, "spin")) spin();
        else if (!strcmp(what, "suspend")) suspend();
        else if (!strcmp(what, "wait")) wait_for_child();
        else if (!strcmp(what, "handler")) kill(getpid(), SIGUSR1);
        else if (!strcmp(what, "throw")) throw std::runtime_error("thrown");
        sum = sum + n;
    }
    APART void middle(int n) const
    {
        leaf(n + 1);
        sum = sum + n;
    }
};
}

static APART void outer(const char *what)
{
    deep::chain c{what};
    try {
        c.middle(3);
    } catch (const std::exception &e) {
        spin();
        printf("%s ", e.what());
    }
    sum = sum + 1;
}

static void *work(void *)
{
    outer("spin");
    return nullptr;
}

static APART void start_thread()
{
    pthread_t t;
    pthread_create(&t, nullptr, work, nullptr);
    pthread_join(t, nullptr);
    sum = sum + 8;
}

int main()
{
    char line[64];
    signal(SIGUSR1, handle);
    signal(SIGUSR2, wake);
    for (ssize_t n; (n = read(0, line, sizeof line - 1)) > 0;) {
        line[n] = 0;
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "thread")) start_thread();
        else outer(line);
        printf("%s\n", line);
        fflush(stdout);
    }
    return 0;
}
