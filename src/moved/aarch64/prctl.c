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

/* There it is made by the gate itself: an exec of a rewritten program is one without the tool. */
uint64_t moved_call_again(void) { return (uint64_t)(uintptr_t)moved_gate_pass; }

const char *moved_owner_refusal(void) { return NULL; }
