/* Masks that a call puts in while it sleeps: sigsuspend, ppoll, pselect, epoll_pwait. The handler that ends the sleep
 * runs on top of the temporary mask, is told the lasting one, and returns to it; what the temporary mask blocks
 * stays pending. A signal that waits already, and one that comes during the sleep. And what waits for signals
 * without a handler: sigtimedwait, signalfd. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { REALTIME = 40 }; /* one of the signals that are queued */

static int events; /* an epoll descriptor */
static char seen[64][160];
static volatile int count;

static const struct {
    int number;
    char letter;
} known[] = {{SIGUSR1, '1'}, {SIGUSR2, '2'},  {SIGALRM, 'A'}, {SIGHUP, 'H'},
             {SIGTERM, 'T'}, {REALTIME, 'R'}, {SIGSEGV, 'S'}, {SIGSYS, 'Y'}};
enum { KNOWN = sizeof known / sizeof known[0] };

static char letter_of(int sig)
{
    for (int i = 0; i < KNOWN; i++)
        if (known[i].number == sig) return known[i].letter;
    return '?';
}

static const char *letters(const sigset_t *set, char *to)
{
    int n = 0;
    for (int i = 0; i < KNOWN; i++)
        if (sigismember(set, known[i].number)) to[n++] = known[i].letter;
    to[n] = 0;
    return to;
}

static sigset_t set_of(const char *text)
{
    sigset_t s;
    sigemptyset(&s);
    for (int i = 0; i < KNOWN; i++)
        if (strchr(text, known[i].letter)) sigaddset(&s, known[i].number);
    return s;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    (void)info;
    sigset_t now;
    char a[KNOWN + 1], b[KNOWN + 1];
    sigprocmask(SIG_SETMASK, NULL, &now);
    ucontext_t *uc = context;
    snprintf(seen[count], sizeof seen[count], "%c with mask '%s', back to '%s'", letter_of(sig), letters(&now, a),
             letters(&uc->uc_sigmask, b));
    count++;
}

static void act(int sig, const char *mask)
{
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART, .sa_mask = set_of(mask)};
    sigaction(sig, &a, NULL);
}

enum call { SUSPEND, PPOLL, PSELECT, EPOLL, EPOLL2, CALLS };
static const char *const names[CALLS] = {"sigsuspend", "ppoll", "pselect", "epoll_pwait", "epoll_pwait2"};

static int sleep_with(enum call how, const char *mask, int milliseconds)
{
    sigset_t m = set_of(mask);
    struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    struct epoll_event e;
    switch (how) {
    case SUSPEND: return sigsuspend(&m);
    case PPOLL: return ppoll(NULL, 0, &limit, &m);
    case PSELECT: return pselect(0, NULL, NULL, NULL, &limit, &m);
    case EPOLL: return epoll_pwait(events, &e, 1, milliseconds, &m);
    default: return epoll_pwait2(events, &e, 1, &limit, &m);
    }
}

static void tell(enum call how, const char *what, int answer)
{
    char a[KNOWN + 1], b[KNOWN + 1];
    sigset_t mask, pending;
    int error = answer < 0 ? errno : 0;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigpending(&pending);
    printf("%s %s: %d %s, mask '%s', pending '%s'\n", names[how], what, answer,
           error == EINTR ? "EINTR"
           : error        ? "other"
                          : "",
           letters(&mask, a), letters(&pending, b));
    for (int i = 0; i < count; i++) printf("    %s\n", seen[i]);
    count = 0;
}

static void lasting(const char *mask)
{
    sigset_t m = set_of(mask);
    sigprocmask(SIG_SETMASK, &m, NULL);
}

static void alarm_soon(int milliseconds)
{
    struct itimerval t = {.it_value = {0, milliseconds * 1000}};
    setitimer(ITIMER_REAL, &t, NULL);
}

/* The alarm is not blocked before the sleep either: on a busy machine it may come too early, and a second one ends the
 * sleep. The last is the one that counts. */
static int woken(enum call how, const char *mask)
{
    const struct itimerval twice = {.it_value = {0, 20000}, .it_interval = {2, 0}}, never = {0};
    setitimer(ITIMER_REAL, &twice, NULL);
    int answer = sleep_with(how, mask, 5000), error = errno;
    setitimer(ITIMER_REAL, &never, NULL);
    if (count > 1) memcpy(seen[0], seen[count - 1], sizeof seen[0]), count = 1;
    errno = error;
    return answer;
}

static void one_call(enum call how)
{
    lasting("1A");
    raise(SIGUSR1);
    tell(how, "one waits", sleep_with(how, "H", 2000));

    lasting("12A");
    raise(SIGUSR1);
    raise(SIGUSR2);
    tell(how, "two wait, one is let in", sleep_with(how, "2T", 2000));
    lasting("");
    tell(how, "the other later", 0);

    lasting("12A");
    raise(SIGUSR1);
    raise(SIGUSR2);
    tell(how, "two wait, both are let in", sleep_with(how, "R", 2000));
    lasting("");
    tell(how, "nothing is left", 0);

    lasting("A");
    alarm_soon(20);
    tell(how, "one comes", sleep_with(how, "1", 5000));

    lasting("");
    tell(how, "one comes that is never blocked", woken(how, "H2"));
    if (how != SUSPEND) {
        lasting("1");
        raise(SIGUSR1);
        tell(how, "blocked meanwhile", sleep_with(how, "1H", 20));
        lasting("");
        tell(how, "let in", 0);
        alarm_soon(10);
        tell(how, "blocked only meanwhile", sleep_with(how, "A", 60));
    }
}

/* The mask that the handler leaves in its context is the one that counts. */
static void change_mask(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    ucontext_t *uc = context;
    uc->uc_sigmask = set_of("HT");
}

static void changed(enum call how)
{
    struct sigaction a = {.sa_sigaction = change_mask, .sa_flags = SA_SIGINFO};
    sigaction(SIGTERM, &a, NULL);
    lasting("1T");
    raise(SIGTERM);
    tell(how, "mask changed by the handler", sleep_with(how, "", 2000));
    lasting("");
    act(SIGTERM, "");
}

/* A signal of the kind that faults raise, but sent. */
static void like_a_fault(enum call how)
{
    lasting("S");
    raise(SIGSEGV);
    tell(how, "a SIGSEGV waits, blocked", how == SUSPEND ? 0 : sleep_with(how, "S1", 10));
    tell(how, "let in", sleep_with(how, "H", 2000));
    raise(SIGSEGV);
    lasting("");
    tell(how, "at once", 0);
}

/* It does not end the sleep, whoever else uses that signal. */
static void comes_blocked(enum call how)
{
    timer_t timer;
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGSYS};
    struct itimerspec soon = {.it_value = {0, 10000000}};
    lasting("Y");
    timer_create(CLOCK_MONOTONIC, &e, &timer);
    timer_settime(timer, 0, &soon, NULL);
    tell(how, "a SIGSYS comes, blocked", sleep_with(how, "Y", 40));
    lasting("");
    tell(how, "let in", 0);
    timer_delete(timer);
}

static void without_handler(void)
{
    sigset_t set = set_of("1RS");
    lasting("1RS");
    siginfo_t info;
    struct timespec now = {0, 0}, soon = {5, 0};
    sigqueue(getpid(), REALTIME, (union sigval){.sival_int = 7});
    sigqueue(getpid(), REALTIME, (union sigval){.sival_int = 8});
    raise(SIGUSR1);
    raise(SIGSEGV);
    for (int i = 0; i < 5; i++) {
        int sig = sigtimedwait(&set, &info, i < 4 ? &soon : &now);
        int is_queued = sig == REALTIME && info.si_code == SI_QUEUE;
        printf("sigtimedwait: %c value %d\n", sig < 0 ? errno == EAGAIN ? '-' : '?' : letter_of(sig),
               is_queued ? info.si_value.sival_int : 0);
    }
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    struct signalfd_siginfo from;
    raise(SIGUSR1);
    for (int i = 0; i < 2; i++) {
        ssize_t n = read(fd, &from, sizeof from);
        printf("signalfd: %c\n", n == (ssize_t)sizeof from ? letter_of((int)from.ssi_signo) : '-');
    }
    close(fd);
    lasting("");
    printf("handlers run: %d\n", count);
}

int main(void)
{
    events = epoll_create1(0);
    act(SIGUSR1, "T");
    act(SIGUSR2, "");
    act(SIGALRM, "");
    act(SIGTERM, "");
    act(SIGHUP, "");
    act(REALTIME, "");
    act(SIGSEGV, "2");
    act(SIGSYS, "");
    for (int how = 0; how < CALLS; how++) {
        one_call((enum call)how);
        changed((enum call)how);
        like_a_fault((enum call)how);
        if (how != SUSPEND) comes_blocked((enum call)how);
    }
    without_handler();
    return 0;
}
