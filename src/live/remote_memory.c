/* Another process's memory, and what is said when nothing can be done with a process. */
#include "live/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

inl_status remote_fail(remote *r, const char *what, inl_error *e)
{
    if (errno == ESRCH) r->gone = true;
    inl_status code = errno == ESRCH ? INL_ERR_NOT_FOUND : INL_ERR_SYSTEM;
    return inl_fail(e, code, "%s in process %d failed: %s", what, r->pid, strerror(errno));
}

inl_status remote_read(remote *r, uint64_t from, void *to, size_t size, inl_error *e)
{
    struct iovec here = {to, size}, there = {(void *)from, size};
    if (process_vm_readv(r->pid, &here, 1, &there, 1, 0) == (ssize_t)size) return INL_OK;
    return remote_fail(r, "reading memory", e);
}

inl_status remote_write(remote *r, uint64_t to, const void *from, size_t size, inl_error *e)
{
    struct iovec here = {(void *)from, size}, there = {(void *)to, size};
    if (process_vm_writev(r->pid, &here, 1, &there, 1, 0) == (ssize_t)size) return INL_OK;
    return remote_fail(r, "writing memory", e);
}

inl_status remote_write_words(remote *r, const uint64_t *at, const uint64_t *values, size_t count, inl_error *e)
{
    struct iovec here = {(void *)values, count * sizeof *values}, there[REMOTE_WORDS_MOST];
    for (size_t i = 0; i < count; i++) there[i] = (struct iovec){(void *)at[i], sizeof *values};
    if (!count || process_vm_writev(r->pid, &here, 1, there, count, 0) == (ssize_t)here.iov_len) return INL_OK;
    return remote_fail(r, "writing memory", e);
}

/* Pages that the process may only execute are written to as well, its own copies. */
inl_status remote_patch(remote *r, uint64_t to, const void *from, size_t size, inl_error *e)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/mem", r->pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool done = fd >= 0 && pwrite(fd, from, size, (off_t)to) == (ssize_t)size;
    inl_status s = done ? INL_OK : remote_fail(r, "writing over code", e);
    if (fd >= 0) close(fd);
    return s;
}
