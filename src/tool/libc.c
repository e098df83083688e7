/* What a tool's own C library must not do inside a program.
 *
 * - It must not move the program break: that belongs to the program's heap. With the definitions
 *   below brk and sbrk fail, and malloc takes its memory from mmap. But what is asked for first is the
 *   main thread's block of thread-local storage, before there is a region to map it in: it has room in
 *   the tool's own image, for a mapping of its own would lie among the program's.
 * - Its mappings should not lie among the program's: mappings without an address are placed in the
 *   tool's own region, so that the program's addresses are what they are natively and one range
 *   tells what is the tool's. Should the place be taken, the kernel chooses another.
 * - Its ends of the process, of which the tool is not to make use.
 * - Actions for signals are the program's: a handler of the tool's would run in the place of Inlay's, on any stack and
 *   with whatever thread-local storage, and the program would not die of what it does not handle.
 * - Its stdio must not write to descriptors 0 to 2: those are the program's.
 * - Files that it opens must not have numbers that the program's next file would get, nor be closed by a program that
 *   closes what it does not know.
 * - What it writes in vain (a pipe that nobody reads, a file that may not grow) must not be a signal of the program's.
 *
 * The linker takes these definitions instead of the library's because each of them defines every
 * symbol of the object that it replaces.
 */
#include "tool/blame.h"
#include "tool/tool.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "tool/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Never NULL: the library's first allocation, before any of its initialisation, makes the system call
 * itself while it believes that nobody has asked for the break yet. And errno is left alone below,
 * since that allocation makes room for the thread-local storage in which errno is. */
EXPORT void *__curbrk = (void *)1;

EXPORT int __brk(void *end)
{
    (void)end;
    return -1;
}

EXPORT void *__sbrk(intptr_t grow)
{
    static uint8_t first[4 * INL_PAGE] __attribute__((aligned(64)));
    static bool given;
    bool can = !given && grow > 0 && (size_t)grow <= sizeof first;
    given = true;
    return can ? first : (void *)-1;
}
EXPORT int brk(void *end) __attribute__((alias("__brk")));
EXPORT void *sbrk(intptr_t grow) __attribute__((alias("__sbrk")));

/* Who ends the process is asked after it first (blame.c). Weak: a library in which their object has more to it keeps
 * its own. */
EXPORT __attribute__((weak, noreturn)) void _exit(int status)
{
    blame_exit(&status, __builtin_return_address(0));
    for (;;) sys_call1(SYS_exit_group, status);
}

EXPORT __attribute__((weak, noreturn)) void _Exit(int status)
{
    blame_exit(&status, __builtin_return_address(0));
    for (;;) sys_call1(SYS_exit_group, status);
}

EXPORT __attribute__((weak)) void *__abort_msg; /* for debuggers; assert stores there */
EXPORT __attribute__((weak, noreturn)) void abort(void) { blame_abort(__builtin_return_address(0)); }

/* From glibc 2.41 on abort's object has these as well: who forks, spawns or changes a disposition keeps others from
 * ending the process meanwhile, and signals from being handled. This abort changes nothing first, so that no lock is
 * needed. */
static void hold_signals(uint64_t *mask)
{
    const uint64_t all = ~0ull;
    sys_call4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)mask, sizeof all);
}
EXPORT __attribute__((weak)) void __abort_lock_rdlock(uint64_t *mask) { hold_signals(mask); }
EXPORT __attribute__((weak)) void __abort_lock_wrlock(uint64_t *mask) { hold_signals(mask); }
EXPORT __attribute__((weak)) void __abort_lock_unlock(const uint64_t *mask)
{
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, sizeof *mask);
}
EXPORT __attribute__((weak)) void __abort_fork_reset_child(void) {}

/* The C library's structure is not the kernel's. */
int libc_sigaction(int signo, const struct sigaction *a, struct sigaction *old)
{
    run_action to = {0}, was = {0};
    if (a) {
        to.handler = (uint64_t)(uintptr_t)a->sa_handler;
        to.flags = (uint32_t)a->sa_flags;
        if (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN) { /* else the program would see a flag */
            to.flags |= SA_RESTORER;
            to.restorer = (uint64_t)(uintptr_t)run_signal_restorer;
        }
        memcpy(&to.mask, &a->sa_mask, sizeof to.mask);
    }
    long r = sys_call4(SYS_rt_sigaction, signo, (long)(a ? &to : NULL), (long)&was, sizeof to.mask);
    if (sys_failed(r)) return errno = (int)-r, -1;
    if (!old) return 0;
    memset(old, 0, sizeof *old);
    old->sa_handler = (sighandler_t)(uintptr_t)was.handler;
    old->sa_flags = (int)(was.flags & ~(uint64_t)SA_RESTORER);
    memcpy(&old->sa_mask, &was.mask, sizeof was.mask);
    return 0;
}

EXPORT __attribute__((weak)) int __sigaction(int signo, const struct sigaction *a, struct sigaction *old)
{
    if (!a || !tool_handoff_data.resident) return libc_sigaction(signo, a, old);
    tool_say_limited("the tool cannot change the action for signal %d: in the program, actions are the program's "
                     "(inlay_on_signal sees its signals)",
                     signo);
    return errno = EPERM, -1;
}
EXPORT __attribute__((weak)) int sigaction(int, const struct sigaction *, struct sigaction *)
    __attribute__((alias("__sigaction")));

static void *answer(long r)
{
    if (!sys_failed(r)) return (void *)r;
    errno = (int)-r;
    return MAP_FAILED;
}

#ifndef MAP_32BIT /* not every kernel's */
#define MAP_32BIT 0
#endif

EXPORT void *__mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
    if (!addr && !(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT))) addr = (void *)inl_region_take(size);
    return answer(sys_call(SYS_mmap, (long)addr, (long)size, prot, flags, fd, offset));
}
/* By their symbols: the headers may have made one name of two (_FILE_OFFSET_BITS). */
#define SAME_AS_MMAP64(name, symbol)                                                                                   \
    EXPORT void *name(void *, size_t, int, int, int, off64_t) __asm__(symbol) __attribute__((alias("__mmap64")))
SAME_AS_MMAP64(plain_mmap64, "mmap64");
SAME_AS_MMAP64(internal_mmap, "__mmap");
SAME_AS_MMAP64(plain_mmap, "mmap");

/* A mapping that must move moves within the region too. */
EXPORT void *__mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *fixed = (flags & MREMAP_FIXED) ? va_arg(args, void *) : NULL;
    va_end(args);
    bool may_choose = (flags & MREMAP_MAYMOVE) && !(flags & MREMAP_FIXED) && size > old_size;
    if (!may_choose) return answer(sys_call(SYS_mremap, (long)old, (long)old_size, (long)size, flags, (long)fixed, 0));
    long r = sys_call(SYS_mremap, (long)old, (long)old_size, (long)size, flags & ~MREMAP_MAYMOVE, 0, 0);
    if (r != -ENOMEM) return answer(r);
    void *fresh = __mmap64(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) return fresh;
    r = sys_call(SYS_mremap, (long)old, (long)old_size, (long)size, flags | MREMAP_FIXED, (long)fresh, 0);
    if (sys_failed(r)) sys_call2(SYS_munmap, (long)fresh, (long)size);
    return answer(r);
}
EXPORT void *mremap(void *, size_t, size_t, int, ...) __attribute__((alias("__mremap")));

/* --- writing --- */

static long number(long r) { return sys_failed(r) ? (errno = (int)-r, -1) : r; }

static long writes(long nr, long fd, long a, long b, long c)
{
    return number(tool_handoff_data.resident ? run_call_quietly(nr, fd, a, b, c) : sys_call4(nr, fd, a, b, c));
}

EXPORT __attribute__((weak)) ssize_t __libc_write(int fd, const void *bytes, size_t size)
{
    bool quietly = tool_handoff_data.resident;
    return number(quietly ? run_write_quietly(fd, bytes, size) : sys_call3(SYS_write, fd, (long)bytes, (long)size));
}
EXPORT __attribute__((weak)) ssize_t __write(int, const void *, size_t) __attribute__((alias("__libc_write")));
EXPORT __attribute__((weak)) ssize_t write(int, const void *, size_t) __attribute__((alias("__libc_write")));

EXPORT __attribute__((weak)) ssize_t __writev(int fd, const struct iovec *list, int count)
{
    return writes(SYS_writev, fd, (long)list, count, 0);
}
EXPORT __attribute__((weak)) ssize_t writev(int, const struct iovec *, int) __attribute__((alias("__writev")));

EXPORT __attribute__((weak)) ssize_t __libc_pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    return writes(SYS_pwrite64, fd, (long)bytes, (long)size, at);
}
/* By their symbols, as for mmap. */
#define SAME_AS_PWRITE64(name, symbol)                                                                                 \
    EXPORT __attribute__((weak)) ssize_t name(int, const void *, size_t, off64_t) __asm__(symbol)                      \
        __attribute__((alias("__libc_pwrite64")))
SAME_AS_PWRITE64(internal_libc_pwrite, "__libc_pwrite");
SAME_AS_PWRITE64(internal_pwrite, "__pwrite");
SAME_AS_PWRITE64(internal_pwrite64, "__pwrite64");
SAME_AS_PWRITE64(plain_pwrite, "pwrite");
SAME_AS_PWRITE64(plain_pwrite64, "pwrite64");

EXPORT __attribute__((weak)) int __ftruncate64(int fd, off64_t size)
{
    return (int)writes(SYS_ftruncate, fd, size, 0, 0);
}
#define SAME_AS_FTRUNCATE64(name, symbol)                                                                              \
    EXPORT __attribute__((weak)) int name(int, off64_t) __asm__(symbol) __attribute__((alias("__ftruncate64")))
SAME_AS_FTRUNCATE64(internal_ftruncate, "__ftruncate");
SAME_AS_FTRUNCATE64(plain_ftruncate, "ftruncate");
SAME_AS_FTRUNCATE64(plain_ftruncate64, "ftruncate64");

/* --- files: open and openat are what fopen, C++'s streams and creat are made of as well --- */

static int opened(int folder, const char *path, int flags, mode_t mode)
{
    int fd = (int)number(sys_call4(SYS_openat, folder, (long)path, flags, mode));
    return tool_handoff_data.resident ? resident_hide(fd) : fd;
}

static bool has_mode(int flags) { return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE; }

EXPORT __attribute__((weak)) int __libc_open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = has_mode(flags) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return opened(AT_FDCWD, path, flags, mode);
}

EXPORT __attribute__((weak)) int __libc_openat64(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = has_mode(flags) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return opened(folder, path, flags, mode);
}

EXPORT __attribute__((weak)) int __libc_close(int fd)
{
    return (int)number(tool_handoff_data.resident ? run_fd_close(fd) : sys_call1(SYS_close, fd));
}

/* By their symbols, as for mmap. */
#define SAME_AS(name, symbol, same, ...)                                                                               \
    EXPORT __attribute__((weak)) int name(__VA_ARGS__) __asm__(symbol) __attribute__((alias(same)))
SAME_AS(internal_libc_open, "__libc_open", "__libc_open64", const char *, int, ...);
SAME_AS(internal_open, "__open", "__libc_open64", const char *, int, ...);
SAME_AS(internal_open64, "__open64", "__libc_open64", const char *, int, ...);
SAME_AS(plain_open, "open", "__libc_open64", const char *, int, ...);
SAME_AS(plain_open64, "open64", "__libc_open64", const char *, int, ...);
SAME_AS(internal_openat, "__openat", "__libc_openat64", int, const char *, int, ...);
SAME_AS(internal_openat64, "__openat64", "__libc_openat64", int, const char *, int, ...);
SAME_AS(plain_openat, "openat", "__libc_openat64", int, const char *, int, ...);
SAME_AS(plain_openat64, "openat64", "__libc_openat64", int, const char *, int, ...);
SAME_AS(internal_close, "__close", "__libc_close", int);
SAME_AS(nocancel_close, "__close_nocancel", "__libc_close", int); /* fclose's */
SAME_AS(plain_close, "close", "__libc_close", int);

/* The streams stay the objects that they are; only the descriptor behind them changes. Standard
 * output joins standard error: holding the program's output open would keep the reader of a pipe
 * waiting after the program has closed it. */
void libc_redirect_stdio(int fd)
{
    stdin->_fileno = -1;
    stdout->_fileno = fd;
    stderr->_fileno = fd;
    setvbuf(stdout, NULL, _IOLBF, 0);
}
