/* What of the boot code (elf/boot) C does not say. */
#ifndef INL_ELF_X86_64_BOOT_H
#define INL_ELF_X86_64_BOOT_H

#include <stddef.h>
#include <stdint.h>

static inline void boot_copy(void *to, const void *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static inline uint64_t boot_thread_pointer(void)
{
    uint64_t at;
    __asm__ volatile("rdfsbase %0" : "=r"(at));
    return at;
}

#endif
