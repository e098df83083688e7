/* Does what it is told, line by line, and answers: so that a tool can be put into it between two lines. What it
 * has set up before (handlers, a second stack, places to jump to, threads that wait and threads that compute, registers
 * in use) must be as it was afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t handled, on_stack;
static char second_stack[64 << 10];
static sigjmp_buf before, fault;
static atomic_int turns, wrong, ends, woken;
static int wakes[2], never[2], set;
unsigned long seen; /* inserted code writes it */

__attribute__((noinline)) unsigned work(unsigned n)
{
    unsigned sum = 7;
    for (unsigned i = 0; i < 50; i++) sum = sum * 31 + (n ^ i);
    return sum;
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    char here;
    (void)context;
    handled += signo == SIGUSR1 && info->si_pid == getpid();
    on_stack += &here >= second_stack && &here < second_stack + sizeof second_stack;
}

static void on_fault(int signo)
{
    (void)signo;
    siglongjmp(fault, 1);
}

/* Sums that would come out wrong if a register were not what it was. */
static void *computes(void *arg)
{
    (void)arg;
    while (!ends) {
        double x = 1.0, y = 0.5;
        uint64_t a = 1, b = 2, c = 3;
        for (int i = 0; i < 4000; i++) {
            x = x * 1.0001 + y;
            a += b ^ (uint64_t)i;
            b = b * 5 + c;
            c ^= a >> 3;
        }
        static _Atomic uint64_t first;
        static double first_x;
        uint64_t none = 0, got = a ^ b ^ c;
        if (!first_x) first_x = x;
        if (!atomic_compare_exchange_strong(&first, &none, got) && first != got) wrong++;
        if (first_x != x) wrong++;
        turns++;
    }
    return NULL;
}

/* All have the same one, as threads may where only one that crashes would use it. */
static void set_stack(void)
{
    stack_t s = {.ss_sp = second_stack, .ss_size = sizeof second_stack};
    sigaltstack(&s, NULL);
}

static void *waits(void *arg)
{
    char byte;
    (void)arg;
    set_stack();
    while (read(wakes[0], &byte, 1) == 1) woken++;
    return NULL;
}

/* Interrupted by nothing that the program knows of, it must not come back before something is there; save, `patient`,
 * where whoever traces it is killed right when it has stopped: that is as after SIGSTOP and SIGCONT. */
static void *polls(void *arg)
{
    struct epoll_event got;
    int n;
    bool patient = arg != NULL;
    sigset_t all;
    sigfillset(&all);
    set_stack();
    do n = epoll_pwait(set, &got, 1, -1, &all);
    while (n != 1 && patient && errno == EINTR);
    if (n != 1 && !ends) wrong++;
    return NULL;
}

static void *adds(void *arg)
{
    unsigned *sum = arg;
    for (unsigned i = 0; i < 20; i++) *sum += work(i);
    return NULL;
}

static void do_work(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) sum += work(i);
    printf("work %u\n", sum);
}

static void do_threads(unsigned n)
{
    pthread_t t[64];
    unsigned sums[64] = {0}, sum = 0;
    if (n > 64) n = 64;
    for (unsigned i = 0; i < n; i++) pthread_create(&t[i], NULL, adds, &sums[i]);
    for (unsigned i = 0; i < n; i++) pthread_join(t[i], NULL);
    for (unsigned i = 0; i < n; i++) sum += sums[i];
    printf("threads %u\n", sum);
}

static void do_fork(void)
{
    int status;
    fflush(stdout);
    if (fork() == 0) _exit(work(3) & 63);
    wait(&status);
    printf("fork %d\n", WEXITSTATUS(status));
}

static void do_spawn(void)
{
    pid_t pid;
    int status;
    char *const argv[] = {"sh", "-c", "exit 5", NULL};
    posix_spawnp(&pid, "sh", NULL, NULL, argv, environ);
    waitpid(pid, &status, 0);
    printf("spawn %d\n", WEXITSTATUS(status));
}

static void do_fault(void)
{
    if (sigsetjmp(fault, 1) == 0) *(volatile int *)8 = 1;
    printf("fault\n");
}

static void do_sleep(void)
{
    struct timespec t = {.tv_nsec = 20000000};
    int left = nanosleep(&t, NULL);
    printf("sleep %d\n", left);
}

static void do_wake(void)
{
    int old = woken;
    if (write(wakes[1], "x", 1) != 1) wrong++;
    while (woken == old) usleep(1000);
    printf("wake\n");
}

static void do_settings(void)
{
    struct sigaction a;
    stack_t s;
    sigset_t mask;
    sigaction(SIGUSR1, NULL, &a);
    sigaltstack(NULL, &s);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    printf("settings %d %d %d %d\n", a.sa_sigaction == on_signal, s.ss_sp == second_stack, sigismember(&mask, SIGUSR2),
           sigismember(&mask, SIGUSR1));
}

static void obey(char *line)
{
    char what[32];
    unsigned n = 0;
    if (sscanf(line, "%31s %u", what, &n) < 1) return;
    if (!strcmp(what, "work")) do_work(n);
    else if (!strcmp(what, "threads")) do_threads(n);
    else if (!strcmp(what, "fork")) do_fork();
    else if (!strcmp(what, "spawn")) do_spawn();
    else if (!strcmp(what, "fault")) do_fault();
    else if (!strcmp(what, "sleep")) do_sleep();
    else if (!strcmp(what, "wake")) do_wake();
    else if (!strcmp(what, "settings")) do_settings();
    else if (!strcmp(what, "signal")) raise(SIGUSR1), printf("signal %d %d\n", (int)handled, (int)on_stack);
    else if (!strcmp(what, "jump")) siglongjmp(before, 1);
    else if (!strcmp(what, "exit")) exit((int)n);
    else if (!strcmp(what, "die")) fflush(stdout), raise(SIGTERM);
}

__asm__(".pushsection .text; .skip 0x4000, 0x90; .popsection");

/* A piece of its own code once more, elsewhere, as V8 has it: that is no second program. */
static void map_again(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || mmap((void *)0x123400000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x3000) == MAP_FAILED)
        exit(98);
    close(fd);
}

static void set_up(void)
{
    struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK}, f = {.sa_handler = on_fault};
    sigset_t mask;
    set_stack();
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGSEGV, &f, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    struct epoll_event e = {.events = EPOLLIN};
    if (pipe(wakes) || pipe(never)) exit(99);
    set = epoll_create1(0); /* all that it opens is open before it answers */
    epoll_ctl(set, EPOLL_CTL_ADD, never[0], &e);
    map_again();
}

int main(int argc, char **argv)
{
    pthread_t t[4];
    char line[256];
    set_up();
    pthread_create(&t[0], NULL, computes, NULL);
    pthread_create(&t[1], NULL, computes, NULL);
    pthread_create(&t[2], NULL, waits, NULL);
    pthread_create(&t[3], NULL, polls, argc > 1 ? argv[1] : NULL);
    if (sigsetjmp(before, 1)) printf("jumped\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        obey(line);
        fflush(stdout);
    }
    int old = turns;
    while (turns < old + 2) usleep(1000);
    ends = 1;
    close(wakes[1]);
    if (write(never[1], "x", 1) != 1) wrong++;
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    printf("end %d\n", (int)wrong);
    return 9;
}
