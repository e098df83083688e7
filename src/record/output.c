/* The recording's file: INLAY_OUT, or PROGRAM.trace in the folder where the program was started; while another process
 * writes that one, or after a fork, NAME.PID. A lock on the file tells that somebody writes.
 *
 * The descriptor has a high number. A program may close it all the same, and have another file under that number:
 * before each use it is looked at, and opened again where it is not ours any more. */
#define _GNU_SOURCE
#include "record/recorder.h"
#include "../tools/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdlib.h>

static struct {
    inlay_mutex lock;                         /* of the descriptor */
    char base[PATH_MAX], path[PATH_MAX + 32]; /* as asked for; of this process */
    int file;
    dev_t device;
    ino_t inode;
    pid_t pid;
} out = {.file = -1};

static int lift(int fd)
{
    struct rlimit limit;
    int high = 1000;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1064) high = (int)limit.rlim_cur - 16;
    int up = high > fd ? fcntl(fd, F_DUPFD_CLOEXEC, high) : -1;
    if (up < 0) return fd;
    close(fd);
    return up;
}

static bool name_base(void)
{
    const char *asked = getenv("INLAY_OUT");
    char folder[PATH_MAX];
    if (out.base[0]) return true;
    if (!getcwd(folder, sizeof folder)) return false;
    const char *dot = asked && *asked ? "" : ".trace", *name = asked && *asked ? asked : program_invocation_short_name;
    int n = name[0] == '/' ? snprintf(out.base, sizeof out.base, "%s%s", name, dot)
                           : snprintf(out.base, sizeof out.base, "%s/%s%s", folder, name, dot);
    if (n > 0 && n < (int)sizeof out.base) return true;
    out.base[0] = 0;
    errno = ENAMETOOLONG;
    return false;
}

/* Does the file hold what this very process has recorded, before it executed the program anew? */
static bool is_own(int fd)
{
    struct {
        inlay_trace_chunk head;
        inlay_trace_session session;
    } first;
    return pread(fd, &first, sizeof first, 0) == (ssize_t)sizeof first && first.head.magic == INLAY_TRACE_MAGIC &&
           first.session.pid == getpid();
}

/* -1: it cannot be had; -2: somebody writes it. */
static int try_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) return -1;
    struct stat st;
    int cause = 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) cause = EINVAL;
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0) cause = EWOULDBLOCK;
    else if (!is_own(fd) && ftruncate(fd, 0) != 0) cause = errno;
    if (!cause) {
        out.device = st.st_dev;
        out.inode = st.st_ino;
        out.pid = getpid();
        return lift(fd);
    }
    close(fd);
    errno = cause;
    return cause == EWOULDBLOCK ? -2 : -1;
}

int record_output_open(void)
{
    static int forks;
    if (out.file >= 0) return out.file;
    if (getauxval(AT_SECURE) || !name_base()) return -1; /* whoever starts a privileged program names no files of it */
    int fd = forks ? -2 : try_open(strcpy(out.path, out.base));
    for (int again = 0; fd == -2 && again < 100; again++) {
        int n = snprintf(out.path, sizeof out.path, "%s.%d", out.base, (int)getpid());
        if (again) snprintf(out.path + n, sizeof out.path - (size_t)n, ".%d", again);
        fd = try_open(out.path);
    }
    forks = 1;
    if (fd < 0)
        inlay_warn("nothing is recorded: %s: %s (INLAY_OUT=FILE names another file)", out.path, strerror(errno));
    return out.file = fd < 0 ? -1 : fd;
}

static bool is_ours(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == out.device && st.st_ino == out.inode &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

void record_output_close(void)
{
    if (is_ours(out.file)) close(out.file);
    out.file = -1;
    out.lock.word = 0;
}

/* The lock is still there: it stays with what is mapped. A child of vfork has descriptors of its own, but its parent's
 * memory: it changes nothing. */
static int open_again(void)
{
    int fd = getpid() == out.pid ? open(out.path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (fd < 0) return -1;
    if (is_ours(fd)) return out.file = lift(fd);
    close(fd);
    return -1;
}

int record_output_now(void)
{
    inlay_lock(&out.lock);
    int fd = out.file < 0 || is_ours(out.file) ? out.file : open_again();
    inlay_unlock(&out.lock);
    return fd;
}
