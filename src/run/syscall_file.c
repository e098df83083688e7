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
#include "run/kernel.h"
#include "run/worker.h"
#include INL_ARCH_HEADER(run, abi)

/* --- descriptors --- */

static long do_dup(run_thread *t, weave_context *c)
{
    return run_fd_is_hidden((int)run_arg(c, 1)) ? -EBADF : run_pass(t, c);
}

static long do_close_range(run_thread *t, weave_context *c)
{
    return run_close_range(t, run_arg(c, 0), run_arg(c, 1), run_arg(c, 2));
}

/* --- directories of descriptors and threads --- */

struct dirent64 { /* the kernel's linux_dirent64 */
    uint64_t ino, off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

enum listed { LISTS_OTHERS, LISTS_DESCRIPTORS, LISTS_THREADS };

static enum listed listed_by(int fd)
{
    char path[64];
    if (!run_proc_own_path(fd, path, sizeof path)) return LISTS_OTHERS;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    if (!strcmp(last, "fd") || !strcmp(last, "fdinfo")) return LISTS_DESCRIPTORS;
    return !strcmp(path, "task") && run_here.workers ? LISTS_THREADS : LISTS_OTHERS;
}

bool run_lists_hidden(int fd) { return listed_by(fd) != LISTS_OTHERS; }

/* Takes hidden numbers out of what the kernel wrote; the bytes that are left. */
static long without_hidden(char *buffer, long size, bool (*is_hidden)(int number))
{
    long out = 0;
    for (long at = 0; at < size;) {
        struct dirent64 *d = (struct dirent64 *)(buffer + at);
        long n = d->reclen;
        char *end;
        long number = strtol(d->name, &end, 10);
        bool hidden = end != d->name && !*end && is_hidden((int)number);
        if (!hidden) {
            memmove(buffer + out, buffer + at, (size_t)n);
            out += n;
        }
        at += n;
    }
    return out;
}

long run_list_unhidden(run_thread *t, weave_context *c)
{
    enum { LARGEST = 64 << 10 };
    bool (*is_hidden)(int) = listed_by((int)run_arg(c, 0)) == LISTS_THREADS ? run_is_workers : run_fd_is_hidden;
    long n;
    do {
        n = run_pass(t, c);
        if (n <= 0 || n > LARGEST) return n;
        char buffer[LARGEST];
        if (!run_read(buffer, run_arg(c, 1), (size_t)n)) return n;
        n = without_hidden(buffer, n, is_hidden);
        if (!run_write(run_arg(c, 1), buffer, (size_t)n)) return -EFAULT;
    } while (n == 0); /* all of them were: 0 would mean the end */
    return n;
}

static long do_getdents64(run_thread *t, weave_context *c)
{
    return run_lists_hidden((int)run_arg(c, 0)) ? run_list_unhidden(t, c) : run_pass(t, c);
}

/* --- links and files of /proc --- */

static bool proc_path(uint64_t address, char *out, size_t size)
{
    char start[6];
    if (!run_read(start, address, sizeof start) || memcmp(start, "/proc/", sizeof start) != 0) return false;
    return run_read_string(out, address, size) > 0;
}

static long link_of(run_thread *t, weave_context *c, uint64_t path, uint64_t to, uint64_t size)
{
    char name[128], answer[PATH_MAX];
    if (run_here.client.proc_link && (int64_t)size > 0 && proc_path(path, name, sizeof name)) {
        size_t n = run_here.client.proc_link(run_here.client.arg, name, answer, sizeof answer);
        if (n > size) n = size;
        if (n) return run_write(to, answer, n) ? (long)n : -EFAULT;
    }
    return run_pass(t, c);
}

static long do_readlink(run_thread *t, weave_context *c)
{
    return link_of(t, c, run_arg(c, 0), run_arg(c, 1), run_arg(c, 2));
}

static long do_readlinkat(run_thread *t, weave_context *c)
{
    return link_of(t, c, run_arg(c, 1), run_arg(c, 2), run_arg(c, 3));
}

/* --- the process's own memory as a file: what is written there goes past every protection --- */

static bool is_own_memory(int fd)
{
    char path[64];
    if (!run_here.engine->watch || !run_proc_own_path(fd, path, sizeof path)) return false;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    return !strcmp(last, "mem");
}

static const long memory_writers[] = {SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2};

/* From now on such calls are looked at. */
static void note_memory(int fd)
{
    if (run_here.memory_opened || !is_own_memory(fd)) return;
    run_here.memory_opened = true;
    for (size_t i = 0; i < sizeof memory_writers / sizeof *memory_writers; i++) run_syscall_keep(memory_writers[i]);
}

static long do_write(run_thread *t, weave_context *c)
{
    long nr = run_number(c), fd = (int)run_arg(c, 0);
    uint64_t at = run_arg(c, 3);
    bool here = nr == SYS_write || nr == SYS_writev || (nr == SYS_pwritev2 && at == UINT64_MAX);
    long written = run_pass(t, c);
    if (written <= 0 || !run_here.memory_opened || !is_own_memory((int)fd)) return written;
    if (here) at = (uint64_t)(sys_call3(SYS_lseek, fd, 0, SEEK_CUR) - written);
    inl_lock_take(&run_here.lock);
    run_here.engine->watch->changed(at, at + (uint64_t)written);
    inl_lock_release(&run_here.lock);
    return written;
}

/* --- what has been put in place of files of /proc, read again --- */

static long do_read(run_thread *t, weave_context *c)
{
    const long nr = run_number(c);
    if (run_here.proc_read)
        run_proc_read_again((int)run_arg(c, 0), nr == SYS_read || nr == SYS_readv ? RUN_PROC_HERE : run_arg(c, 3));
    return run_pass(t, c);
}

static long do_close(run_thread *t, weave_context *c)
{
    if (run_here.proc_read) run_proc_forget((int)run_arg(c, 0));
    return run_pass(t, c);
}

void run_file_calls_direct(void (*make_direct)(unsigned nr))
{
    for (size_t i = 0; i < sizeof memory_writers / sizeof *memory_writers; i++)
        make_direct((unsigned)memory_writers[i]);
    run_proc_readers_direct(make_direct);
}

/* --- opening --- */

static long open_path(run_thread *t, weave_context *c, uint64_t path, uint64_t flags)
{
    char name[256];
    bool may_be = !(flags & O_PATH) && run_read_string(name, path, sizeof name) > 0;
    int kind = may_be ? run_proc_kind(name) : -1;
    long fd = run_pass(t, c);
    if (may_be && fd >= 0 && (flags & O_ACCMODE) != O_RDONLY) note_memory((int)fd);
    return kind < 0 || fd < 0 ? fd : run_proc_replace((int)fd, kind, (int)flags);
}

static long do_open(run_thread *t, weave_context *c) { return open_path(t, c, run_arg(c, 0), run_arg(c, 1)); }

static long do_openat(run_thread *t, weave_context *c) { return open_path(t, c, run_arg(c, 1), run_arg(c, 2)); }

static long do_openat2(run_thread *t, weave_context *c)
{
    uint64_t flags; /* the first member of struct open_how */
    if (!run_read(&flags, run_arg(c, 2), sizeof flags)) return run_pass(t, c);
    return open_path(t, c, run_arg(c, 1), flags);
}

const run_syscall_row run_file_syscalls[] = {
    {SYS_dup2, "dup2", do_dup},
    {SYS_dup3, "dup3", do_dup},
    {SYS_close_range, "close_range", do_close_range},
    {SYS_getdents64, "getdents64", do_getdents64},
    {SYS_readlink, "readlink", do_readlink},
    {SYS_readlinkat, "readlinkat", do_readlinkat},
    {SYS_open, "open", do_open},
    {SYS_openat, "openat", do_openat},
    {SYS_openat2, "openat2", do_openat2},
    {SYS_write, "write", do_write},
    {SYS_writev, "writev", do_write},
    {SYS_pwrite64, "pwrite64", do_write},
    {SYS_pwritev, "pwritev", do_write},
    {SYS_pwritev2, "pwritev2", do_write},
    {SYS_close, "close", do_close},
    {SYS_read, "read", do_read},
    {SYS_readv, "readv", do_read},
    {SYS_pread64, "pread64", do_read},
    {SYS_preadv, "preadv", do_read},
    {SYS_preadv2, "preadv2", do_read},
    {0, NULL, NULL},
};
