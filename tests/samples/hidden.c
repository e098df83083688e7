/* Descriptors that the program never opened: whatever a call does with one of those numbers, it must be as if there
 * were none. Each call is tried on all numbers from 1024 to 70000, and it is told how often it did not answer EBADF;
 * then the output of whoever keeps descriptors there must have survived. The soft limit is raised over all of them,
 * so that the kernel itself would refuse none. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FIRST = 1024, LAST = 70000 };

static int null, pipes[2], epoll, file;
static char byte[64];
static struct stat st;
static struct iovec part = {byte, 1};
static struct epoll_event event = {.events = EPOLLIN};

static long does_read(int fd) { return syscall(SYS_read, fd, byte, 1); }
static long does_write(int fd) { return syscall(SYS_write, fd, byte, 0); }
static long does_readv(int fd) { return syscall(SYS_readv, fd, &part, 1); }
static long does_pread(int fd) { return syscall(SYS_pread64, fd, byte, 1, 0L); }
static long does_lseek(int fd) { return syscall(SYS_lseek, fd, 0L, SEEK_CUR); }
static long does_fstat(int fd) { return syscall(SYS_fstat, fd, &st); }
static long does_fstatat(int fd) { return syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH); }
static long does_fcntl(int fd) { return syscall(SYS_fcntl, fd, F_GETFD); }
static long does_flags(int fd) { return syscall(SYS_fcntl, fd, F_SETFD, 0); }
static long does_ioctl(int fd) { return syscall(SYS_ioctl, fd, FIONREAD, byte); }
static long does_dup(int fd) { return syscall(SYS_dup, fd); }
static long does_dup2(int fd) { return syscall(SYS_dup2, fd, 900); }
static long does_dup3(int fd) { return syscall(SYS_dup3, fd, 900, 0); }
static long does_fsync(int fd) { return syscall(SYS_fsync, fd); }
static long does_fchdir(int fd) { return syscall(SYS_fchdir, fd); }
static long does_ftruncate(int fd) { return syscall(SYS_ftruncate, fd, 0L); }
static long does_openat(int fd) { return syscall(SYS_openat, fd, "a", O_RDONLY); }
static long does_getdents(int fd) { return syscall(SYS_getdents64, fd, byte, sizeof byte); }
static long does_name(int fd) { return syscall(SYS_getsockname, fd, byte, byte); }
static long does_sendfile(int fd) { return syscall(SYS_sendfile, fd, file, NULL, 1L); }
static long does_sendfile_from(int fd) { return syscall(SYS_sendfile, null, fd, NULL, 1L); }
static long does_splice_from(int fd) { return syscall(SYS_splice, fd, NULL, pipes[1], NULL, 1L, SPLICE_F_NONBLOCK); }
static long does_splice_to(int fd) { return syscall(SYS_splice, pipes[0], NULL, fd, NULL, 1L, SPLICE_F_NONBLOCK); }
static long does_tee_to(int fd) { return syscall(SYS_tee, pipes[0], fd, 1L, SPLICE_F_NONBLOCK); }
static long does_copy_to(int fd) { return syscall(SYS_copy_file_range, file, NULL, fd, NULL, 1L, 0); }
static long does_watch(int fd) { return syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &event); }
static long does_map(int fd) { return syscall(SYS_mmap, NULL, 4096L, PROT_READ, MAP_PRIVATE, fd, 0L); }
static long does_rename(int fd) { return syscall(SYS_renameat, AT_FDCWD, "no-such-file", fd, "b"); }
static long does_symlink(int fd) { return syscall(SYS_symlinkat, "a", fd, "b"); }
static long does_close(int fd) { return syscall(SYS_close, fd); }

/* clang-format off */
static const struct { const char *name; long (*does)(int fd); } calls[] = {
    {"read", does_read}, {"write", does_write}, {"readv", does_readv}, {"pread", does_pread}, {"lseek", does_lseek},
    {"fstat", does_fstat}, {"fstatat", does_fstatat}, {"fcntl", does_fcntl}, {"flags", does_flags},
    {"ioctl", does_ioctl}, {"dup", does_dup}, {"dup2", does_dup2}, {"dup3", does_dup3}, {"fsync", does_fsync},
    {"fchdir", does_fchdir}, {"ftruncate", does_ftruncate}, {"openat", does_openat}, {"getdents", does_getdents},
    {"getsockname", does_name}, {"sendfile to", does_sendfile}, {"sendfile from", does_sendfile_from},
    {"splice from", does_splice_from}, {"splice to", does_splice_to}, {"tee to", does_tee_to},
    {"copy to", does_copy_to}, {"epoll_ctl", does_watch}, {"mmap", does_map}, {"renameat", does_rename},
    {"symlinkat", does_symlink}, {"close", does_close},
};
/* clang-format on */

/* Where the folder says that there are some. */
static int listed(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));) n += atoi(e->d_name) >= FIRST;
    closedir(d);
    return n;
}

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    null = open("/dev/null", O_RDWR);
    file = open("/etc/passwd", O_RDONLY);
    epoll = epoll_create1(0);
    if (pipe(pipes) || write(pipes[1], "12345678", 8) != 8) return 1;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        int others = 0, error = 0;
        for (int fd = FIRST; fd < LAST; fd++) {
            errno = 0;
            if (calls[i].does(fd) == -1 && errno == EBADF) continue;
            others++;
            error = errno;
        }
        printf("%s: %d (%s)\n", calls[i].name, others, strerror(error));
    }
    printf("listed: %d, %d\n", listed("/proc/self/fd"), listed("/proc/self/fdinfo"));
    return 0;
}
