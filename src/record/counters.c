/* Descriptors of counters in an ordinary program (src/tool/perf.c): high numbers, and before one is read it is looked
 * at, since the program may have closed it, and have another file there. */
#include "tool/perf.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

int perf_fd_hide(int fd)
{
    struct rlimit limit;
    int high = 900;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1064) high = (int)limit.rlim_cur - 100;
    int up = high > fd ? fcntl(fd, F_DUPFD_CLOEXEC, high) : -1;
    if (up < 0) return fd;
    close(fd);
    return up;
}

bool perf_fd_is_there(int fd)
{
    uint64_t id;
    return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

void perf_fd_close(int fd)
{
    if (perf_fd_is_there(fd)) close(fd);
}

bool perf_may(long nr) { return nr >= 0; }
