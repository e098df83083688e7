/* Closes every descriptor it can, in each of the ways programs use, then looks what is open and
 * whether the lowest free numbers are its own again. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int open_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (!d) return -1;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* the folder itself */
}

static int asked_by(int (*ask)(int fd), int end)
{
    int n = 0;
    for (int fd = 3; fd < end; fd++) n += ask(fd);
    return n;
}

static int has_flags(int fd) { return fcntl(fd, F_GETFD) >= 0; }
static int can_be_copied(int fd)
{
    int copy = dup(fd);
    if (copy >= 0) close(copy);
    return copy >= 0;
}

int main(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int end = limit.rlim_cur < 70000 ? (int)limit.rlim_cur : 70000;
    printf("at start %d, %d, %d\n", open_descriptors(), asked_by(has_flags, end), asked_by(can_be_copied, end));
    for (int fd = 3; fd < end; fd++) close(fd);
    printf("after the loop %d\n", open_descriptors());
    closefrom(3);
    close_range(3, ~0u, 0);
    printf("after close_range %d\n", open_descriptors());
    int a = open("/dev/null", O_RDONLY), b = dup(a), c = dup2(a, 500), d = dup2(a, 1000);
    printf("new %d %d %d %d\n", a, b, c, d);
    for (int fd = 3; fd < 1024; fd++) dup2(a, fd);
    printf("all taken %d\n", open_descriptors());
    close_range(3, ~0u, 0);
    limit.rlim_cur = 8;
    setrlimit(RLIMIT_NOFILE, &limit);
    printf("limited %d\n", open_descriptors());
    return 0;
}
