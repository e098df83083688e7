/* AArch64 has no arch_prctl: the thread pointer is a register that programs write themselves. */
#include "moved/private.h"

#include <errno.h>

long moved_arch_prctl(run_thread *t, weave_context *c)
{
    (void)t, (void)c;
    return -ENOSYS;
}

uint64_t moved_goes_native(run_thread *t, const weave_context *c)
{
    (void)t, (void)c;
    return 0;
}

const char *moved_owner_refusal(void) { return NULL; }
