/* Which call restart_syscall goes on with. The kernel keeps it of four kinds (nanosleep, clock_nanosleep, poll, futex)
 * and tells of none which one it is. Mostly the number stands in the code in front of the call. Where one procedure
 * makes all blocking calls (the C library's, since glibc 2.41) it has got the number as an argument, which is on its
 * stack still, or on its caller's: then whatever the registers hold must be arguments of such a call as well. */
#include "live/remote.h"
#include "run/x86_64/abi.h"

#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

enum { MOV_EAX = 0xb8, MOV_BYTES = 5, STACK_WORDS = 16 };

static bool is_readable(remote *r, uint64_t at, size_t size)
{
    uint8_t there[sizeof(struct timespec)];
    return remote_read(r, at, there, size, &(inl_error){0}) == INL_OK;
}

static bool is_span(remote *r, uint64_t at)
{
    struct timespec t;
    return remote_read(r, at, &t, sizeof t, &(inl_error){0}) == INL_OK && t.tv_sec >= 0 && t.tv_nsec >= 0 &&
           t.tv_nsec < 1000000000;
}

static bool is_nowhere_or_span(remote *r, uint64_t at) { return !at || is_readable(r, at, sizeof(struct timespec)); }

static bool is_nanosleep(remote *r) { return is_span(r, r->regs.rdi) && is_nowhere_or_span(r, r->regs.rsi); }

/* Processes' and threads' clocks have negative numbers. */
static bool is_clock_nanosleep(remote *r)
{
    const int clock = (int)r->regs.rdi, flags = (int)r->regs.rsi;
    return clock <= CLOCK_TAI && !(flags & TIMER_ABSTIME) && is_span(r, r->regs.rdx) &&
           is_nowhere_or_span(r, r->regs.r10);
}

static bool is_poll(remote *r)
{
    const uint32_t count = (uint32_t)r->regs.rsi;
    const uint64_t last = r->regs.rdi + (count - 1ull) * sizeof(struct pollfd);
    if ((int)r->regs.rdx <= 0) return false;
    return !count ||
           (is_readable(r, r->regs.rdi, sizeof(struct pollfd)) && is_readable(r, last, sizeof(struct pollfd)));
}

static bool is_futex(remote *r)
{
    const int command = (int)r->regs.rsi & FUTEX_CMD_MASK;
    return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && r->regs.rdi % sizeof(uint32_t) == 0 &&
           is_readable(r, r->regs.rdi, sizeof(uint32_t)) && is_span(r, r->regs.r10);
}

static const struct {
    long nr;
    bool (*fits)(remote *);
} kinds[] = {
    {SYS_nanosleep, is_nanosleep},
    {SYS_clock_nanosleep, is_clock_nanosleep},
    {SYS_poll, is_poll},
    {SYS_futex, is_futex},
};

/* Two numbers that both fit say nothing. */
static long on_stack(remote *r)
{
    uint64_t words[STACK_WORDS];
    long found = SYS_restart_syscall;
    if (remote_read(r, r->regs.rsp, words, sizeof words, &(inl_error){0}) != INL_OK) return found;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t w = 0;
        while (w < STACK_WORDS && (uint32_t)words[w] != kinds[k].nr) w++;
        if (w == STACK_WORDS || !kinds[k].fits(r)) continue;
        if (found != SYS_restart_syscall) return SYS_restart_syscall;
        found = kinds[k].nr;
    }
    return found;
}

/* mov $nr, %eax; syscall */
long remote_asked_for(remote *r)
{
    uint8_t code[MOV_BYTES] = {0};
    int32_t nr;
    remote_read(r, r->regs.rip - RUN_SYSCALL_BYTES - MOV_BYTES, code, sizeof code, &(inl_error){0});
    memcpy(&nr, code + 1, sizeof nr);
    return *code == MOV_EAX ? nr : on_stack(r);
}
