/* System calls that write to a page which also holds code that has been run: a child's status, datagrams, signals,
 * events, and whatever else can be had from the kernel only once must arrive there; when the call begins,
 * when it has slept while another thread ran the code, and when the kernel writes on its own (a thread's end,
 * asynchronous I/O, rings of requests). Each answer is printed. */
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, DATA = 512 };

typedef int (*function)(void);
static uint8_t *pages; /* two; on each there is code at the start, data behind it */

static void write_code(uint8_t *at, uint32_t value)
{
    at[0] = 0xb8; /* mov eax, value ; ret */
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static int run_at(void *at)
{
    function f;
    memcpy(&f, &at, sizeof f);
    return f();
}

/* The code on both pages runs; the answer is where a call may write to. */
static void *used_page(void)
{
    run_at(pages);
    run_at(pages + PAGE);
    return pages + DATA;
}

static int next_signal(int signo)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), signo);
    siginfo_t *info = used_page();
    struct timespec limit = {5, 0};
    return sigtimedwait(&set, info, &limit) == signo && info->si_signo == signo;
}

static int signal_from_descriptor(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    kill(getpid(), SIGUSR2);
    struct signalfd_siginfo *info = used_page();
    int ok = read(fd, info, sizeof *info) == sizeof *info && info->ssi_signo == SIGUSR2;
    close(fd);
    return ok;
}

static int child_status(int use_waitid)
{
    pid_t child = fork();
    if (!child) _exit(5);
    if (use_waitid) {
        siginfo_t *info = used_page();
        return waitid(P_PID, (id_t)child, info, WEXITED) == 0 ? info->si_status : -errno;
    }
    int *status = used_page();
    return waitpid(child, status, 0) == child ? WEXITSTATUS(*status) : -errno;
}

static void sockets(void)
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    for (int i = 0; i < 4; i++) send(ends[1], &"one two three"[4 * (i % 3)], 3, 0);
    char *data = used_page();
    printf("recv %d %.3s\n", (int)recv(ends[0], data, 100, 0), data);
    data = used_page();
    struct iovec parts[2] = {{data, 2}, {data + PAGE, 10}};
    printf("readv %d %.2s %.1s\n", (int)readv(ends[0], parts, 2), data, data + PAGE);
    data = used_page();
    struct iovec part = {data + 200, 10};
    struct msghdr *message = (void *)data;
    *message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    used_page();
    printf("recvmsg %d %.3s\n", (int)recvmsg(ends[0], message, 0), data + 200);
    struct mmsghdr *messages = (void *)data;
    messages[0] = (struct mmsghdr){.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    used_page();
    int n = recvmmsg(ends[0], messages, 1, 0, NULL);
    printf("recvmmsg %d %u %.3s\n", n, messages[0].msg_len, data + 200);
    close(ends[0]);
    close(ends[1]);
}

/* Descriptor in control data: it is lost when it cannot be told. */
static void passed_descriptor(void)
{
    int ends[2], sent = eventfd(7, 0);
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &sent, sizeof sent);
    sendmsg(ends[1], &m, 0);
    m.msg_control = memset(used_page(), 0, sizeof control);
    used_page();
    ssize_t n = recvmsg(ends[0], &m, 0);
    int got = -1;
    uint64_t value = 0;
    if (m.msg_controllen) memcpy(&got, CMSG_DATA((struct cmsghdr *)m.msg_control), sizeof got);
    ssize_t r = read(got, &value, sizeof value);
    printf("descriptor by recvmsg %d %d %d\n", (int)n, (int)r, (int)value);
    close(got), close(sent), close(ends[0]), close(ends[1]);
}

static void counters(void)
{
    int fd = eventfd(3, EFD_NONBLOCK), e = epoll_create1(0), t = timerfd_create(CLOCK_MONOTONIC, 0);
    struct epoll_event want = {.events = EPOLLIN | EPOLLET, .data.u32 = 77};
    epoll_ctl(e, EPOLL_CTL_ADD, fd, &want);
    struct epoll_event *event = used_page();
    int n = epoll_wait(e, event, 1, 1000);
    printf("epoll %d %d\n", n, n == 1 ? (int)event->data.u32 : -1);
    uint64_t *value = used_page();
    n = (int)read(fd, value, 8);
    printf("eventfd %d %d\n", n, n == 8 ? (int)*value : -1);
    struct itimerspec once = {.it_value.tv_nsec = 1};
    timerfd_settime(t, 0, &once, NULL);
    value = used_page();
    n = (int)read(t, value, 8);
    printf("timerfd %d %d\n", n, n == 8 ? (int)*value : -1);
    close(fd), close(e), close(t);
}

static void half_of_a_pipe(void)
{
    static char text[2 * PAGE];
    int ends[2];
    memset(text, 'q', sizeof text);
    if (pipe(ends) || write(ends[1], text, sizeof text) != sizeof text) return;
    uint8_t *low = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    write_code(low + PAGE + 8, 1);
    run_at(low + PAGE + 8); /* the second page alone is code */
    printf("read over a border %d\n", (int)read(ends[0], low, 2 * PAGE));
    munmap(low, 2 * PAGE);
    close(ends[0]), close(ends[1]);
}

static void messages_and_others(void)
{
    int queue = msgget(IPC_PRIVATE, 0600), ends[2];
    struct {
        long type;
        char text[4];
    } message = {1, "abc"};
    msgsnd(queue, &message, 4, 0);
    char *at = used_page();
    int n = (int)msgrcv(queue, at, 4, 0, IPC_NOWAIT);
    printf("msgrcv %d %.3s\n", n, n > 0 ? at + sizeof(long) : "");
    msgctl(queue, IPC_RMID, NULL);
    if (pipe(ends) || write(ends[1], "12345", 5) != 5) return;
    int *count = used_page();
    n = ioctl(ends[0], FIONREAD, count);
    printf("ioctl %d %d\n", n, n ? -1 : *count);
    close(ends[0]), close(ends[1]);
    char word[4] = "new";
    struct iovec mine = {word, 3}, there = {used_page(), 3};
    n = (int)process_vm_writev(getpid(), &mine, 1, &there, 1, 0);
    printf("process_vm_writev %s\n", n == 3 ? (char *)there.iov_base : n < 0 && errno == EPERM ? "new" : "lost");
}

/* --- while another thread runs the code --- */

static int shared_pipe[2];
static int sleeper_tid;

static void *reads(void *arg)
{
    (void)arg;
    __atomic_store_n(&sleeper_tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    return (void *)(intptr_t)read(shared_pipe[0], pages + DATA, 6);
}

/* Waits until the kernel says that the thread sleeps. */
static void until_asleep(int tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    for (int i = 0; i < 2000; i++) {
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        text[n] = 0;
        if (f) fclose(f);
        const char *state = strrchr(text, ')');
        if (state && state[1] && state[2] == 'S') return;
        usleep(1000);
    }
}

static void asleep_meanwhile(void)
{
    pthread_t thread;
    void *answer;
    if (pipe(shared_pipe)) return;
    memset(pages + DATA, 0, 8);
    pthread_create(&thread, NULL, reads, NULL);
    while (!__atomic_load_n(&sleeper_tid, __ATOMIC_ACQUIRE)) sched_yield();
    until_asleep(sleeper_tid);
    used_page();
    if (write(shared_pipe[1], "awake", 6) != 6) return;
    pthread_join(thread, &answer);
    printf("read that slept %d %s\n", (int)(intptr_t)answer, (char *)pages + DATA);
    write_code(pages, 9);
    printf("the code is seen to change: %d\n", run_at(pages));
}

static int may_end;

static int ends_soon(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&may_end, __ATOMIC_ACQUIRE)) sched_yield();
    syscall(SYS_exit, 0);
    return 0;
}

/* The kernel stores 0 where the thread asked for it: on a page of code, made after the thread had begun. The page
 * is a new one that nobody else writes to: after a write it may be looked after in another way. */
static void thread_end(void)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    int protection = PROT_READ | PROT_WRITE | PROT_EXEC;
    uint8_t *page = mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *word = (int *)(page + DATA),
        flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    write_code(page, 3);
    *word = 1;
    clone(ends_soon, stack + sizeof stack, flags, NULL, NULL, NULL, word);
    run_at(page);
    __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
    run_at(page);
    for (int i = 0; i < 5000 && __atomic_load_n(word, __ATOMIC_ACQUIRE); i++) {
        run_at(page);
        usleep(1000);
    }
    printf("end of a thread %d\n", __atomic_load_n(word, __ATOMIC_ACQUIRE));
}

/* --- on nobody's behalf --- */

/* New code for the page, by an asynchronous read. */
static int by_aio(int fd)
{
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 4, &context)) return errno == ENOSYS || errno == EPERM ? 6 : -1;
    struct iocb request = {.aio_fildes = (uint32_t)fd,
                           .aio_lio_opcode = IOCB_CMD_PREAD,
                           .aio_buf = (uintptr_t)pages,
                           .aio_nbytes = 6},
                *list = &request;
    struct io_event event = {0};
    used_page();
    if (syscall(SYS_io_submit, context, 1, &list) != 1) return -2;
    if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1) return -3;
    syscall(SYS_io_destroy, context);
    return (int)event.res;
}

static int by_ring(int fd)
{
    struct io_uring_params p = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &p), flags = PROT_READ | PROT_WRITE;
    if (ring < 0) return errno == ENOSYS || errno == EPERM ? 6 : -1;
    uint8_t *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, flags, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    uint8_t *cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), flags, MAP_SHARED, ring,
                       IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqe = mmap(NULL, p.sq_entries * sizeof *sqe, flags, MAP_SHARED, ring, IORING_OFF_SQES);
    used_page();
    *sqe = (struct io_uring_sqe){.opcode = IORING_OP_READV, .fd = fd, .len = 1};
    struct iovec where = {pages, 6};
    sqe->addr = (uintptr_t)&where;
    *(uint32_t *)(sq + p.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) return -2;
    int answer = ((struct io_uring_cqe *)(cq + p.cq_off.cqes))->res;
    close(ring);
    return answer;
}

static void later(const char *name, int (*reads_code)(int fd), uint32_t value)
{
    uint8_t code[6];
    int fd = memfd_create("code", 0);
    write_code(code, value);
    if (pwrite(fd, code, sizeof code, 0) != sizeof code) return;
    int n = reads_code(fd);
    close(fd);
    /* Where the kernel has no such calls, or they are forbidden, the code is what it was. */
    int got = run_at(pages);
    printf("%s %d, code %s\n", name, n, got == (int)value || got == 9 ? "as it should be" : "stale");
}

int main(void)
{
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(60);
    write_code(pages, 1);
    write_code(pages + PAGE, 2);
    printf("waitpid %d, waitid %d\n", child_status(0), child_status(1));
    printf("sigtimedwait %d, signalfd %d\n", next_signal(SIGUSR1), signal_from_descriptor());
    sockets();
    passed_descriptor();
    counters();
    half_of_a_pipe();
    messages_and_others();
    asleep_meanwhile();
    thread_end();
    later("io_submit", by_aio, 41);
    later("io_uring", by_ring, 42);
    return 0;
}
