/* The C library may not have its thread-local storage, where that is dear to have (run/x86_64/border.S): who is about
 * to ask it for something that could need that, or calls code of the tool's, says so first. What touches neither, nor
 * calls what does, need not: memory is copied and allocated, and system calls are made by base/sys.h, without. */
#ifndef INL_BASE_LIBC_READY_H
#define INL_BASE_LIBC_READY_H

extern void (*inl_libc_wanted)(void); /* NULL: it always has it. Set once, before there are threads. */

static inline void inl_libc_ready(void)
{
    if (__builtin_expect(inl_libc_wanted != 0, 0)) inl_libc_wanted();
}

#endif
