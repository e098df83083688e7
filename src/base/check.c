/* The end of a process in which a check has failed: said in one piece, without the C library's streams; the signal's
 * action is the kernel's own, whatever the program has set. */
#include "base/check.h"
#include "base/libc_ready.h"
#include "base/log.h"
#include "base/sys.h"

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>

bool inl_debug;

void inl_check_failed(const char *file, int line, const char *fmt, ...)
{
    char text[512];
    inl_libc_ready();
    int n = snprintf(text, sizeof text, "inlay: internal error at %s:%d: ", file, line);
    va_list args;
    va_start(args, fmt);
    n += vsnprintf(text + n, sizeof text - (size_t)n, fmt, args);
    va_end(args);
    if (n > (int)sizeof text - 2) n = sizeof text - 2;
    text[n++] = '\n';
    sys_call3(SYS_write, inl_log_fd, (long)text, n);
    uint64_t action[4] = {0}, mask = 1ull << (SIGABRT - 1);
    sys_call4(SYS_rt_sigaction, SIGABRT, (long)action, 0, sizeof mask);
    sys_call4(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, 0, sizeof mask);
    sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), SIGABRT);
    for (;;) sys_call1(SYS_exit_group, 134);
}
