/* A program of many ends and of every way to start something: what it does is its first argument's
 * business. See ends.py. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
extern char **environ;
static char **arguments;
static volatile unsigned long ticks, nested;

/* Its instructions depend on its argument alone. */
NOINLINE unsigned long work(unsigned long n)
{
    unsigned long x = 12345;
    for (unsigned long i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (x & 1) x += i;
    }
    return x;
}

NOINLINE static unsigned long fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* --- ends --- */

static int by_return(void) { return 3; }
static int by_exit(void) { exit(4); }
static int by_exit_now(void) { _exit(5); }
static int by_quick_exit(void)
{
#ifdef __GLIBC__
    quick_exit(6);
#else
    _exit(6);
#endif
}
static int by_abort(void) { abort(); }
static int by_fault(void) { return *(volatile int *)8; }
NOINLINE static int deeper(int n)
{
    volatile char room[65536];
    room[n % 65536] = (char)n;
    return deeper(n + 1) + room[n % 65536];
}
static int by_overflow(void) { return deeper(1); }
static int by_term(void)
{
    kill(getpid(), SIGTERM);
    for (;;) pause();
}
static int by_signal_from_outside(void)
{
    pid_t parent = getpid(), child = fork();
    if (!child) {
        kill(parent, SIGTERM);
        _exit(0);
    }
    for (;;) work(1000);
}
static int by_exec(void)
{
    execl("/bin/echo", "echo", "another program", (char *)NULL);
    return 9;
}
static int by_exec_of_nothing(void)
{
    execl("/nonexistent", "nothing", (char *)NULL);
    return 7;
}
static int by_exec_of_rubbish(void)
{
    char name[] = "/tmp/inlay-ends-XXXXXX";
    int fd = mkstemp(name);
    if (write(fd, "\177ELFrubbish", 11) != 11 || fchmod(fd, 0755)) return 1;
    close(fd);
    execl(name, "rubbish", (char *)NULL);
    printf("%d\n", errno == ENOEXEC);
    unlink(name);
    return 8;
}
static int without_descriptors(void)
{
    for (int i = 0; i < 70000; i++) close(i);
    syscall(SYS_close_range, 0, ~0u, 0);
    return 10;
}
static int over_descriptors(void) /* puts its own in the place of all that are open */
{
    for (int i = 3; i < 70000; i++)
        if (fcntl(i, F_GETFD) >= 0) dup2(0, i);
    return 13;
}
static int as_daemon(void)
{
    if (fork()) _exit(0);
    setsid();
    if (fork()) _exit(0);
    for (int i = 0; i < 70000; i++) close(i);
    work(100);
    _exit(0);
}
static int by_thread_exit(void)
{
    syscall(SYS_exit, 11);
    return 1;
}

/* --- threads and processes --- */

static void *worker(void *n) { return (void *)work((unsigned long)n); }

static int threads(void)
{
    pthread_t t[8];
    unsigned long sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 8; k++) pthread_create(&t[k], NULL, worker, (void *)20000ul);
        for (int k = 0; k < 8; k++) {
            void *r;
            pthread_join(t[k], &r);
            sum += (unsigned long)r;
        }
    }
    printf("%lx\n", sum);
    return 0;
}

static int main_ends_first(void)
{
    pthread_t t;
    pthread_create(&t, NULL, worker, (void *)200000ul);
    pthread_detach(t);
    pthread_exit(NULL);
}

static void *sleeper(void *unused)
{
    for (;;) pause();
    return unused;
}

static int cancelled(void)
{
    pthread_t t;
    void *r;
    pthread_create(&t, NULL, sleeper, NULL);
    usleep(20000);
    pthread_cancel(t);
    pthread_join(t, &r);
    printf("%d\n", r == PTHREAD_CANCELED);
    return 0;
}

static int forks(void)
{
    pid_t child = fork();
    if (!child) {
        work(1000);
        exit(2);
    }
    printf("%d\n", status_of(child));
    return 0;
}

static int vforks(void)
{
    pid_t child = vfork();
    if (!child) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    printf("%d\n", status_of(child));
    child = vfork();
    if (!child) _exit(12);
    printf("%d\n", status_of(child));
    return 0;
}

static int spawns(void)
{
    char *argv[] = {"true", NULL}, *none[] = {"nothing", NULL};
    pid_t child;
    int error = posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ);
    printf("%d %d\n", error, status_of(child));
    printf("%d\n", posix_spawn(&child, "/nonexistent", NULL, NULL, none, environ) == ENOENT);
    printf("%d\n", system("exit 3") >> 8);
    return 0;
}

/* --- signals --- */

static void tick(int signo)
{
    (void)signo;
    ticks++;
    if (work(20) == 7) abort();
    if (ticks % 5 == 0) raise(SIGUSR2);
}
static void nest(int signo)
{
    (void)signo;
    nested++;
    if (fib(6) != 8) abort();
}

static void timer_on(int on)
{
    struct itimerval every = {{0, on ? 1000 : 0}, {0, on ? 1000 : 0}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void *calls(void *n)
{
    unsigned long sum = 0;
    for (long k = 0; k < (long)n; k++) sum += fib(15);
    return (void *)sum;
}

/* Sums come out right whatever the handlers interrupt. */
static int under_load(void)
{
    struct sigaction on_tick = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct sigaction on_nest = {.sa_handler = nest, .sa_flags = SA_RESTART | SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    pthread_t t[4];
    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &on_tick, NULL);
    sigaction(SIGUSR2, &on_nest, NULL);
    timer_on(1);
    unsigned long sum = 0;
    while (ticks < 100) {
        sum = 0;
        for (int k = 0; k < 4; k++) pthread_create(&t[k], NULL, calls, (void *)20ul);
        sum += (unsigned long)calls((void *)20ul) + work(200000);
        for (int k = 0; k < 4; k++) {
            void *r;
            pthread_join(t[k], &r);
            sum += (unsigned long)r;
        }
    }
    timer_on(0);
    printf("%lx %d\n", sum, nested > 0);
    return 0;
}

static sigjmp_buf out;
static void leave(int signo)
{
    (void)signo;
    siglongjmp(out, 1);
}

static int jumps_out(void)
{
    struct sigaction a = {.sa_handler = leave};
    sigaction(SIGALRM, &a, NULL);
    volatile int times = 0;
    for (volatile int k = 0; k < 50; k++) {
        if (!sigsetjmp(out, 1)) {
            struct itimerval once = {{0, 0}, {0, 500}};
            setitimer(ITIMER_REAL, &once, NULL);
            for (;;) work(10);
        }
        times++;
    }
    printf("%d\n", times);
    return 0;
}

static void faulted(int signo, siginfo_t *info, void *context)
{
    (void)context;
    printf("%d %p\n", signo, info->si_addr);
    siglongjmp(out, 1);
}

static int catches_fault(void)
{
    struct sigaction a = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    for (volatile int k = 0; k < 3; k++)
        if (!sigsetjmp(out, 1)) *(volatile int *)(long)(16 + k) = 1;
    return 0;
}

/* Signals arrive all the time, also while others are delivered and while instructions fault. */
static void left(int signo)
{
    (void)signo;
    nested++;
    siglongjmp(out, 1);
}
static int faults_under_load(void)
{
    struct sigaction on_tick = {.sa_handler = tick}, on_fault = {.sa_handler = left};
    static char from[50000], to[50000];
    sigaction(SIGALRM, &on_tick, NULL);
    sigaction(SIGSEGV, &on_fault, NULL);
    signal(SIGUSR2, SIG_IGN);
    struct itimerval every = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &every, NULL);
    for (volatile int k = 0; k < 1000 || ticks < 100; k++) {
        if (sigsetjmp(out, 1)) continue;
        if (k % 8 == 0) {
            void *d = to, *s = from;
            unsigned long n = sizeof to;
            __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
        }
        *(volatile int *)(8 + fib(3)) = 1;
    }
    timer_on(0);
    printf("%d\n", nested >= 1000);
    return 0;
}

static int actions(void)
{
    struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESETHAND}, old;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR1, NULL, &old);
    printf("%d ", old.sa_handler == tick);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &old);
    printf("%lu %d ", ticks, old.sa_handler == SIG_DFL);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    printf("%d\n", signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        raise(SIGUSR1);
        _exit(0);
    }
    printf("%d\n", status_of(child));
    return 0;
}

static int opens_library(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*root)(double) = NULL;
    if (library) *(void **)&root = dlsym(library, "sqrt");
    printf("%g\n", root ? root(81) : 9.0);
    return 0;
}

static int runs_itself(void)
{
    char *argv[] = {arguments[0], "return", NULL};
    execv("/proc/self/exe", argv);
    return 1;
}

/* --- places from which a report is hard to write --- */

static int forks_and_ends(void)
{
    pid_t child = fork();
    if (!child) {
        work(1000);
        _exit(2);
    }
    dprintf(1, "%d\n", status_of(child));
    _exit(4);
}

static int locked_in(void)
{
    char folder[] = "/tmp/ends-XXXXXX";
    if (mkdtemp(folder)) chdir(folder);
    rmdir(folder);
    dprintf(1, "%d\n", geteuid() == 0 ? chroot(".") : -1);
    return forks_and_ends();
}

static int as_nobody(void)
{
    int other = geteuid() == 0 ? setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) : 0;
    dprintf(1, "%d %d\n", other, chdir("/proc"));
    return forks_and_ends();
}

static int without_more_descriptors(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    dprintf(1, "%d\n", open("/dev/null", O_RDONLY));
    return forks_and_ends();
}

/* A file must not grow: there is no report, but the program ends as it does. */
static int without_file_size(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    return 4;
}

static int lists_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));) printf("%s ", e->d_name);
    printf("%d %d\n", dup(0), fcntl(5, F_GETFD));
    return 0;
}

/* As servers do that show in the list of processes what they are at: over the strings of the environment. */
static int takes_title(void)
{
    char **copies = calloc(10000, sizeof *copies);
    for (int i = 0; environ[i] && i < 9999; i++) {
        copies[i] = strdup(environ[i]);
        memset(environ[i], 'x', strlen(environ[i]));
    }
    environ = copies;
    return forks_and_ends();
}

static int goes_strict(void)
{
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */);
        work(1000);
        for (;;) syscall(SYS_exit, 5);
    }
    dprintf(1, "%d\n", status_of(child));
    return 0;
}

/* clang-format off */
static const struct { const char *name; int (*run)(void); } ways[] = {
    {"return", by_return}, {"exit", by_exit}, {"_exit", by_exit_now}, {"quick_exit", by_quick_exit},
    {"abort", by_abort}, {"fault", by_fault}, {"overflow", by_overflow}, {"term", by_term},
    {"from-outside", by_signal_from_outside}, {"exec", by_exec}, {"exec-nothing", by_exec_of_nothing},
    {"exec-rubbish", by_exec_of_rubbish}, {"close-all", without_descriptors},
    {"dup-over", over_descriptors}, {"daemon", as_daemon}, {"thread-exit", by_thread_exit},
    {"threads", threads}, {"main-first", main_ends_first}, {"cancel", cancelled}, {"fork", forks},
    {"vfork", vforks}, {"spawn", spawns}, {"load", under_load}, {"jump-out", jumps_out},
    {"catch", catches_fault}, {"catch-load", faults_under_load}, {"actions", actions}, {"dlopen", opens_library},
    {"itself", runs_itself},
    {"locked-in", locked_in}, {"nobody", as_nobody}, {"no-descriptors", without_more_descriptors},
    {"no-file-size", without_file_size}, {"listing", lists_descriptors}, {"title", takes_title},
    {"strict", goes_strict},
};
/* clang-format on */

int main(int argc, char **argv)
{
    arguments = argv;
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, argv[1])) return ways[i].run();
    return 99;
}
