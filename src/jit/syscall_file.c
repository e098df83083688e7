/* System calls on descriptors and on /proc: Inlay's descriptors behave as unused numbers, and what
 * /proc tells of the process is what it would tell without Inlay, as far as programs look there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/sys.h"
#include "jit/kernel.h"
#include "jit/x86_64/abi.h"

/* --- descriptors --- */

static long run_dup(jit_thread *t, weave_context *c)
{
    return jit_fd_is_hidden((int)jit_arg(c, 1)) ? -EBADF : jit_pass(t, c);
}

static long run_close_range(jit_thread *t, weave_context *c)
{
    return jit_close_range(t, jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2));
}

/* --- directories of descriptors --- */

struct dirent64 { /* the kernel's linux_dirent64 */
    uint64_t ino, off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

bool jit_lists_descriptors(int fd)
{
    char path[64];
    if (!jit_proc_own_path(fd, path, sizeof path)) return false;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    return !strcmp(last, "fd") || !strcmp(last, "fdinfo");
}

/* Takes hidden numbers out of what the kernel wrote; the bytes that are left. */
static long without_hidden(char *buffer, long size)
{
    long out = 0;
    for (long at = 0; at < size;) {
        struct dirent64 *d = (struct dirent64 *)(buffer + at);
        long n = d->reclen;
        char *end;
        long number = strtol(d->name, &end, 10);
        bool hidden = end != d->name && !*end && jit_fd_is_hidden((int)number);
        if (!hidden) {
            memmove(buffer + out, buffer + at, (size_t)n);
            out += n;
        }
        at += n;
    }
    return out;
}

long jit_list_descriptors(jit_thread *t, weave_context *c)
{
    enum { LARGEST = 64 << 10 };
    long n;
    do {
        n = jit_pass(t, c);
        if (n <= 0 || n > LARGEST) return n;
        char buffer[LARGEST];
        if (!jit_read(buffer, jit_arg(c, 1), (size_t)n)) return n;
        n = without_hidden(buffer, n);
        if (!jit_write(jit_arg(c, 1), buffer, (size_t)n)) return -EFAULT;
    } while (n == 0); /* all of them were: 0 would mean the end */
    return n;
}

static long run_getdents64(jit_thread *t, weave_context *c)
{
    return jit_lists_descriptors((int)jit_arg(c, 0)) ? jit_list_descriptors(t, c) : jit_pass(t, c);
}

/* --- links and files of /proc --- */

static bool proc_path(uint64_t address, char *out, size_t size)
{
    char start[6];
    if (!jit_read(start, address, sizeof start) || memcmp(start, "/proc/", sizeof start) != 0) return false;
    return jit_read_string(out, address, size) > 0;
}

static long link_of(jit_thread *t, weave_context *c, uint64_t path, uint64_t to, uint64_t size)
{
    char name[128], answer[PATH_MAX];
    if (jit.client.proc_link && (int64_t)size > 0 && proc_path(path, name, sizeof name)) {
        size_t n = jit.client.proc_link(jit.client.arg, name, answer, sizeof answer);
        if (n > size) n = size;
        if (n) return jit_write(to, answer, n) ? (long)n : -EFAULT;
    }
    return jit_pass(t, c);
}

static long run_readlink(jit_thread *t, weave_context *c)
{
    return link_of(t, c, jit_arg(c, 0), jit_arg(c, 1), jit_arg(c, 2));
}

static long run_readlinkat(jit_thread *t, weave_context *c)
{
    return link_of(t, c, jit_arg(c, 1), jit_arg(c, 2), jit_arg(c, 3));
}

static long open_path(jit_thread *t, weave_context *c, uint64_t path, uint64_t flags)
{
    char name[256];
    bool may_be = !(flags & O_PATH) && jit_read_string(name, path, sizeof name) > 0;
    int kind = may_be ? jit_proc_kind(name) : -1;
    long fd = jit_pass(t, c);
    return kind < 0 || fd < 0 ? fd : jit_proc_replace((int)fd, kind, (int)flags);
}

static long run_open(jit_thread *t, weave_context *c) { return open_path(t, c, jit_arg(c, 0), jit_arg(c, 1)); }

static long run_openat(jit_thread *t, weave_context *c) { return open_path(t, c, jit_arg(c, 1), jit_arg(c, 2)); }

static long run_openat2(jit_thread *t, weave_context *c)
{
    uint64_t flags; /* the first member of struct open_how */
    if (!jit_read(&flags, jit_arg(c, 2), sizeof flags)) return jit_pass(t, c);
    return open_path(t, c, jit_arg(c, 1), flags);
}

const jit_syscall_row jit_file_syscalls[] = {
    {SYS_dup2, "dup2", run_dup},
    {SYS_dup3, "dup3", run_dup},
    {SYS_close_range, "close_range", run_close_range},
    {SYS_getdents64, "getdents64", run_getdents64},
    {SYS_readlink, "readlink", run_readlink},
    {SYS_readlinkat, "readlinkat", run_readlinkat},
    {SYS_open, "open", run_open},
    {SYS_openat, "openat", run_openat},
    {SYS_openat2, "openat2", run_openat2},
    {0, NULL, NULL},
};
