#include "run/kept_folder.h"
#include "base/log.h"
#include "base/sum.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

bool kept_folder_name(char *path, char *parent, size_t size)
{
    const char *own = getenv("INLAY_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    *parent = 0;
    if (own && *own) {
        n = snprintf(path, size, "%s", own);
    } else if (base && *base == '/') {
        snprintf(parent, size, "%s", base);
        n = snprintf(path, size, "%s/inlay", base);
    } else if (home && *home == '/') {
        snprintf(parent, size, "%s/.cache", home);
        n = snprintf(path, size, "%s/.cache/inlay", home);
    }
    return n > 0 && (size_t)n < size && *path == '/';
}

bool kept_folder_is_private(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}

int kept_folder_open(void)
{
    char path[PATH_MAX], parent[PATH_MAX];
    if (getuid() != geteuid() || !kept_folder_name(path, parent, sizeof path)) return -1;
    if (mkdir(path, 0700) != 0 && errno == ENOENT && *parent && mkdir(parent, 0700) == 0) mkdir(path, 0700);
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && kept_folder_is_private(fd)) return fd;
    inl_log(INL_LOG_CACHE, "%s is not used: %s", path,
            fd < 0 ? strerror(errno) : "it is not this user's own folder that nobody else may enter");
    if (fd >= 0) close(fd);
    return -1;
}

void kept_name(const char *key, char name[KEPT_NAME])
{
    size_t n = strlen(key);
    snprintf(name, KEPT_NAME, "%016llx%016llx", (unsigned long long)inl_sum(key, n, 1),
             (unsigned long long)inl_sum(key, n, 2));
}

bool kept_folder_has(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");
    const char *rest = name + n;
    return n == KEPT_NAME - 1 && (!*rest || (*rest == '.' && !rest[1 + strspn(rest + 1, "0123456789")]));
}

typedef struct file {
    char name[KEPT_NAME + 16];
    uint64_t size;
    struct timespec written;
} file;
enum { FILES = 4096 };

static int by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const file *)a)->written, *y = &((const file *)b)->written;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static unsigned read_folder(DIR *dir, file *files, uint64_t *sum)
{
    unsigned count = 0;
    struct stat st;
    for (struct dirent *d; count < FILES && (d = readdir(dir));) {
        if (!kept_folder_has(d->d_name) || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        file *f = &files[count++];
        memcpy(f->name, d->d_name, strnlen(d->d_name, sizeof f->name - 1) + 1);
        f->name[sizeof f->name - 1] = 0;
        f->size = (uint64_t)st.st_size;
        f->written = st.st_mtim;
        *sum += f->size;
    }
    return count;
}

void kept_folder_trim(int folder, uint64_t limit)
{
    uint64_t sum = 0;
    file *files = malloc(FILES * sizeof *files);
    int fd = files ? openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    unsigned count = dir ? read_folder(dir, files, &sum) : 0;
    if (count) qsort(files, count, sizeof *files, by_age);
    bool too_many = sum > limit || count == FILES;
    for (unsigned i = 0; i < count && too_many && sum > limit / 4 * 3; i++)
        if (unlinkat(folder, files[i].name, 0) == 0) sum -= files[i].size;
    if (dir) closedir(dir);
    else if (fd >= 0) close(fd);
    free(files);
}

/* --- files that are read and written whole --- */

static bool is_own_file(int fd, uint64_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_mode & 077 || st.st_uid != geteuid()) return false;
    *size = (uint64_t)st.st_size;
    return *size && *size <= KEPT_FOLDER_MOST;
}

void *kept_folder_take(int folder, const char *name, size_t *size)
{
    uint64_t whole;
    size_t done = 0;
    char *bytes = NULL;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    if (is_own_file(fd, &whole) && (bytes = malloc(whole)) != NULL)
        for (ssize_t n; done < whole && (n = read(fd, bytes + done, whole - done)) > 0;) done += (size_t)n;
    close(fd);
    if (bytes && done == whole) return *size = whole, bytes;
    free(bytes);
    return NULL;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, bytes + done, size - done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

bool kept_folder_put(int folder, const char *name, const void *bytes, size_t size)
{
    char own[KEPT_NAME + 16];
    struct rlimit limit;
    if (size > KEPT_FOLDER_MOST / 4) return false;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)
        return false; /* a signal would end the process */
    snprintf(own, sizeof own, "%s.%ld", name, (long)getpid());
    unlinkat(folder, own, 0); /* of one that was killed and had this number */
    int fd = openat(folder, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    bool done = write_all(fd, bytes, size);
    done = close(fd) == 0 && done && renameat(folder, own, folder, name) == 0;
    if (!done) unlinkat(folder, own, 0);
    if (done) kept_folder_trim(folder, KEPT_FOLDER_MOST);
    return done;
}
