/* What of the boot code (elf/boot) C does not say. */
#ifndef INL_ELF_AARCH64_BOOT_H
#define INL_ELF_AARCH64_BOOT_H

#include <stddef.h>
#include <stdint.h>

static inline void boot_copy(void *to, const void *from, size_t n)
{
    char *d = to;
    const char *s = from;
    for (; n >= 8 && !(((uintptr_t)d | (uintptr_t)s) & 7); n -= 8, d += 8, s += 8)
        *(volatile uint64_t *)d = *(const uint64_t *)s;
    while (n--) *(volatile char *)d++ = *s++;
}

/* 0 where the program has not set it yet. */
static inline uint64_t boot_thread_pointer(void)
{
    uint64_t at;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(at));
    return at;
}

/* What signals' handlers return to; 0: the tool has that. */
static inline uint64_t boot_return_at(void)
{
    extern const char boot_return[] __attribute__((visibility("hidden"))); /* start.S */
    return (uint64_t)(uintptr_t)boot_return + 4;
}

/* Why the tool cannot run on this processor under this kernel; NULL: it can. */
static inline const char *boot_lacks(uint64_t hwcap2)
{
    (void)hwcap2;
    return NULL;
}

#endif
