/* Descriptors that Inlay keeps open in the program's process: numbers that the program does not use.
 *
 * They lie together, in 64 numbers from `base` on. The base is at least 16384 and never below the
 * program's own soft limit where the hard limit allows that, so that natively these numbers would be
 * invalid too; and not far above it, since the kernel copies a table up to the highest one at each fork.
 * A bit in `used` says which of them are Inlay's. The program gets EBADF for those: the gate of system
 * calls lets no call through whose first argument looks like one, and run_syscall looks closer.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "run/kernel.h"

/* KCMP_FILES: as in linux/kcmp.h. */
enum { KCMP_FILES = 2, PLACES = RUN_FD_PLACES, FEW = 10, LOWEST_BASE = 16384, HIGHEST_BASE = 65536, NONE = 0x7fffff00 };

/* Of the process, not of an engine in it: descriptors are hidden before one begins, and stay so when it ends. The gate
 * reads the base. */
uint32_t run_fd_base = NONE;
#define base ((int)run_fd_base)
static uint64_t used, ever; /* ever: have been at any time */

static void choose_base(const struct rlimit *limit)
{
    rlim_t b = limit->rlim_cur;
    if (b < LOWEST_BASE) b = LOWEST_BASE;
    if (b > HIGHEST_BASE) b = HIGHEST_BASE;
    if (b + PLACES > limit->rlim_max) {
        rlim_t few = limit->rlim_max > 2 * PLACES ? PLACES : FEW; /* of so few that what there is must do */
        b = limit->rlim_max >= 2 * few ? limit->rlim_max - few : PLACES;
    }
    run_fd_base = (uint32_t)b;
}

/* So that numbers from the base on can be had; `limit` is as it was before. */
static bool raise_limit(const struct rlimit *limit)
{
    struct rlimit raised = *limit;
    if (limit->rlim_cur >= (rlim_t)base + PLACES) return false;
    raised.rlim_cur = (rlim_t)base + PLACES;
    if (raised.rlim_cur > raised.rlim_max) raised.rlim_cur = raised.rlim_max;
    sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&raised, 0);
    return true;
}

static int hide(int fd)
{
    struct rlimit limit;
    long error = sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
    if (error) return (int)error;
    if (base == NONE) choose_base(&limit);
    bool raised = raise_limit(&limit);
    long hidden = sys_call3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base);
    if (raised) sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0);
    if (hidden < 0) return (int)hidden;
    if (hidden >= base + PLACES) {
        sys_call1(SYS_close, hidden);
        return -EMFILE;
    }
    __atomic_fetch_or(&ever, 1ull << (hidden - base), __ATOMIC_RELEASE);
    __atomic_fetch_or(&used, 1ull << (hidden - base), __ATOMIC_RELEASE);
    sys_call1(SYS_close, fd);
    return (int)hidden;
}

/* Where another thread that hides one has just put the limit back, it is raised again. */
int run_fd_hide(int fd)
{
    enum { TRIES = 8 };
    int hidden = run_fd_is_hidden(fd) ? fd : -EINVAL;
    for (int i = 0; i < TRIES && hidden == -EINVAL; i++) hidden = hide(fd);
    return hidden;
}

/* The bit goes first: another thread may get the number, and set it, as soon as the file is closed. */
long run_fd_close(int fd)
{
    if (run_fd_is_hidden(fd)) __atomic_fetch_and(&used, ~(1ull << (fd - base)), __ATOMIC_RELEASE);
    return sys_call1(SYS_close, fd);
}

void run_fd_close_all(int but)
{
    for (int i = 0; i < PLACES; i++)
        if (base + i != but && run_fd_is_hidden(base + i)) run_fd_close(base + i);
}

/* What was hidden when they became the thread's own may have been closed since, elsewhere. */
void run_fd_close_own(void)
{
    for (uint64_t places = ever; places; places &= places - 1) sys_call1(SYS_close, base + __builtin_ctzll(places));
}

bool run_fd_are_own(int tid, int other) { return sys_call4(SYS_kcmp, tid, other, KCMP_FILES, 0) > 0; }

/* What was hidden after they became the thread's own (by who has put a tool in) is in the first thread's alone: what
 * `pidfd` gives. */
static void take_over(int pidfd)
{
    struct rlimit limit;
    if (sys_failed(sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit))) return;
    bool raised = raise_limit(&limit);
    for (uint64_t places = __atomic_load_n(&used, __ATOMIC_ACQUIRE); places; places &= places - 1) {
        long at = base + __builtin_ctzll(places), fd;
        if (!sys_failed(sys_call2(SYS_fcntl, at, F_GETFD))) continue;
        fd = sys_call3(SYS_pidfd_getfd, pidfd, at, 0);
        if (sys_failed(fd)) continue;
        sys_call3(SYS_dup3, fd, at, O_CLOEXEC);
        sys_call1(SYS_close, fd);
    }
    if (raised) sys_call4(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0);
}

void run_fd_take_over(const run_thread *t)
{
    if (t->tid == run_here.pid || t->filters || !run_fd_are_own(t->tid, run_here.pid)) return;
    long pidfd = sys_call2(SYS_pidfd_open, run_here.pid, 0);
    if (sys_failed(pidfd)) return;
    take_over((int)pidfd);
    sys_call1(SYS_close, pidfd);
}

void run_fd_seal(void)
{
    for (int i = 0; i < PLACES; i++)
        if (run_fd_is_hidden(base + i)) sys_call3(SYS_fcntl, base + i, F_SETFD, FD_CLOEXEC);
}

bool run_fd_is_hidden(int fd)
{
    unsigned place = (unsigned)fd - (unsigned)base;
    return place < PLACES && __atomic_load_n(&used, __ATOMIC_ACQUIRE) >> place & 1;
}

/* close_range on the parts of [first, last] that are not ours. */
static long close_parts(run_thread *t, uint64_t first, uint64_t last, uint64_t flags)
{
    (void)t;
    long answer = 0;
    for (unsigned i = 0; i < PLACES && first <= last; i++) {
        uint64_t fd = (uint64_t)base + i;
        if (!run_fd_is_hidden((int)fd) || fd < first || fd > last) continue;
        if (fd > first) answer = sys_call3(SYS_close_range, (long)first, (long)(fd - 1), (long)flags);
        if (answer) return answer;
        first = fd + 1;
    }
    if (first > last) return answer;
    return sys_call3(SYS_close_range, (long)first, (long)last, (long)flags);
}

long run_close_range(run_thread *t, uint64_t first, uint64_t last, uint64_t flags)
{
    enum { UNSHARE = 2 };
    first = (uint32_t)first;
    last = (uint32_t)last;
    if (first > last || !__atomic_load_n(&used, __ATOMIC_ACQUIRE))
        return sys_call3(SYS_close_range, (long)first, (long)last, (long)flags);
    if (flags & UNSHARE) { /* once, and then for each part without it */
        long answer = sys_call1(SYS_unshare, 0x400 /* CLONE_FILES */);
        if (answer) return answer;
        flags &= ~(uint64_t)UNSHARE;
    }
    return close_parts(t, first, last, flags);
}

/* The calls whose first argument is a descriptor. */
/* clang-format off */
static const uint16_t first_is_fd[] = {
    SYS_read, SYS_write, SYS_close, SYS_fstat, SYS_lseek, SYS_ioctl, SYS_pread64, SYS_pwrite64,
    SYS_readv, SYS_writev, SYS_dup, SYS_dup2, SYS_dup3, SYS_sendfile, SYS_connect, SYS_accept,
    SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg,
    SYS_shutdown, SYS_bind, SYS_listen, SYS_getsockname, SYS_getpeername, SYS_setsockopt,
    SYS_getsockopt, SYS_fcntl, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_ftruncate,
    SYS_getdents, SYS_getdents64, SYS_fchdir, SYS_fchmod, SYS_fchown, SYS_fstatfs, SYS_readahead,
    SYS_fsetxattr, SYS_fgetxattr, SYS_flistxattr, SYS_fremovexattr, SYS_fadvise64, SYS_epoll_wait,
    SYS_epoll_pwait, SYS_epoll_ctl, SYS_openat, SYS_mkdirat, SYS_mknodat, SYS_fchownat,
    SYS_newfstatat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat, SYS_readlinkat,
    SYS_fchmodat, SYS_faccessat, SYS_utimensat, SYS_splice, SYS_tee, SYS_vmsplice,
    SYS_sync_file_range, SYS_fallocate, SYS_signalfd4, SYS_timerfd_settime, SYS_timerfd_gettime,
    SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_copy_file_range, SYS_setns, SYS_statx,
    SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_fanotify_mark, SYS_execveat,
    SYS_openat2, SYS_faccessat2,
};
/* clang-format on */
static uint64_t takes_fd[8];

/* Another argument is one as well; the gate leaves these calls to the runtime. */
static const struct {
    uint16_t nr, arg;
} other_is_fd[] = {
    {SYS_sendfile, 1},        {SYS_splice, 2},           {SYS_tee, 1},
    {SYS_copy_file_range, 2}, {SYS_epoll_ctl, 2},        {SYS_mmap, 4},
    {SYS_renameat, 2},        {SYS_renameat2, 2},        {SYS_linkat, 2},
    {SYS_symlinkat, 1},       {429 /* move_mount */, 2},
};
enum { OTHERS = sizeof other_is_fd / sizeof *other_is_fd };

void run_fd_init(void)
{
    for (unsigned i = 0; i < sizeof first_is_fd / sizeof *first_is_fd; i++)
        if (first_is_fd[i] < SYS_ABSENT) takes_fd[first_is_fd[i] / 64] |= 1ull << first_is_fd[i] % 64;
    for (unsigned i = 0; i < OTHERS; i++) run_syscall_keep(other_is_fd[i].nr);
}

static bool other_is_hidden(long nr, const uint64_t args[6])
{
    if (nr == SYS_mmap && args[3] & MAP_ANONYMOUS) return false;
    for (unsigned i = 0; i < OTHERS; i++)
        if (other_is_fd[i].nr == nr) return run_fd_is_hidden((int)args[other_is_fd[i].arg]);
    return false;
}

bool run_fd_is_refused(long nr, const uint64_t args[6])
{
    if (nr < 0 || nr >= (long)sizeof takes_fd * 8) return false;
    if (takes_fd[nr / 64] >> nr % 64 & 1 && run_fd_is_hidden((int)args[0])) return true;
    return other_is_hidden(nr, args);
}
