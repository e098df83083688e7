/* The folder of kept translations: where it is, whose it is, and how large it becomes. */
#include "jit/kept_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
