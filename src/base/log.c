/* One line is formatted on the stack and handed to the kernel in one write(2), made without the C
 * library's wrapper, so that it neither changes errno nor waits for a lock that the interrupted
 * code may hold. A line that is too long is cut. */
#include "base/log.h"
#include "base/libc_ready.h"

#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"

uint32_t inl_log_mask;
int inl_log_fd = 2;

static const struct {
    const char *name, *help;
} domains[INL_LOG_DOMAINS] = {
    [INL_LOG_INJECT] = {"inject", "placing a tool in a process, and its start"},
    [INL_LOG_IMAGE] = {"image", "files and modules that are read, mapped or unmapped"},
    [INL_LOG_TRANSLATE] = {"translate", "blocks that are decoded and translated"},
    [INL_LOG_CACHE] = {"cache", "code memory: placement, links, flushes"},
    [INL_LOG_SYSCALL] = {"syscall", "system calls that are seen or emulated"},
    [INL_LOG_SIGNAL] = {"signal", "signals that arrive, are held back or delivered"},
    [INL_LOG_THREAD] = {"thread", "threads and processes that start, stop or end"},
};

static uint32_t mask_of(const char *name, size_t n)
{
    if (n == 3 && !memcmp(name, "all", 3)) return (1u << INL_LOG_DOMAINS) - 1;
    for (unsigned d = 0; d < INL_LOG_DOMAINS; d++)
        if (strlen(domains[d].name) == n && !memcmp(domains[d].name, name, n)) return 1u << d;
    return 0;
}

bool inl_log_enable(const char *names)
{
    uint32_t mask = 0;
    while (*names) {
        size_t n = strcspn(names, ",");
        uint32_t one = mask_of(names, n);
        if (!one && n) return false;
        mask |= one;
        names += n + (names[n] == ',');
    }
    inl_log_mask |= mask;
    return true;
}

void inl_log_list(FILE *out)
{
    for (unsigned d = 0; d < INL_LOG_DOMAINS; d++) fprintf(out, "  %-10s %s\n", domains[d].name, domains[d].help);
    fprintf(out, "  %-10s all of them\n", "all");
}

void inl_log_write(inl_log_domain d, const char *fmt, ...)
{
    char line[1024];
    inl_libc_ready();
    int head = snprintf(line, sizeof line, "inlay %ld %s: ", sys_call0(SYS_gettid),
                        (unsigned)d < INL_LOG_DOMAINS ? domains[d].name : "?");
    size_t n = (size_t)head, room = sizeof line - 1 - n; /* the newline's place is kept */
    va_list args;
    va_start(args, fmt);
    int body = vsnprintf(line + n, room, fmt, args);
    va_end(args);
    if (body > 0) n += (size_t)body < room ? (size_t)body : room - 1;
    line[n++] = '\n';
    sys_call3(SYS_write, inl_log_fd, (long)line, (long)n);
}
