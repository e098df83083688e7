/* What a new process or thread has of its parent's signals: dispositions with their flags and masks, the mask, what is
 * pending, the alternate stack, timers. By fork, vfork, posix_spawn, clone with and without shared handlers, a
 * thread, and exec, faults that are ignored among it. What a child changes is its own: the parent looks at all of it
 * again at the end. */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ull
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

enum { REALTIME = 40 };
static const int looked_at[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGSEGV, SIGCHLD, SIGALRM, REALTIME};
enum { LOOKED_AT = sizeof looked_at / sizeof looked_at[0] };
static char self[4096];
static char *original; /* also where this one has been rewritten */
static volatile int count;

static void on_signal(int sig) { count += sig; }
static void other_handler(int sig) { count -= sig; }

static const char *name_of(void (*handler)(int))
{
    return handler == SIG_DFL ? "default" : handler == SIG_IGN ? "ignored" : handler == on_signal ? "ours" : "other";
}

static int bits(const sigset_t *set)
{
    int n = 0;
    for (int i = 0; i < LOOKED_AT; i++) n |= sigismember(set, looked_at[i]) << i;
    return n;
}

static void look(const char *who)
{
    sigset_t mask, pending;
    stack_t stack;
    struct itimerval timer;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigpending(&pending);
    sigaltstack(NULL, &stack);
    getitimer(ITIMER_REAL, &timer);
    printf("%s: mask %02x, pending %02x, alternate stack %s of %zu%s, timer %s\n  ", who, bits(&mask), bits(&pending),
           stack.ss_flags & SS_DISABLE ? "none" : "there", stack.ss_size,
           (unsigned)stack.ss_flags & SS_AUTODISARM ? " (disarms itself)" : "",
           timer.it_value.tv_sec ? "runs" : "none");
    for (int i = 0; i < LOOKED_AT; i++) {
        struct sigaction a;
        sigaction(looked_at[i], NULL, &a);
        int flags = a.sa_flags & ~0x04000000; /* the restorer's */
        printf(" %d %s %x %02x;", looked_at[i], name_of(a.sa_handler), flags, bits(&a.sa_mask));
    }
    printf("\n");
    fflush(stdout);
}

static void act(int sig, void (*handler)(int), int flags, int masked)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
    if (masked) sigaddset(&a.sa_mask, masked);
    sigaction(sig, &a, NULL);
}

/* Both kinds of pending signal: the process's and the thread's own. */
static void set_up(void)
{
    static char stack[1 << 15];
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, REALTIME);
    sigaddset(&blocked, SIGSEGV);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    act(SIGHUP, on_signal, SA_RESTART, SIGUSR2);
    act(SIGUSR1, on_signal, SA_ONSTACK | SA_NODEFER, 0);
    act(SIGUSR2, SIG_IGN, 0, 0);
    act(SIGSEGV, on_signal, SA_RESETHAND, SIGUSR1);
    act(SIGALRM, other_handler, SA_RESTART, 0);
    act(REALTIME, on_signal, 0, 0);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {1000, 0}}, NULL);
    kill(getpid(), SIGHUP);
    raise(REALTIME);
    raise(SIGSEGV);
}

/* Handlers work in the child, and what it changes is not the parent's. */
static void use(void)
{
    count = 0;
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    raise(SIGUSR2);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    printf("  its own handlers ran: %d\n", count);
    struct sigaction after;
    raise(SIGSEGV); /* whose handler runs once */
    sigaction(SIGSEGV, NULL, &after);
    printf("  SIGSEGV: %s\n", after.sa_handler == SIG_DFL ? "default again" : "still its handler");
    act(SIGUSR1, other_handler, 0, SIGHUP);
    act(SIGUSR2, other_handler, 0, SIGHUP);
    raise(SIGUSR2);
    printf("  and then: %d\n", count);
    fflush(stdout);
}

static void wait_for(const char *who, pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {}
    printf("%s ended: %x\n", who, status);
    fflush(stdout);
}

static void by_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        look("fork");
        use();
        _exit(3);
    }
    wait_for("fork", pid);
}

/* Several at once, each one's own child of a child. */
static void nested_fork(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGHUP);
        pid_t inner = fork();
        if (inner == 0) {
            look("fork of a fork");
            _exit(0);
        }
        wait_for("fork of a fork", inner);
        _exit(0);
    }
    wait_for("its parent", pid);
}

static void by_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execl(self, self, "exec", (char *)NULL);
        _exit(99);
    }
    wait_for("vfork", pid);
}

static void by_spawn(void)
{
    extern char **environ;
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigaddset(&set, SIGUSR2);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t pid = 0;
    char *arguments[] = {self, "exec", NULL};
    if (posix_spawn(&pid, self, NULL, &attributes, arguments, environ)) printf("no spawn\n");
    wait_for("spawn", pid);
}

static void by_clone(const char *who, uint64_t flags)
{
    struct clone_args a = {.flags = flags, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &a, sizeof a);
    if (pid == 0) {
        look(who);
        use();
        _exit(4);
    }
    wait_for(who, (pid_t)pid);
}

static void *in_thread(void *unused)
{
    look("thread");
    count = 0;
    pthread_kill(pthread_self(), SIGUSR1);
    printf("  its handler ran: %d\n", count);
    return unused;
}

static void by_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}

/* The signals that wait outlive an exec, and so do the mask and what is ignored. */
static void by_exec(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {1000, 0}}, NULL);
        raise(SIGHUP);
        raise(SIGHUP);
        raise(REALTIME);
        execl(self, self, "exec", (char *)NULL);
        _exit(99);
    }
    wait_for("exec", pid);
}

/* That a stack disarms itself outlives an exec, the stack itself does not; an exec that fails changes neither. */
static void by_exec_of(const char *who, char *file, int mode)
{
    static char stack[1 << 15];
    pid_t pid = fork();
    if (pid == 0) {
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = mode}, NULL);
        execl("/nonexistent", "none", (char *)NULL);
        look("behind an exec that fails");
        execl(file, file, who, (char *)NULL);
        _exit(99);
    }
    wait_for(who, pid);
}

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
enum { FAULTS = sizeof faults / sizeof faults[0] };

/* Who ignores faults may hand the kernel a bad address all the same; an exec that fails leaves them ignored. */
static void exec_with_faults_ignored(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int i = 0; i < FAULTS; i++) act(faults[i], SIG_IGN, 0, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl("/nonexistent", "none", (char *)NULL);
    for (int i = 0; i < FAULTS; i++) raise(faults[i]);
    bool refused = prctl(PR_SET_SECCOMP, 2, NULL) < 0;
    printf("faults ignored: a filter at no address is %s\n", refused ? "refused" : "taken");
    fflush(stdout);
    execl(self, self, "faults", (char *)NULL);
    _exit(99);
}

/* In the new program. What is ignored when somebody sends it kills where an instruction raises it. */
static int look_at_faults(void)
{
    for (int i = 0; i < FAULTS; i++) {
        struct sigaction a;
        sigaction(faults[i], NULL, &a);
        printf("  fault %d: %s\n", faults[i], name_of(a.sa_handler));
        fflush(stdout);
        raise(faults[i]);
    }
    *(volatile int *)NULL = 1;
    return 0;
}

static void by_exec_ignoring(void)
{
    pid_t pid = fork();
    if (pid == 0) exec_with_faults_ignored();
    wait_for("exec, faults ignored", pid);
}

/* A fork in a handler, with other signals on their way. */
static void fork_here(int sig)
{
    (void)sig;
    if (fork()) return;
    look("fork in a handler");
    _exit(5);
}

static void by_handler(void)
{
    act(SIGUSR1, fork_here, SA_ONSTACK, SIGUSR2);
    raise(SIGUSR1);
    wait_for("fork in a handler", -1);
    act(SIGUSR1, on_signal, SA_ONSTACK | SA_NODEFER, 0);
}

int main(int argc, char **argv)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    original = argv[0];
    if (argc > 1 && !strcmp(argv[1], "faults")) return look_at_faults();
    if (argc > 1) {
        look(argv[1]);
        return 6;
    }
    set_up();
    look("first");
    by_fork();
    nested_fork();
    by_vfork();
    by_spawn();
    by_clone("clone", 0);
    by_clone("clone, handlers cleared", CLONE_CLEAR_SIGHAND);
    by_thread();
    by_exec();
    by_exec_of("exec of itself", self, (int)SS_AUTODISARM);
    by_exec_of("exec of the original", original, 0);
    by_exec_of("exec of the original, with a stack that disarms itself", original, (int)SS_AUTODISARM);
    by_exec_ignoring();
    by_handler();
    look("first, at the end");
    return 0;
}
