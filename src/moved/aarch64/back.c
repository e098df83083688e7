/* What the C library and the kernel keep of addresses on AArch64. */
#include "moved/private.h"

/* It lies in a variable of the dynamic linker's, which programs that are linked statically do not have. */
uint64_t moved_pointer_guard(uint64_t tls_base)
{
    (void)tls_base;
    return 0;
}

/* It is in the link register, or in a frame record, and belongs to the kernel's frame in front of that. */
uint64_t moved_restorer_of(const uint64_t *word, uint64_t high)
{
    (void)word, (void)high;
    return 0;
}

/* There is none: the block is found by a word behind the thread pointer. */
uint64_t moved_block_register(const run_thread *t)
{
    (void)t;
    return 0;
}
