/* System calls without the C library: no errno, no thread-local storage, no cancellation point, so
 * that they may be made on any thread at any time. The answer is the kernel's own: -errno on
 * failure. Numbers come from <sys/syscall.h>. */
#ifndef INL_BASE_SYS_H
#define INL_BASE_SYS_H

#include <stdbool.h>

/* Calls that an instruction set's table lacks have numbers from here on; who fills a table by number leaves them out.
 */
enum { SYS_ABSENT = 0xff00 };

#if defined __x86_64__
#include "base/x86_64/syscall.h"
#elif defined __aarch64__
#include "base/aarch64/syscall.h"
#else
#error "no system call convention known for this architecture"
#endif

/* True when an answer of sys_call is an error number in disguise. */
static inline bool sys_failed(long answer) { return (unsigned long)answer > -4096ul; }

static inline long sys_call0(long nr) { return sys_call(nr, 0, 0, 0, 0, 0, 0); }
static inline long sys_call1(long nr, long a) { return sys_call(nr, a, 0, 0, 0, 0, 0); }
static inline long sys_call2(long nr, long a, long b) { return sys_call(nr, a, b, 0, 0, 0, 0); }
static inline long sys_call3(long nr, long a, long b, long c) { return sys_call(nr, a, b, c, 0, 0, 0); }
static inline long sys_call4(long nr, long a, long b, long c, long d) { return sys_call(nr, a, b, c, d, 0, 0); }

#endif
