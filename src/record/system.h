/* What the recorder means by the names of system calls: the calls themselves, not the C library's functions. These may
 * be points of cancellation, where the program has none; one that is cancelled while signals are blocked waits for ever
 * for the signal that it is to be cancelled by. And the names are the program's own where it defines them, as any
 * program in C may with `read` or `link`.
 *
 * Included in front of each source, those that tools share with the recorder too (meson.build). */
#if !defined INL_RECORD_SYSTEM_H && !defined __ASSEMBLER__
#define INL_RECORD_SYSTEM_H

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline long record_answer(long answer)
{
    if (!sys_failed(answer)) return answer;
    errno = (int)-answer;
    return -1;
}

static inline int record_int(long answer) { return (int)record_answer(answer); }

#define RECORD_LONG(nr, a, b, c, d) sys_call(SYS_##nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define RECORD_CALL(nr, a, b, c, d) record_answer(RECORD_LONG(nr, a, b, c, d))
#define RECORD_INT(nr, a, b, c, d)  record_int(RECORD_LONG(nr, a, b, c, d))

static inline void *record_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    long p = sys_call(SYS_mmap, (long)at, (long)bytes, protection, flags, file, offset);
    return (void *)record_answer(p); /* MAP_FAILED is -1 */
}

/* As getcwd(3): a path that begins with no slash is none. */
static inline char *record_getcwd(char *to, size_t size)
{
    long n = RECORD_CALL(getcwd, to, size, 0, 0);
    if (n > 0 && *to != '/') errno = ENOENT;
    return n > 0 && *to == '/' ? to : NULL;
}

#define open(path, flags, mode)           RECORD_INT(openat, AT_FDCWD, path, flags, mode)
#define close(file)                       RECORD_INT(close, file, 0, 0, 0)
#define read(file, to, size)              RECORD_CALL(read, file, to, size, 0)
#define write(file, from, size)           RECORD_CALL(write, file, from, size, 0)
#define pread(file, to, size, at)         RECORD_CALL(pread64, file, to, size, at)
#define pwrite(file, from, size, at)      RECORD_CALL(pwrite64, file, from, size, at)
#define pwritev(file, from, count, at)    RECORD_CALL(pwritev, file, from, count, at)
#define fallocate(file, how, from, bytes) RECORD_INT(fallocate, file, how, from, bytes)
#define ftruncate(file, bytes)            RECORD_INT(ftruncate, file, bytes, 0, 0)
#define fstat(file, to)                   RECORD_INT(fstat, file, to, 0, 0)
#define fcntl(file, what, value)          RECORD_INT(fcntl, file, what, value, 0)
#define ioctl(file, what, to)             RECORD_INT(ioctl, file, what, to, 0)
#define flock(file, how)                  RECORD_INT(flock, file, how, 0, 0)
#define readlink(path, to, size)          RECORD_CALL(readlinkat, AT_FDCWD, path, to, size)
#define getrlimit(which, to)              RECORD_INT(prlimit64, 0, which, 0, to)
#define getpid()                          (int)sys_call0(SYS_getpid)
#define getppid()                         (int)sys_call0(SYS_getppid)
#define gettid()                          (int)sys_call0(SYS_gettid)
#define munmap(at, bytes)                 RECORD_INT(munmap, at, bytes, 0, 0)
#define mmap                              record_mmap
#define getcwd                            record_getcwd

#endif
