/* Single steps on x86-64: the trap flag in the registers that a signal's handler returns to. */
#include <signal.h>
#include <ucontext.h>

#include "moved/private.h"

enum { TRAP_FLAG = 0x100 };

#ifndef TRAP_TRACE
#define TRAP_TRACE 2
#endif

void moved_uc_step(void *uc, bool on)
{
    greg_t *flags = &((ucontext_t *)uc)->uc_mcontext.gregs[REG_EFL];
    if (on) *flags |= TRAP_FLAG;
    else *flags &= ~(greg_t)TRAP_FLAG;
}

bool moved_is_step(const siginfo_t *info) { return info->si_signo == SIGTRAP && info->si_code == TRAP_TRACE; }

bool moved_is_syscall(uint64_t pc)
{
    const uint8_t *at = (const uint8_t *)pc;
    return at[0] == 0x0f && at[1] == 0x05;
}

unsigned moved_fault_back(const siginfo_t *info)
{
    if (info->si_signo == SIGSYS) return 2;
    return info->si_signo == SIGTRAP && info->si_code != TRAP_TRACE ? 1 : 0;
}
