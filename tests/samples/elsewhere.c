/* A signal for the process that its first thread blocks is another thread's to take: whenever it comes, and whatever
 * the first thread is doing then. In the child of a fork, from its first moment on; and while the first thread is in
 * the midst of the call that blocks it, which waits for a page that the other thread supplies (userfaultfd). */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, CHILDREN = 20 };

static volatile sig_atomic_t handled;
static sigset_t ends;
static int faults;

static void on_signal(int signo) { (void)signo, handled = 1; }

static void *take(void *taken)
{
    const struct timespec long_enough = {5, 0};
    *(bool *)taken = sigtimedwait(&ends, NULL, &long_enough) == SIGTERM;
    return NULL;
}

static bool other_takes(void)
{
    pthread_t other;
    bool taken = false;
    pthread_create(&other, NULL, take, &taken);
    pthread_join(other, NULL);
    return taken;
}

static void in_children(void)
{
    int good = 0, status = 0;
    sigprocmask(SIG_BLOCK, &ends, NULL);
    for (int i = 0; i < CHILDREN && good == i; i++) {
        int child = fork();
        if (child == 0) _exit(other_takes());
        kill(child, SIGTERM);
        waitpid(child, &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    printf("children: %d\n", good);
}

/* The first thread waits for the page: the signal comes first, then the set that is to be blocked. */
static void *serve(void *unused)
{
    static sigset_t page[PAGE / sizeof(sigset_t)];
    struct uffd_msg m;
    page[0] = ends;
    if (read(faults, &m, sizeof m) != sizeof m) return unused;
    kill(getpid(), SIGTERM);
    struct uffdio_copy copy = {
        .dst = m.arg.pagefault.address & ~(PAGE - 1ull), .src = (unsigned long)page, .len = PAGE};
    ioctl(faults, UFFDIO_COPY, &copy);
    return unused;
}

static void in_the_call(void)
{
    pthread_t server;
    struct uffdio_api api = {.api = UFFD_API};
    sigset_t *late = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register r = {.range = {(unsigned long)late, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (late == MAP_FAILED || faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &r)) {
        puts("in the call: not to be had here");
        return;
    }
    pthread_create(&server, NULL, serve, NULL); /* which has it blocked */
    signal(SIGTERM, on_signal);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, late, NULL, 8); /* the C library would look at it itself */
    pthread_join(server, NULL);
    puts(handled || other_takes() ? "in the call: taken" : "in the call: lost");
}

int main(void)
{
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    in_children();
    in_the_call();
    return 0;
}
