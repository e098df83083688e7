/* What of the boot code (elf/boot) C does not say. */
#ifndef INL_ELF_X86_64_BOOT_H
#define INL_ELF_X86_64_BOOT_H

#include "isa/x86_64/bases.h"

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

static inline uint64_t boot_return_at(void)
{
    extern const char boot_return[] __attribute__((visibility("hidden"))); /* start.S */
    return (uint64_t)(uintptr_t)boot_return + 1;
}

/* Why the tool cannot run on this processor under this kernel; NULL: it can. */
static inline const char *boot_lacks(uint64_t hwcap2)
{
    return x86_bases_of(hwcap2) != X86_BASES_NOT
               ? NULL
               : "the processor or kernel lacks FSGSBASE (Linux 5.9 or later is needed)";
}

#endif
