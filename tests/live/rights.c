/* Answers each line with itself, by the calls read and write alone, after it has given up a right or a resource: the
 * first argument says which. Status 5. "cannot" where the kernel knows no such thing. */
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MDWE = 65, MDWE_REFUSE = 1 };

static void *answer(void *arg)
{
    char bytes[256];
    for (ssize_t n; (n = read(0, bytes, sizeof bytes)) > 0;)
        if (write(1, bytes, (size_t)n) != n) break;
    syscall(arg ? SYS_exit_group : SYS_exit, 5);
    return NULL;
}

static int limit(int what, rlim_t most) { return setrlimit(what, &(struct rlimit){most, most}); }

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int failed = 0;
    pthread_t thread;
    if (!strcmp(what, "strict")) failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (!strcmp(what, "files")) failed = limit(RLIMIT_NOFILE, 4);
    if (!strcmp(what, "memory")) failed = limit(RLIMIT_AS, 4096);
    if (!strcmp(what, "size")) failed = limit(RLIMIT_FSIZE, 1);
    if (!strcmp(what, "code")) failed = prctl(MDWE, MDWE_REFUSE, 0, 0, 0);
    if (!strcmp(what, "hidden")) failed = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (failed && write(1, "cannot\n", 7) == 7) return 5;
    if (!strcmp(what, "first")) {
        failed = pthread_create(&thread, NULL, answer, "all");
        pthread_exit(NULL);
    }
    answer(NULL);
}
