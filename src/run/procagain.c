/* What has been put in place of a file of /proc (procfile.c) is read again: from its beginning it says what is so now,
 * as the kernel's own does. Who watches its size keeps "status" open, and reads it again and again.
 *
 * The descriptor says which it is, and the file's number whether it still is that. One that has been duplicated, is
 * read by other calls than those of syscall_file.c, or by a child of fork (to which the kernel would tell of its
 * parent), has the text that it had. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "run/kernel.h"

/* And what ends it. */
static const long readers[] = {SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_preadv2, SYS_close};

void run_proc_readers_direct(void (*make_direct)(unsigned nr))
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) make_direct((unsigned)readers[i]);
}

/* Such calls are looked at as long as there are any. Lock held, as by whoever counts them. */
static void look(bool on)
{
    if (run_here.proc_read == on) return;
    run_here.proc_read = on;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) run_syscall_look(readers[i], on);
}

static bool is_same(const run_proc_copy *copy, int fd)
{
    struct stat is;
    return !sys_call2(SYS_fstat, fd, (long)&is) && is.st_ino == copy->inode && is.st_dev == copy->device;
}

static run_proc_copy *copy_of(int fd)
{
    for (unsigned i = 0; i < RUN_PROC_COPIES; i++)
        if (run_here.proc_copies[i].inode && run_here.proc_copies[i].fd == fd) return &run_here.proc_copies[i];
    return NULL;
}

/* Of too many one is forgotten. */
void run_proc_note(int fd, int kind, const char *below)
{
    struct stat is;
    if (sys_call2(SYS_fstat, fd, (long)&is)) return;
    inl_lock_take(&run_here.lock);
    run_proc_copy *copy = copy_of(fd);
    for (unsigned i = 0; i < RUN_PROC_COPIES && !copy; i++)
        if (!run_here.proc_copies[i].inode) copy = &run_here.proc_copies[i];
    if (!copy) copy = &run_here.proc_copies[(unsigned)fd % RUN_PROC_COPIES];
    *copy = (run_proc_copy){.fd = fd, .kind = kind, .inode = is.st_ino, .device = is.st_dev};
    snprintf(copy->path, sizeof copy->path, "self/%s", below);
    look(true);
    inl_lock_release(&run_here.lock);
}

void run_proc_forget_all(void)
{
    for (unsigned i = 0; i < RUN_PROC_COPIES; i++) run_here.proc_copies[i].inode = 0;
}

static bool is_any(void)
{
    for (unsigned i = 0; i < RUN_PROC_COPIES; i++)
        if (run_here.proc_copies[i].inode) return true;
    return false;
}

/* False: `fd` is none, or not any more: it has been closed, and its number was given to what is read now. */
static bool find(int fd, run_proc_copy *out)
{
    inl_lock_take(&run_here.lock);
    run_proc_copy *copy = copy_of(fd);
    if (copy && !is_same(copy, fd)) copy->inode = 0;
    bool found = copy && copy->inode;
    if (found) *out = *copy;
    if (!is_any()) look(false);
    inl_lock_release(&run_here.lock);
    return found;
}

void run_proc_forget(int fd)
{
    inl_lock_take(&run_here.lock);
    run_proc_copy *copy = copy_of(fd);
    if (copy) copy->inode = 0;
    if (!is_any()) look(false);
    inl_lock_release(&run_here.lock);
}

void run_proc_read_again(int fd, uint64_t at)
{
    run_proc_copy copy;
    if (!find(fd, &copy)) return;
    if (at == RUN_PROC_HERE) at = (uint64_t)sys_call3(SYS_lseek, fd, 0, SEEK_CUR);
    if (at) return;
    int real = (int)run_proc_open(copy.path), made = real < 0 ? -1 : (int)run_proc_open_copy(fd);
    if (made >= 0 && run_proc_fill(real, made, copy.kind))
        sys_call2(SYS_ftruncate, made, sys_call3(SYS_lseek, made, 0, SEEK_CUR));
    if (made >= 0) sys_call1(SYS_close, made);
    if (real >= 0) sys_call1(SYS_close, real);
}
