/* What the C library and the kernel keep of addresses on x86-64. */
#include "moved/private.h"
#include "run/kernel.h"
#include "run/x86_64/sigframe.h"

#include <string.h>

/* glibc's, of all threads the same; other libraries hide nothing, and what this makes of their words is none. */
uint64_t moved_pointer_guard(uint64_t tls_base)
{
    enum { AT = 0x30 };
    uint64_t guard = 0;
    return tls_base && run_read(&guard, tls_base + AT, sizeof guard) ? guard : 0;
}

uint64_t moved_restorer_of(const uint64_t *word, uint64_t high)
{
    siginfo_t info;
    if (high - (uint64_t)(uintptr_t)word < RUN_FRAME_SIZE) return 0;
    memcpy(&info, (const char *)word + RUN_FRAME_INFO, sizeof info);
    if (info.si_signo < 1 || info.si_signo > 64) return 0;
    const run_action *a = &run_here.signals->action[info.si_signo];
    return a->flags & SA_RESTORER ? a->restorer : 0;
}

uint64_t moved_block_register(const run_thread *t) { return t->frame.app_gs_base; }
