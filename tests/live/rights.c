/* Answers each line with itself, by the calls read and write alone, after it has given up a right or a resource: the
 * first argument says which. Status 5. "cannot" where the kernel knows no such thing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libgen.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* --- a first thread that the kernel has until there is more to read --- */

static void wait_for_more(void) { poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, -1); }

/* In the midst of vfork. */
static void lend(void)
{
    if (vfork() == 0) {
        wait_for_more();
        _exit(0);
    }
}

/* In a fault within a system call, which another thread ends. */
enum { PAGE = 4096 };
static struct uffdio_zeropage page = {.range = {.len = PAGE}};
static void *give_page(void *faults)
{
    wait_for_more();
    ioctl(*(int *)faults, UFFDIO_ZEROPAGE, &page);
    return NULL;
}

static int fault(void)
{
    static int faults;
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register where = {.range = {(unsigned long)at, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    pthread_t thread;
    page.range = where.range;
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &where)) return -1;
    if (pthread_create(&thread, NULL, give_page, &faults)) return -1;
    int zero = open("/dev/zero", O_RDONLY);
    return read(zero, at, 1) == 1 ? close(zero) : -1;
}

/* In a system call that faults in one page after the other. Each takes a second, until another process gives it; that
 * begins when somebody has come who is to wait. */
enum { PAGES = 7 };
static void await_tracer(pid_t pid)
{
    char path[32], text[4096] = "TracerPid:\t0\n";
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    while (strstr(text, "TracerPid:\t0\n") && getppid() == pid) {
        usleep(10000);
        int file = open(path, O_RDONLY);
        ssize_t n = read(file, text, sizeof text - 1);
        close(file);
        if (n > 0) text[n] = 0;
    }
}

static void give_pages(int faults, pid_t parent)
{
    await_tracer(parent);
    for (int k = 0; k < PAGES; k++, page.range.start += PAGE) {
        sleep(1);
        ioctl(faults, UFFDIO_ZEROPAGE, &page);
    }
    _exit(0);
}

static int fault_on(void)
{
    static char bytes[PAGES * PAGE];
    int ends[2], room = 1 << 20, faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    void *at = mmap(NULL, sizeof bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register where = {.range = {(unsigned long)at, sizeof bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    page.range = (struct uffdio_range){where.range.start, PAGE};
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &where)) return -1;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return -1;
    if (setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room)) return -1;
    if (write(ends[0], bytes, sizeof bytes) != sizeof bytes) return -1;
    pid_t parent = getpid();
    if (fork() == 0) give_pages(faults, parent);
    if (read(ends[1], at, sizeof bytes) != sizeof bytes) return -1;
    return wait(NULL) < 0 || close(faults) || close(ends[0]) || close(ends[1]);
}

/* All its code keeps its protection for good. */
static int seal(void)
{
    enum { MSEAL = 462 };
    static char maps[1 << 16];
    int file = open("/proc/self/maps", O_RDONLY);
    size_t size = 0;
    for (ssize_t n; (n = read(file, maps + size, sizeof maps - 1 - size)) > 0;) size += (size_t)n;
    close(file);
    for (char *line = maps, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *rest;
        unsigned long low = strtoul(line, &rest, 16), high = strtoul(rest + 1, &rest, 16);
        if (rest[3] == 'x' && (long)low > 0 && syscall(MSEAL, low, high - low, 0)) return -1;
    }
    return 0;
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
    if (!strcmp(what, "data")) failed = limit(RLIMIT_DATA, 4 << 20);
    if (!strcmp(what, "some-data")) failed = limit(RLIMIT_DATA, 7 << 20);
    if (!strcmp(what, "size")) failed = limit(RLIMIT_FSIZE, 0);
    if (!strcmp(what, "code")) failed = prctl(MDWE, MDWE_REFUSE, 0, 0, 0);
    if (!strcmp(what, "sealed")) failed = seal();
    if (!strcmp(what, "hidden")) failed = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (!strcmp(what, "root")) failed = chroot(dirname(argv[0])) || chdir("/"); /* where there is no /proc */
    if (!strcmp(what, "vfork") && write(1, "in\n", 3) == 3) lend();
    if (!strcmp(what, "faults") && write(1, "in\n", 3) == 3) failed = fault_on();
    if (!strcmp(what, "fault") && write(1, "in\n", 3) == 3) failed = fault();
    if (failed && write(1, "cannot\n", 7) == 7) return 5;
    if (!strcmp(what, "first")) {
        failed = pthread_create(&thread, NULL, answer, "all");
        pthread_exit(NULL);
    }
    answer(NULL);
}
