/* The recording's file: INLAY_OUT, or PROGRAM.trace in the folder where the program was started; while another process
 * writes that one, or after a fork, NAME.PID; likewise where a file of that name is no recording. A lock on the file
 * tells that somebody writes.
 *
 * The descriptor has a high number. A program may close it all the same, and have another file under that number:
 * before each use it is looked at, and opened again where it is not ours any more. */
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
#include <time.h>
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

static bool name_base(const char *asked)
{
    char folder[PATH_MAX];
    if (out.base[0]) return true;
    if (!getcwd(folder, sizeof folder)) return false;
    const char *dot = *asked ? "" : ".trace", *name = *asked ? asked : program_invocation_short_name;
    int n = name[0] == '/' ? snprintf(out.base, sizeof out.base, "%s%s", name, dot)
                           : snprintf(out.base, sizeof out.base, "%s/%s%s", folder, name, dot);
    if (n > 0 && n < (int)sizeof out.base) return true;
    out.base[0] = 0;
    errno = ENAMETOOLONG;
    return false;
}

/* --- whose a file is --- */

typedef enum held { NOTHING, OTHERS, OWN, NO_RECORDING } held;

/* How long this process has been there, in ns, through all programs that it has executed; 0: not known. */
static uint64_t age(void)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    struct timespec now;
    if (fd >= 0) close(fd);
    if (n <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
    text[n] = 0;
    const char *at = strrchr(text, ')'); /* behind its name: state, and 18 numbers to the one that is wanted */
    for (int i = 0; at && i < 20; i++) at = strchr(at + 1, ' ');
    uint64_t second = 1000000000, ticks = at ? strtoull(at, NULL, 10) : 0, tick = second / getauxval(AT_CLKTCK);
    uint64_t lived = (uint64_t)now.tv_sec * second + (uint64_t)now.tv_nsec - ticks * tick;
    return at && ticks ? lived : 0; /* ticks are rounded down */
}

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What this very process has recorded, before it executed the program anew, began after it did itself: its number may
 * have been another's before, and is another's elsewhere. */
static held what_holds(int fd, const struct stat *st)
{
    struct {
        inlay_trace_chunk head;
        inlay_trace_session session;
    } first;
    if (st->st_size == 0) return NOTHING;
    ssize_t n = pread(fd, &first, sizeof first, 0);
    if (n < (ssize_t)sizeof first.head || first.head.magic != INLAY_TRACE_MAGIC) return NO_RECORDING;
    if (n < (ssize_t)sizeof first || first.session.pid != getpid()) return OTHERS;
    uint64_t since = age();
    bool same = now(CLOCK_REALTIME) - first.session.realtime < since &&
                now(CLOCK_MONOTONIC) - first.session.monotonic < since;
    return same ? OWN : OTHERS;
}

/* -1: it cannot be had; -2: somebody writes it; -3: it holds something else, and stays. */
static int try_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666), failed = -1, cause = 0;
    if (fd < 0) return -1;
    struct stat st;
    held what = NOTHING;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) cause = EINVAL;
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0) cause = EWOULDBLOCK, failed = -2;
    else if ((what = what_holds(fd, &st)) == NO_RECORDING) cause = EEXIST, failed = -3;
    else if (what == OTHERS && ftruncate(fd, 0) != 0) cause = errno;
    if (!cause) {
        out.device = st.st_dev;
        out.inode = st.st_ino;
        out.pid = getpid();
        return lift(fd);
    }
    close(fd);
    errno = cause;
    return failed;
}

int record_output_open(const char *name)
{
    static int forks;
    if (out.file >= 0) return out.file;
    if (getauxval(AT_SECURE) || !name_base(name))
        return -1; /* whoever starts a privileged program names no files of it */
    int fd = forks ? -2 : try_open(strcpy(out.path, out.base));
    bool kept = fd == -3;
    for (int again = 0; fd < -1 && again < 100; again++) {
        int n = snprintf(out.path, sizeof out.path, "%s.%d", out.base, (int)getpid());
        if (again) snprintf(out.path + n, sizeof out.path - (size_t)n, ".%d", again);
        fd = try_open(out.path);
    }
    forks = 1;
    if (kept && fd >= 0) inlay_warn("%s is no recording, and is left as it is: recorded to %s", out.base, out.path);
    if (fd < 0)
        inlay_warn("nothing is recorded: %s: %s (INLAY_OUT=FILE names another file)", out.path, strerror(errno));
    return out.file = fd < 0 ? -1 : fd;
}

static bool is_ours(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == out.device && st.st_ino == out.inode &&
           (fcntl(fd, F_GETFL, 0) & O_ACCMODE) == O_RDWR;
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
    int fd = getpid() == out.pid ? open(out.path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0) : -1;
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
