/* Descriptors for a process that cannot open for itself what lies in /proc, as there is none at its root (chroot): the
 * first thread makes a pair of sockets, this process takes one end of it (pidfd_getfd), and sends what it has opened.
 *
 * page:   0  the pair, then an iovec and its byte | 64  a msghdr | 128  where the descriptors come */
#include "live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AT_PAIR = 0, AT_PIECE = 16, AT_BYTE = 32, AT_MESSAGE = 64, AT_CONTROL = 128 };
#define CONTROL CMSG_SPACE(MOVE_ASK_FILES * sizeof(int))

/* A call that has to succeed. */
static inl_status call(remote *r, long *answer, const char *what, long nr, const long args[6], inl_error *e)
{
    inl_status s = remote_call(r, answer, nr, args, e);
    if (s != INL_OK || *answer >= 0) return s;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d: %s: %s", r->pid, what, strerror((int)-*answer));
}

static void close_there(remote *r, int fd)
{
    long answer;
    if (fd >= 0) remote_call(r, &answer, SYS_close, (long[6]){fd}, &(inl_error){0});
}

bool live_opens_proc(remote *r, uint64_t page)
{
    static const char path[] = "/proc/self/maps";
    inl_error ignored;
    long answer;
    if (remote_write(r, page, path, sizeof path, &ignored) != INL_OK) return true;
    const long args[6] = {AT_FDCWD, (long)page, O_RDONLY | O_CLOEXEC};
    if (remote_call(r, &answer, SYS_openat, args, &ignored) != INL_OK) return true;
    if (answer >= 0) close_there(r, (int)answer);
    return answer != -ENOENT;
}

/* --- the two ends --- */

static inl_status send_files(pid_t pid, int socket, inl_error *e)
{
    static const char *const names[MOVE_ASK_FILES] = {"mem", "maps", "pagemap"};
    union {
        char bytes[CONTROL];
        struct cmsghdr head;
    } control = {.head = {.cmsg_len = CMSG_LEN(MOVE_ASK_FILES * sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    struct iovec piece = {"", 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int fds[MOVE_ASK_FILES];
    bool good = true;
    for (int i = 0; i < MOVE_ASK_FILES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/%s", pid, names[i]);
        fds[i] = open(path, (i ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        good = good && fds[i] >= 0;
    }
    memcpy(CMSG_DATA(&control.head), fds, sizeof fds);
    good = good && sendmsg(socket, &message, 0) == 1;
    int why = errno;
    for (int i = 0; i < MOVE_ASK_FILES; i++)
        if (fds[i] >= 0) close(fds[i]);
    return good ? INL_OK : inl_fail(e, INL_ERR_SYSTEM, "cannot hand files to process %d: %s", pid, strerror(why));
}

static inl_status send_from_here(remote *r, int theirs, inl_error *e)
{
    int process = (int)syscall(SYS_pidfd_open, r->pid, 0);
    int own = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
    inl_status s = own < 0 ? inl_fail(e, INL_ERR_SYSTEM, "cannot get a descriptor of process %d (pidfd_getfd: %s)",
                                      r->pid, strerror(errno))
                           : send_files(r->pid, own, e);
    if (own >= 0) close(own);
    if (process >= 0) close(process);
    return s;
}

static inl_status receive_there(remote *r, uint64_t page, int socket, int64_t files[MOVE_ASK_FILES], inl_error *e)
{
    const struct iovec piece = {(void *)(uintptr_t)(page + AT_BYTE), 1};
    const struct msghdr message = {.msg_iov = (void *)(uintptr_t)(page + AT_PIECE),
                                   .msg_iovlen = 1,
                                   .msg_control = (void *)(uintptr_t)(page + AT_CONTROL),
                                   .msg_controllen = CONTROL};
    int fds[MOVE_ASK_FILES];
    long answer;
    inl_status s = remote_write(r, page + AT_PIECE, &piece, sizeof piece, e);
    if (s == INL_OK) s = remote_write(r, page + AT_MESSAGE, &message, sizeof message, e);
    const long args[6] = {socket, (long)(page + AT_MESSAGE), MSG_CMSG_CLOEXEC | MSG_DONTWAIT};
    if (s == INL_OK) s = call(r, &answer, "recvmsg", SYS_recvmsg, args, e);
    if (s == INL_OK) s = remote_read(r, page + AT_CONTROL + CMSG_LEN(0), fds, sizeof fds, e);
    for (int i = 0; i < MOVE_ASK_FILES && s == INL_OK; i++) files[i] = fds[i];
    return s;
}

inl_status live_lend_files(remote *r, uint64_t page, int64_t files[MOVE_ASK_FILES], inl_error *e)
{
    long answer;
    int pair[2] = {-1, -1};
    const long args[6] = {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, (long)(page + AT_PAIR)};
    inl_status s = call(r, &answer, "socketpair", SYS_socketpair, args, e);
    if (s == INL_OK) s = remote_read(r, page + AT_PAIR, pair, sizeof pair, e);
    if (s == INL_OK) s = send_from_here(r, pair[1], e);
    if (s == INL_OK) s = receive_there(r, page, pair[0], files, e);
    close_there(r, pair[0]);
    close_there(r, pair[1]);
    return s;
}
