/* The system call of x86-64 Linux; included through base/sys.h only. */
#ifndef INL_BASE_X86_64_SYSCALL_H
#define INL_BASE_X86_64_SYSCALL_H

#include <stddef.h>
#include <sys/syscall.h>

static inline long sys_call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return answer;
}

static inline long sys_readlink(const char *path, char *out, size_t size)
{
    return sys_call(SYS_readlink, (long)path, (long)out, (long)size, 0, 0, 0);
}

/* Until a signal. */
static inline void sys_wait(void) { sys_call(SYS_pause, 0, 0, 0, 0, 0, 0); }

/* Tells the processor that this is a spin loop. */
static inline void sys_pause(void) { __asm__ volatile("pause" ::: "memory"); }

#endif
