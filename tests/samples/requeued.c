/* Crash handlers hand a fault on by sending it once more, with the siginfo that the kernel made: such a signal
 * was sent, whatever its code says. With each call that can do so, after a fault and without one, while the
 * signal is blocked and while it is not; and what the kernel refuses stays refused. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum way { THREAD, PROCESS, PIDFD, WAYS };
static const char *const ways[] = {"thread", "process", "pidfd"};

static long send(enum way way, pid_t to, int signo, siginfo_t *info)
{
    if (way == THREAD) return syscall(SYS_rt_tgsigqueueinfo, getpid(), to, signo, info);
    if (way == PROCESS) return syscall(SYS_rt_sigqueueinfo, to, signo, info);
    int fd = (int)syscall(SYS_pidfd_open, to, 0);
    long answer = syscall(SYS_pidfd_send_signal, fd, signo, info, 0);
    int error = errno;
    close(fd);
    errno = error;
    return answer;
}

static volatile sig_atomic_t times;
static volatile int codes[4], errors[4];
static void *volatile addresses[4];
static enum way way;
static sigjmp_buf back;
static void *volatile nowhere = (void *)8;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)context;
    int n = times++;
    codes[n & 3] = info->si_code;
    errors[n & 3] = info->si_errno;
    addresses[n & 3] = info->si_addr;
    if (n == 0) send(way, getpid(), signo, info);
    else if (signo != SIGTRAP) siglongjmp(back, 1); /* the instruction would fault again */
}

static void after_a_fault(int signo)
{
    times = 0;
    if (!sigsetjmp(back, 1)) {
        if (signo == SIGTRAP) __asm__ volatile("int3");
        if (signo == SIGSEGV) *(volatile int *)nowhere = 1;
        if (signo == SIGFPE) __asm__ volatile("div %%ecx" : : "a"(1), "d"(0), "c"(0));
        if (signo == SIGILL) __asm__ volatile("ud2");
    }
    printf("%s, signal %d: %d times, codes %d %d, same address %d\n", ways[way], signo, (int)times, codes[0], codes[1],
           addresses[0] == addresses[1]);
}

static void count(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)context;
    codes[times++ & 3] = info->si_code;
    errors[0] = info->si_errno;
}

/* A fault's siginfo where nothing has failed: the program goes on behind the call. */
static void without_a_fault(int signo, bool blocked)
{
    siginfo_t info;
    sigset_t set;
    memset(&info, 0, sizeof info);
    info.si_signo = signo;
    info.si_code = 2;
    info.si_errno = 5;
    info.si_addr = (void *)0x1234;
    sigemptyset(&set);
    sigaddset(&set, signo);
    times = 0;
    if (blocked) sigprocmask(SIG_BLOCK, &set, NULL);
    long answer = send(way, getpid(), signo, &info);
    int before = times;
    if (blocked) sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("%s, signal %d%s: answer %ld, %d before and %d in all, code %d, errno %d\n", ways[way], signo,
           blocked ? " blocked" : "", answer, before, (int)times, codes[0], errors[0]);
}

static void to_another(void)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSEGV;
    info.si_code = SEGV_MAPERR;
    pid_t child = fork();
    if (!child) {
        for (;;) pause();
    }
    long answer = send(way, child, SIGSEGV, &info);
    printf("%s, to another: %ld, %s\n", ways[way], answer, strerror(errno));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void dies_of_it(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        siginfo_t info;
        memset(&info, 0, sizeof info);
        info.si_signo = SIGBUS;
        info.si_code = BUS_ADRALN;
        signal(SIGBUS, SIG_DFL);
        send(way, getpid(), SIGBUS, &info);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%s, default action: signal %d\n", ways[way], WTERMSIG(status));
}

int main(void)
{
    static const int signals[] = {SIGTRAP, SIGSEGV, SIGFPE, SIGILL};
    for (way = THREAD; way < WAYS; way++) {
        for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
            struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
            sigaction(signals[i], &a, NULL);
            after_a_fault(signals[i]);
            a.sa_sigaction = count;
            sigaction(signals[i], &a, NULL);
            without_a_fault(signals[i], false);
            without_a_fault(signals[i], true);
        }
        to_another();
        dies_of_it();
    }
    return 0;
}
