/* The system call of AArch64 Linux; included through base/sys.h only. */
#ifndef INL_BASE_AARCH64_SYSCALL_H
#define INL_BASE_AARCH64_SYSCALL_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/aarch64/absent.h"

static inline long sys_call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
    return x0;
}

static inline long sys_readlink(const char *path, char *out, size_t size)
{
    return sys_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)out, (long)size, 0, 0);
}

/* Until a signal. */
static inline void sys_wait(void) { sys_call(SYS_ppoll, 0, 0, 0, 0, 0, 0); }

/* Tells the processor that this is a spin loop. */
static inline void sys_pause(void) { __asm__ volatile("yield" ::: "memory"); }

#endif
