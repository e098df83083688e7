/* Confines itself by filters of system calls, each way in a child of its own; with an argument only that way. What
 * is refused, and how, must be as it is natively: for calls that go straight to the kernel as for those that Inlay
 * carries out or answers itself. After each filter code runs that has not run before, and the process ends. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 64 };
typedef struct filter {
    struct sock_filter code[MOST];
    unsigned count;
} filter;

static void add(filter *f, struct sock_filter i) { f->code[f->count++] = i; }

static void begin(filter *f)
{
    f->count = 0;
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
}

static void rule(filter *f, int nr, uint32_t answer)
{
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1));
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

static long install(filter *f, uint32_t otherwise, unsigned flags)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise));
    struct sock_fprog p = {.len = (unsigned short)f->count, .filter = f->code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return flags ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p)
                 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

/* Without the C library, whose calls may not be allowed. */
static void say(const char *text)
{
    if (syscall(SYS_write, 1, text, strlen(text)) < 0) _exit(90);
}

__attribute__((noinline)) static int fresh_code(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += i % 3 == 1 ? i * i : i;
    return sum;
}

static int end_of(int good) { return good && fresh_code(10) == 99 ? 0 : 1; }

/* --- SIGSYS --- */

static volatile int traps, wrong, last;

static void on_trap(int signo, siginfo_t *info, void *context)
{
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    wrong += signo != SIGSYS || info->si_code != 1 || info->si_call_addr != (void *)g[REG_RIP] ||
             info->si_syscall != g[REG_RAX] || info->si_arch != AUDIT_ARCH_X86_64 || info->si_errno != 17;
    last = info->si_syscall;
    traps++;
    g[REG_RAX] = 4242;
}

static int trapped(void)
{
    static const int calls[] = {
        SYS_getppid,    SYS_rt_sigprocmask, SYS_mmap,     SYS_munmap,   SYS_dup2,  SYS_rseq,
        SYS_setitimer,  SYS_close_range,    SYS_clone3,   SYS_execve,   SYS_ppoll, SYS_sigaltstack,
        SYS_arch_prctl, SYS_prctl,          SYS_readlink, SYS_mprotect, SYS_brk};
    struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    filter f;
    sigaction(SIGSYS, &a, NULL);
    begin(&f);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) rule(&f, calls[i], SECCOMP_RET_TRAP | 17);
    if (install(&f, SECCOMP_RET_ALLOW, 0)) return 1;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        last = -1;
        long answer = syscall(calls[i], 0, 0, 0, 0, 0, 0);
        char text[100];
        snprintf(text, sizeof text, "call %d: trapped %d, wrong %d, answer %ld\n", calls[i], last == calls[i], wrong,
                 answer);
        say(text);
    }
    return end_of(traps == sizeof calls / sizeof *calls);
}

/* --- errors, also of calls that Inlay never hands to the kernel --- */

static int refused(void)
{
    static const int calls[] = {SYS_getuid,  SYS_rt_sigaction, SYS_sigaltstack,  SYS_mprotect,
                                SYS_fork,    SYS_openat,       SYS_memfd_create, SYS_fcntl,
                                SYS_madvise, SYS_prlimit64,    SYS_gettid,       SYS_getpid};
    filter f;
    begin(&f);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) rule(&f, calls[i], SECCOMP_RET_ERRNO | (70 + i));
    if (install(&f, SECCOMP_RET_ALLOW, 0)) return 1;
    int good = 0;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        good += syscall(calls[i], 0, 0, 0, 0, 0) == -1 && errno == (int)(70 + i);
    char text[60];
    snprintf(text, sizeof text, "%d errors\n", good);
    say(text);
    return end_of(good == sizeof calls / sizeof *calls);
}

/* --- a list of what may be done --- */

static void allow_few(filter *f)
{
    static const int few[] = {SYS_write, SYS_exit_group, SYS_exit, SYS_rt_sigreturn};
    begin(f);
    for (unsigned i = 0; i < sizeof few / sizeof *few; i++) rule(f, few[i], SECCOMP_RET_ALLOW);
}

static int tight(void)
{
    filter f;
    allow_few(&f);
    if (install(&f, SECCOMP_RET_KILL_PROCESS, 0)) return 1;
    say("still here\n");
    return end_of(1);
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)signo;
    (void)info;
    say("faulted\n");
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* the instruction */
}

static int tight_fault(void)
{
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    filter f;
    sigaction(SIGSEGV, &a, NULL);
    allow_few(&f);
    if (install(&f, SECCOMP_RET_KILL_PROCESS, 0)) return 1;
    long nowhere = 8;
    __asm__ volatile("movl (%%rax), %%eax" : "+a"(nowhere));
    return end_of(1);
}

static int killed(void)
{
    filter f;
    allow_few(&f);
    if (install(&f, SECCOMP_RET_KILL_PROCESS, 0)) return 1;
    say("about to die\n");
    syscall(SYS_getppid);
    return end_of(1);
}

/* Answered by Inlay alone, were it not for the filter. */
static int killed_by_mask(void)
{
    filter f;
    uint64_t set = 0;
    allow_few(&f);
    if (install(&f, SECCOMP_RET_KILL_PROCESS, 0)) return 1;
    say("about to die\n");
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, sizeof set);
    return end_of(1);
}

static int strict(void)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1;
    say("strict\n");
    int status = end_of(1);
    for (;;) syscall(SYS_exit, status);
}

static int strict_killed(void)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1;
    say("strict\n");
    syscall(SYS_getppid);
    return end_of(1);
}

/* That mode takes the time stamps away too. */
static int strict_time(void)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 1;
    say("strict\n");
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    say("what time is it?\n");
    return end_of(1);
}

/* --- filters on filters --- */

static int stacked(void)
{
    filter f;
    begin(&f);
    rule(&f, SYS_getppid, SECCOMP_RET_ERRNO | 71);
    rule(&f, SYS_getuid, SECCOMP_RET_ERRNO | 72);
    if (install(&f, SECCOMP_RET_ALLOW, 0)) return 1;
    begin(&f);
    rule(&f, SYS_getuid, SECCOMP_RET_ERRNO | 73);
    rule(&f, SYS_getgid, SECCOMP_RET_ERRNO | 74);
    rule(&f, SYS_seccomp, SECCOMP_RET_ERRNO | 75);
    if (install(&f, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_LOG)) return 1;
    int a = syscall(SYS_getppid) == -1 ? errno : 0, b = syscall(SYS_getuid) == -1 ? errno : 0,
        c = syscall(SYS_getgid) == -1 ? errno : 0,
        d = install(&f, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_LOG) ? errno : 0;
    char text[60];
    snprintf(text, sizeof text, "%d %d %d %d\n", a, b, c, d);
    say(text);
    return end_of(1);
}

/* Looks at the arguments of glibc's clone for a thread, as browsers' sandboxes do. */
static void *nothing(void *p) { return p; }

static int threads_only(void)
{
    uint32_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                     CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    filter f;
    begin(&f);
    rule(&f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    add(&f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)));
    add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 1, 0));
    add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    if (install(&f, SECCOMP_RET_ALLOW, 0)) return 1;
    pthread_t t;
    void *back = NULL;
    int error = pthread_create(&t, NULL, nothing, &f);
    if (!error) pthread_join(t, &back);
    pid_t child = fork();
    char text[60];
    snprintf(text, sizeof text, "thread %d %d, child %d %s\n", error, back == &f, child,
             child < 0 ? strerror(errno) : "");
    say(text);
    return end_of(1);
}

/* --- threads: who has the filter --- */

static volatile int go;

static void *asks(void *p)
{
    int *result = p;
    __atomic_add_fetch(&go, 1, __ATOMIC_SEQ_CST);
    while (go < 2) sched_yield();
    *result = syscall(SYS_getppid) == -1 ? errno : 0;
    return NULL;
}

static int of_threads(bool all)
{
    pthread_t t;
    int other = -1;
    filter f;
    pthread_create(&t, NULL, asks, &other);
    while (!go) sched_yield();
    begin(&f);
    rule(&f, SYS_getppid, SECCOMP_RET_ERRNO | 71);
    if (install(&f, SECCOMP_RET_ALLOW, all ? SECCOMP_FILTER_FLAG_TSYNC : SECCOMP_FILTER_FLAG_LOG)) return 1;
    __atomic_add_fetch(&go, 1, __ATOMIC_SEQ_CST);
    pthread_join(t, NULL);
    int own = syscall(SYS_getppid) == -1 ? errno : 0;
    char text[60];
    snprintf(text, sizeof text, "own %d, other's %d\n", own, other);
    say(text);
    return end_of(1);
}

static int one_thread(void) { return of_threads(false); }
static int all_threads(void) { return of_threads(true); }

static void *dies_alone(void *p)
{
    filter f;
    begin(&f);
    rule(&f, SYS_getppid, SECCOMP_RET_KILL_THREAD);
    if (!install(&f, SECCOMP_RET_ALLOW, 0)) syscall(SYS_getppid);
    *(int *)p = 1;
    return NULL;
}

/* A thread that is killed leaves the others; what was to wake them up still does. */
static int thread_killed(void)
{
    pthread_t t;
    int lived = 0;
    pthread_create(&t, NULL, dies_alone, &lived);
    pthread_join(t, NULL);
    say(lived ? "it lived\n" : "it died\n");
    return end_of(1);
}

/* --- what a child inherits --- */

static int inherited(void)
{
    filter f;
    begin(&f);
    rule(&f, SYS_getuid, SECCOMP_RET_ERRNO | 72);
    if (install(&f, SECCOMP_RET_ALLOW, 0)) return 1;
    pid_t child = fork();
    if (!child) _exit(syscall(SYS_getuid) == -1 ? errno : 0);
    int status;
    waitpid(child, &status, 0);
    char text[40];
    snprintf(text, sizeof text, "child: %d\n", WEXITSTATUS(status));
    say(text);
    return end_of(1);
}

/* The new program may not do what a tool in it would have to. */
static int executes(void)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo in a shell; exit 6", NULL};
    filter f;
    begin(&f);
    rule(&f, SYS_sigaltstack, SECCOMP_RET_KILL_PROCESS);
    rule(&f, SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
    rule(&f, SYS_execveat, SECCOMP_RET_KILL_PROCESS);
    if (install(&f, SECCOMP_RET_ALLOW, 0)) return 1;
    execv("/bin/sh", argv);
    return end_of(1);
}

/* --- what the kernel itself refuses --- */

static int mistaken(void)
{
    struct sock_filter bad[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4096), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {.len = 2, .filter = bad}, empty = {.len = 0, .filter = bad}, nowhere = {.len = 2};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int a = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) ? errno : 0,
        b = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty) ? errno : 0,
        c = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &nowhere) ? errno : 0,
        d = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8) ? errno : 0, e = prctl(PR_SET_SECCOMP, 77, 0) ? errno : 0,
        f = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1u << 30, &p) ? errno : 0;
    printf("%d %d %d %d %d %d\n", a, b, c, d, e, f);
    return end_of(1);
}

/* clang-format off */
static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"trapped", trapped}, {"refused", refused}, {"tight", tight}, {"tight-fault", tight_fault}, {"killed", killed},
    {"killed-by-mask", killed_by_mask}, {"strict", strict}, {"strict-killed", strict_killed},
    {"strict-time", strict_time}, {"stacked", stacked},
    {"threads-only", threads_only}, {"one-thread", one_thread}, {"all-threads", all_threads},
    {"thread-killed", thread_killed}, {"inherited", inherited}, {"executes", executes}, {"mistaken", mistaken},
};
/* clang-format on */

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (argc > 1 && strcmp(ways[i].name, argv[1]) != 0) continue;
        if (argc > 1) return ways[i].run();
        pid_t child = fork();
        if (!child) exit(ways[i].run());
        int status;
        waitpid(child, &status, 0);
        printf("%s: status %d, signal %d\n", ways[i].name, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    return 0;
}
