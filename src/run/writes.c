/* The table of what system calls write, and its reading.
 *
 * A row tells of up to four places. Each has the number of the argument that points to it and one of
 * these kinds:
 *
 *     TO(a, n)        n bytes
 *     BY(a, l, n)     n bytes for each of as many as argument l says
 *     MORE(a, l, n)   argument l's bytes and n more
 *     SOCK(a, l)      as many bytes as the int says that argument l points to; that int too
 *     BITS(a, l)      a set of as many bits as argument l says, in whole words
 *     IOV(a, l)       what l iovecs describe
 *     MSG(a)          a msghdr, and what it describes
 *     MMSG(a, l)      l mmsghdrs
 *     ANY(a)          a place of unknown size: up to the end of what is mapped there
 *     DEEP(a)         the same, and wherever the first words of it point
 *
 * Sizes are those of the kernel's structures, rounded up where they differ by version. */
#include "run/writes.h"
#include "base/sys.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum kind { K_NONE, K_TO, K_BY, K_MORE, K_SOCK, K_BITS, K_IOV, K_MSG, K_MMSG, K_ANY, K_DEEP };

typedef struct place {
    uint8_t kind, arg, len;
    uint16_t bytes;
} place;
/* clang-format off */
typedef struct row { uint16_t nr; place places[4]; } row;

#define TO(a, n) {K_TO, a, 0, n}
#define BY(a, l, n) {K_BY, a, l, n}
#define MORE(a, l, n) {K_MORE, a, l, n}
#define SOCK(a, l) {K_SOCK, a, l, 0}
#define BITS(a, l) {K_BITS, a, l, 0}
#define IOV(a, l) {K_IOV, a, l, 0}
#define MSG(a) {K_MSG, a, 0, 0}
#define MMSG(a, l) {K_MMSG, a, l, 0}
#define ANY(a) {K_ANY, a, 0, 0}
#define DEEP(a) {K_DEEP, a, 0, 0}

enum {
    STAT = sizeof(struct stat), STATX = 256, STATFS = 120, TIMESPEC = 16, ITIMERSPEC = 32, TIMEX = 208,
    RUSAGE = 144, SIGINFO = 128, RLIMIT = 16, POLLFD = 8, EPOLL_EVENT = sizeof(struct epoll_event), IO_EVENT = 32,
    IPC_DS = 136, UTSNAME = 390, SYSINFO = 112, HANDLE = 136, MMSGHDR = 64, DEEP_BYTES = 128, MANY_IOVECS = 1024,
    NUMBERS = 512,
};
/* clang-format on */

static const row rows[] = {
    /* files */
    {SYS_read, {BY(1, 2, 1)}},
    {SYS_pread64, {BY(1, 2, 1)}},
    {SYS_readv, {IOV(1, 2)}},
    {SYS_preadv, {IOV(1, 2)}},
    {SYS_preadv2, {IOV(1, 2)}},
    {SYS_stat, {TO(1, STAT)}},
    {SYS_fstat, {TO(1, STAT)}},
    {SYS_lstat, {TO(1, STAT)}},
    {SYS_newfstatat, {TO(2, STAT)}},
    {SYS_statx, {TO(4, STATX)}},
    {SYS_statfs, {TO(1, STATFS)}},
    {SYS_fstatfs, {TO(1, STATFS)}},
    {SYS_ustat, {TO(1, 32)}},
    {SYS_pipe, {TO(0, 8)}},
    {SYS_pipe2, {TO(0, 8)}},
    {SYS_sendfile, {TO(2, 8)}},
    {SYS_splice, {TO(1, 8), TO(3, 8)}},
    {SYS_copy_file_range, {TO(1, 8), TO(3, 8)}},
    {SYS_vmsplice, {IOV(1, 2)}},
    {SYS_getdents, {BY(1, 2, 1)}},
    {SYS_getdents64, {BY(1, 2, 1)}},
    {SYS_getcwd, {BY(0, 1, 1)}},
    {SYS_readlink, {BY(1, 2, 1)}},
    {SYS_readlinkat, {BY(2, 3, 1)}},
    {SYS_fcntl, {TO(2, 32)}},
    {SYS_getxattr, {BY(2, 3, 1)}},
    {SYS_lgetxattr, {BY(2, 3, 1)}},
    {SYS_fgetxattr, {BY(2, 3, 1)}},
    {SYS_listxattr, {BY(1, 2, 1)}},
    {SYS_llistxattr, {BY(1, 2, 1)}},
    {SYS_flistxattr, {BY(1, 2, 1)}},
    {SYS_name_to_handle_at, {TO(2, HANDLE), TO(3, 8)}},
    {SYS_lookup_dcookie, {BY(1, 2, 1)}},
    {SYS_ioctl, {DEEP(2)}},
    {SYS_quotactl, {ANY(3)}},
    {443 /* quotactl_fd */, {ANY(3)}},
    {451 /* cachestat */, {TO(3, 40)}},
    {457 /* statmount */, {BY(1, 2, 1)}},
    {458 /* listmount */, {BY(1, 2, 8)}},
    /* waiting for descriptors */
    {SYS_poll, {BY(0, 1, POLLFD)}},
    {SYS_ppoll, {BY(0, 1, POLLFD), TO(2, TIMESPEC)}},
    {SYS_select, {BITS(1, 0), BITS(2, 0), BITS(3, 0), TO(4, 16)}},
    {SYS_pselect6, {BITS(1, 0), BITS(2, 0), BITS(3, 0), TO(4, TIMESPEC)}},
    {SYS_epoll_wait, {BY(1, 2, EPOLL_EVENT)}},
    {SYS_epoll_pwait, {BY(1, 2, EPOLL_EVENT)}},
    {SYS_epoll_pwait2, {BY(1, 2, EPOLL_EVENT)}},
    {SYS_io_setup, {TO(1, 8)}},
    {SYS_io_getevents, {BY(3, 2, IO_EVENT)}},
    {SYS_io_pgetevents, {BY(3, 2, IO_EVENT)}},
    {SYS_io_cancel, {TO(2, IO_EVENT)}},
    {425 /* io_uring_setup */, {TO(1, 128)}},
    /* sockets */
    {SYS_accept, {SOCK(1, 2)}},
    {SYS_accept4, {SOCK(1, 2)}},
    {SYS_getsockname, {SOCK(1, 2)}},
    {SYS_getpeername, {SOCK(1, 2)}},
    {SYS_getsockopt, {SOCK(3, 4)}},
    {SYS_socketpair, {TO(3, 8)}},
    {SYS_recvfrom, {BY(1, 2, 1), SOCK(4, 5)}},
    {SYS_recvmsg, {MSG(1)}},
    {SYS_recvmmsg, {MMSG(1, 2), TO(4, TIMESPEC)}},
    {SYS_sendmmsg, {BY(1, 2, MMSGHDR)}},
    /* messages, semaphores, shared memory */
    {SYS_msgrcv, {MORE(1, 2, 8)}},
    {SYS_msgctl, {TO(2, IPC_DS)}},
    {SYS_shmctl, {TO(2, IPC_DS)}},
    {SYS_semctl, {ANY(3)}},
    {SYS_mq_timedreceive, {BY(1, 2, 1), TO(3, 4)}},
    {SYS_mq_getsetattr, {TO(2, 64)}},
    /* signals and time */
    {SYS_rt_sigaction, {TO(2, 32)}},
    {SYS_rt_sigprocmask, {TO(2, 8)}},
    {SYS_rt_sigpending, {TO(0, 8)}},
    {SYS_rt_sigtimedwait, {TO(1, SIGINFO)}},
    {SYS_sigaltstack, {TO(1, 24)}},
    {SYS_nanosleep, {TO(1, TIMESPEC)}},
    {SYS_clock_nanosleep, {TO(3, TIMESPEC)}},
    {SYS_clock_gettime, {TO(1, TIMESPEC)}},
    {SYS_clock_getres, {TO(1, TIMESPEC)}},
    {SYS_gettimeofday, {TO(0, 16), TO(1, 8)}},
    {SYS_time, {TO(0, 8)}},
    {SYS_times, {TO(0, 32)}},
    {SYS_adjtimex, {TO(0, TIMEX)}},
    {SYS_clock_adjtime, {TO(1, TIMEX)}},
    {SYS_getitimer, {TO(1, ITIMERSPEC)}},
    {SYS_setitimer, {TO(2, ITIMERSPEC)}},
    {SYS_timer_create, {TO(2, 4)}},
    {SYS_timer_gettime, {TO(1, ITIMERSPEC)}},
    {SYS_timer_settime, {TO(3, ITIMERSPEC)}},
    {SYS_timerfd_gettime, {TO(1, ITIMERSPEC)}},
    {SYS_timerfd_settime, {TO(3, ITIMERSPEC)}},
    /* processes and threads */
    {SYS_wait4, {TO(1, 4), TO(3, RUSAGE)}},
    {SYS_waitid, {TO(2, SIGINFO), TO(4, RUSAGE)}},
    {SYS_clone, {TO(2, 4), TO(RUN_CLONE_CHILD_TID, 4)}},
    {SYS_getrusage, {TO(1, RUSAGE)}},
    {SYS_getrlimit, {TO(1, RLIMIT)}},
    {SYS_prlimit64, {TO(3, RLIMIT)}},
    {SYS_uname, {TO(0, UTSNAME)}},
    {SYS_sysinfo, {TO(0, SYSINFO)}},
    {SYS_syslog, {BY(1, 2, 1)}},
    {SYS_getgroups, {BY(1, 0, 4)}},
    {SYS_getresuid, {TO(0, 4), TO(1, 4), TO(2, 4)}},
    {SYS_getresgid, {TO(0, 4), TO(1, 4), TO(2, 4)}},
    {SYS_capget, {TO(0, 8), TO(1, 24)}},
    {SYS_capset, {TO(0, 8)}},
    {SYS_sched_getparam, {TO(1, 4)}},
    {SYS_sched_rr_get_interval, {TO(1, TIMESPEC)}},
    {SYS_sched_getaffinity, {BY(2, 1, 1)}},
    {SYS_sched_getattr, {BY(1, 2, 1)}},
    {SYS_getcpu, {TO(0, 4), TO(1, 4), TO(2, 128)}},
    {SYS_get_robust_list, {TO(1, 8), TO(2, 8)}},
    {SYS_rseq, {BY(0, 1, 1)}},
    {SYS_prctl, {ANY(1), ANY(2)}},
    {SYS_arch_prctl, {TO(1, 8)}},
    {SYS_modify_ldt, {BY(1, 2, 1)}},
    {SYS_ptrace, {DEEP(3)}},
    {SYS_process_vm_readv, {IOV(1, 2)}},
    {SYS_process_vm_writev, {IOV(3, 4)}}, /* of this process, perhaps */
    {SYS_perf_event_open, {TO(0, 136)}},
    {SYS_bpf, {DEEP(1)}},
    {SYS_seccomp, {TO(2, 16)}},
    {SYS_keyctl, {ANY(1), ANY(2), ANY(3)}},
    {459 /* lsm_get_self_attr */, {SOCK(1, 2)}},
    {461 /* lsm_list_modules */, {ANY(0), TO(1, 4)}},
    /* memory */
    {SYS_mincore, {BY(2, 1, 1)}}, /* a byte a page */
    {SYS_madvise, {BY(0, 1, 1)}},
    {SYS_move_pages, {BY(4, 1, 4)}},
    {SYS_get_mempolicy, {TO(0, 4), BITS(1, 2)}},
    {SYS_getrandom, {BY(0, 1, 1)}},
};

/* Calls that write nothing. */
/* clang-format off */
static const uint16_t quiet[] = {
    SYS_write, SYS_open, SYS_close, SYS_lseek, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_brk, SYS_rt_sigreturn,
    SYS_pwrite64, SYS_writev, SYS_access, SYS_sched_yield, SYS_mremap, SYS_msync, SYS_shmget, SYS_shmat, SYS_dup,
    SYS_dup2, SYS_pause, SYS_alarm, SYS_getpid, SYS_socket, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_shutdown,
    SYS_bind, SYS_listen, SYS_setsockopt, SYS_fork, SYS_vfork, SYS_execve, SYS_exit, SYS_kill, SYS_semget,
    SYS_semop, SYS_shmdt, SYS_msgget, SYS_msgsnd, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_truncate,
    SYS_ftruncate, SYS_chdir, SYS_fchdir, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_creat, SYS_link, SYS_unlink,
    SYS_symlink, SYS_chmod, SYS_fchmod, SYS_chown, SYS_fchown, SYS_lchown, SYS_umask, SYS_getuid, SYS_getgid,
    SYS_setuid, SYS_setgid, SYS_geteuid, SYS_getegid, SYS_setpgid, SYS_getppid, SYS_getpgrp, SYS_setsid,
    SYS_setreuid, SYS_setregid, SYS_setgroups, SYS_setresuid, SYS_setresgid, SYS_getpgid, SYS_setfsuid,
    SYS_setfsgid, SYS_getsid, SYS_rt_sigqueueinfo, SYS_rt_sigsuspend, SYS_utime, SYS_mknod, SYS_personality,
    SYS_getpriority, SYS_setpriority, SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_getscheduler,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_mlock, SYS_munlock, SYS_mlockall, SYS_munlockall,
    SYS_setrlimit, SYS_chroot, SYS_sync, SYS_mount, SYS_umount2, SYS_sethostname, SYS_setdomainname, SYS_gettid,
    SYS_readahead, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr,
    SYS_fremovexattr, SYS_tkill, SYS_sched_setaffinity, SYS_io_destroy, SYS_io_submit, SYS_epoll_create,
    SYS_remap_file_pages, SYS_set_tid_address, SYS_restart_syscall, SYS_semtimedop, SYS_fadvise64,
    SYS_timer_getoverrun, SYS_timer_delete, SYS_clock_settime, SYS_exit_group, SYS_epoll_ctl, SYS_tgkill,
    SYS_utimes, SYS_mbind, SYS_set_mempolicy, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend, SYS_mq_notify,
    SYS_ioprio_set, SYS_ioprio_get, SYS_inotify_init, SYS_inotify_add_watch, SYS_inotify_rm_watch, SYS_openat,
    SYS_mkdirat, SYS_mknodat, SYS_fchownat, SYS_futimesat, SYS_unlinkat, SYS_renameat, SYS_linkat, SYS_symlinkat,
    SYS_fchmodat, SYS_faccessat, SYS_unshare, SYS_set_robust_list, SYS_tee, SYS_sync_file_range, SYS_utimensat,
    SYS_signalfd, SYS_timerfd_create, SYS_eventfd, SYS_fallocate, SYS_signalfd4, SYS_eventfd2, SYS_epoll_create1,
    SYS_dup3, SYS_inotify_init1, SYS_pwritev, SYS_rt_tgsigqueueinfo, SYS_fanotify_init, SYS_fanotify_mark,
    SYS_open_by_handle_at, SYS_syncfs, SYS_setns, SYS_kcmp, SYS_sched_setattr, SYS_renameat2, SYS_memfd_create,
    SYS_execveat, SYS_userfaultfd, SYS_membarrier, SYS_mlock2, SYS_pwritev2, SYS_pkey_mprotect, SYS_pkey_alloc,
    SYS_pkey_free, 424 /* pidfd_send_signal */, 426 /* io_uring_enter */, 427 /* io_uring_register */,
    434 /* pidfd_open */, 436 /* close_range */, 437 /* openat2 */, 438 /* pidfd_getfd */, 439 /* faccessat2 */,
    440 /* process_madvise */, 449 /* futex_waitv */, 452 /* fchmodat2 */, 454 /* futex_wake */,
    455 /* futex_wait */, 456 /* futex_requeue */,
};
/* clang-format on */

/* Calls after which the kernel writes on its own: into buffers of requests that are under way. */
static const uint16_t later[] = {SYS_io_setup, 425 /* io_uring_setup */};

static bool is_in(const uint16_t *list, unsigned count, long nr)
{
    for (unsigned i = 0; i < count; i++)
        if (list[i] == nr) return true;
    return false;
}

bool writes_nothing(long nr) { return is_in(quiet, sizeof quiet / sizeof *quiet, nr); }

bool writes_later(long nr) { return is_in(later, sizeof later / sizeof *later, nr); }

/* --- one place --- */

typedef struct search {
    writes_range *each;
    void *arg;
    const uint64_t *args;
} search;

static bool tell(const search *s, uint64_t at, uint64_t bytes)
{
    uint64_t high = at + bytes < at ? UINT64_MAX : at + bytes;
    return at && bytes && s->each(s->arg, at, high);
}

static bool tell_rest(const search *s, uint64_t at) { return tell(s, at, run_here.engine->watch->mapped_behind(at)); }

static bool tell_deep(const search *s, uint64_t at)
{
    uint64_t words[DEEP_BYTES / 8] = {0};
    if (tell_rest(s, at)) return true;
    run_safe_copy(words, (const void *)at, sizeof words); /* as many as there are */
    for (unsigned i = 0; i < DEEP_BYTES / 8; i++)
        if (tell_rest(s, words[i])) return true;
    return false;
}

static bool tell_iovecs(const search *s, uint64_t at, uint64_t count)
{
    struct iovec v;
    for (uint64_t i = 0; i < count && i < MANY_IOVECS; i++) {
        if (!run_read(&v, at + i * sizeof v, sizeof v)) return false;
        if (tell(s, (uint64_t)v.iov_base, v.iov_len)) return true;
    }
    return false;
}

static bool tell_message(const search *s, uint64_t at)
{
    struct msghdr m;
    if (!run_read(&m, at, sizeof m)) return false;
    return tell(s, at, sizeof m) || tell(s, (uint64_t)m.msg_name, m.msg_namelen) ||
           tell(s, (uint64_t)m.msg_control, m.msg_controllen) || tell_iovecs(s, (uint64_t)m.msg_iov, m.msg_iovlen);
}

static bool tell_messages(const search *s, uint64_t at, uint64_t count)
{
    if (count > MANY_IOVECS) count = MANY_IOVECS;
    if (tell(s, at, count * MMSGHDR)) return true;
    for (uint64_t i = 0; i < count; i++)
        if (tell_message(s, at + i * MMSGHDR)) return true;
    return false;
}

static bool tell_sized(const search *s, uint64_t at, uint64_t size_at)
{
    uint32_t size = 0;
    run_read(&size, size_at, sizeof size);
    return tell(s, at, size) || tell(s, size_at, sizeof size);
}

static bool tell_place(const search *s, const place *p)
{
    uint64_t at = s->args[p->arg], n = s->args[p->len];
    switch (p->kind) {
    case K_TO: return tell(s, at, p->bytes);
    case K_BY: return tell(s, at, n > UINT64_MAX / p->bytes ? UINT64_MAX : n * p->bytes);
    case K_MORE: return tell(s, at, n + p->bytes < n ? UINT64_MAX : n + p->bytes);
    case K_SOCK: return tell_sized(s, at, n);
    case K_BITS: return tell(s, at, ((uint64_t)(uint32_t)n + 63) / 64 * 8);
    case K_IOV: return tell_iovecs(s, at, n);
    case K_MSG: return tell_message(s, at);
    case K_MMSG: return tell_messages(s, at, (uint32_t)n);
    case K_ANY: return tell_rest(s, at);
    case K_DEEP: return tell_deep(s, at);
    default: return false;
    }
}

/* --- the whole --- */

/* Only some operations write. */
static bool tell_futex(const search *s)
{
    switch ((int)s->args[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAKE:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET: return false;
    default: return tell(s, s->args[0], 4) || tell(s, s->args[4], 4);
    }
}

static bool tell_clone3(const search *s)
{
    run_clone_args a = {0};
    uint64_t size = s->args[1] < sizeof a ? s->args[1] : sizeof a;
    if (!run_read(&a, s->args[0], size)) return false;
    return tell(s, a.pidfd, 4) || tell(s, a.child_tid, 4) || tell(s, a.parent_tid, 4);
}

static bool tell_unknown(const search *s)
{
    for (int i = 0; i < 6; i++)
        if (tell_deep(s, s->args[i])) return true;
    return false;
}

bool writes_of_call(long nr, const uint64_t args[6], writes_range *each, void *arg)
{
    search s = {each, arg, args};
    if (writes_nothing(nr)) return false;
    if (nr == SYS_futex) return tell_futex(&s);
    if (nr == SYS_clone3) return tell_clone3(&s);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].nr != nr) continue;
        for (unsigned k = 0; k < 4; k++)
            if (tell_place(&s, &rows[i].places[k])) return true;
        return false;
    }
    return nr < NUMBERS && tell_unknown(&s);
}
