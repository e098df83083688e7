/* A program that may not make memory executable any more: by PR_SET_MDWE where the kernel has it, then by a filter as
 * service managers set it. Threads, handlers, libraries that are loaded and children go on as ever; twice it executes
 * itself, which begins without the right. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SET_MDWE = 65, REFUSE_GAIN = 1 };
static volatile sig_atomic_t handled;

static void handler(int signo) { handled += signo == SIGUSR1; }

static void *thread(void *arg)
{
    int n = 0;
    for (int i = 0; i < 1000; i++) n += i % 7 == (int)(size_t)arg;
    raise(SIGUSR1);
    return (void *)(size_t)n;
}

/* mmap of what is both, mprotect of anything to be executed. */
static int set_filter(void)
{
#define LOAD(what)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define IS(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)
    struct sock_filter code[] = {
        LOAD(nr),
        IS(SYS_mprotect, 0, 3),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 6, 0),
        ANSWER(SECCOMP_RET_ALLOW),
        IS(SYS_mmap, 0, 3),
        LOAD(args[2]),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
        IS(PROT_WRITE | PROT_EXEC, 1, 0),
        ANSWER(SECCOMP_RET_ALLOW),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static const char *refusal(void) { return errno == EACCES || errno == EPERM ? "refused" : strerror(errno); }

static void tries(void)
{
    void *both = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *refused = refusal();
    void *plain = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int gains = mprotect(plain, 4096, PROT_READ | PROT_EXEC);
    printf("  memory of both kinds: %s; that becomes executable: %s\n", both == MAP_FAILED ? refused : "there",
           gains ? refusal() : "there");
}

static void works(void)
{
    pthread_t t[3];
    void *answer;
    long sum = 0;
    signal(SIGUSR1, handler);
    for (size_t i = 0; i < 3; i++) pthread_create(&t[i], NULL, thread, (void *)i);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(t[i], &answer);
        sum += (long)answer;
    }
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*root)(double) = library ? (double (*)(double))dlsym(library, "cbrt") : NULL;
    printf("  threads %ld, handled %d, library %g\n", sum, (int)handled, root ? root(27) : 0);
    fflush(stdout);
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        raise(SIGUSR1);
        _exit(handled == 4 ? (int)(long)thread((void *)1) % 100 : 99);
    }
    waitpid(child, &status, 0);
    printf("  child %d\n", WEXITSTATUS(status));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *next = argc == 1 ? "again" : !strcmp(argv[1], "again") ? "last" : NULL;
    int failed = argc == 1 ? prctl(SET_MDWE, REFUSE_GAIN, 0, 0, 0) && errno != EINVAL : next ? set_filter() : 0;
    printf("%s%s\n", argc == 1 ? "first" : argv[1], failed ? ": it cannot be given up" : "");
    tries();
    works();
    if (next) execl("/proc/self/exe", "noexec", next, (char *)NULL);
    return 0;
}
