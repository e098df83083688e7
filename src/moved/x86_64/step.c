/* Single steps on x86-64: the trap flag in the registers that a signal's handler returns to. */
#include <signal.h>
#include <ucontext.h>

#include "moved/private.h"
#include "run/x86_64/abi.h"

enum { TRAP_FLAG = 0x100 };

#ifndef TRAP_TRACE
#define TRAP_TRACE 2
#endif

bool moved_uc_step(run_thread *t, void *uc, bool on)
{
    (void)t;
    greg_t *flags = &((ucontext_t *)uc)->uc_mcontext.gregs[REG_EFL];
    if (on) *flags |= TRAP_FLAG;
    else *flags &= ~(greg_t)TRAP_FLAG;
    return true;
}

bool moved_uc_steps(const void *uc) { return ((const ucontext_t *)uc)->uc_mcontext.gregs[REG_EFL] & TRAP_FLAG; }

bool moved_sets_flags(uint64_t pc)
{
    enum { POPF = 0x9d };
    return *(const uint8_t *)pc == POPF;
}

/* An instruction that has put the flags on the stack has put Inlay's trap flag there too, which the one that takes them
 * from there would set long after. */
static void clean_pushed(const run_thread *t, const void *uc)
{
    enum { PUSHF = 0x9c };
    const greg_t *g = ((const ucontext_t *)uc)->uc_mcontext.gregs;
    uint64_t at = moved_of(t)->last;
    if (!at || (uint64_t)g[REG_RIP] != at + 1 || !moved_at(at) || *(const uint8_t *)at != PUSHF) return;
    *(uint64_t *)g[REG_RSP] &= ~(uint64_t)TRAP_FLAG;
}

moved_stepped moved_step_ended(run_thread *t, siginfo_t *info, void *uc)
{
    bool ours = t->pending.present || moved_of(t)->stepped;
    bool told_wrong = t->pending.present && !moved_is_step(info) && run_uc_is_step(info, uc);
    if (told_wrong && !run_at_int1(moved_of(t)->last)) info->si_code = TRAP_TRACE;
    if (!moved_is_step(info) || !ours) return MOVED_NO_STEP;
    if (t->pending.present) clean_pushed(t, uc);
    return MOVED_STEP_ENDED;
}

/* By its return address, which its call has pushed below its arguments. */
void moved_stop_after_routine(run_thread *t)
{
    uint64_t *ret = (uint64_t *)t->frame.tool_stack - t->frame.in_tool;
    if (!moved_at(*ret)) return;
    t->leave_arg = *ret;
    *ret = (uint64_t)(uintptr_t)moved_after_routine;
}

bool moved_is_step(const siginfo_t *info) { return info->si_signo == SIGTRAP && info->si_code == TRAP_TRACE; }

uint64_t moved_jumps_to(uint64_t pc)
{
    enum { JUMP = 0xe9, SIZE = 5 };
    int32_t distance;
    const uint8_t *at = (const uint8_t *)pc;
    const moved_image *i = moved_image_at(pc);
    if (!i || moved_mapped_from(i, pc) < SIZE || *at != JUMP) return 0;
    memcpy(&distance, at + 1, sizeof distance);
    uint64_t to = pc + SIZE + (uint64_t)(int64_t)distance;
    return moved_at(to) ? to : 0;
}

bool moved_is_syscall(uint64_t pc)
{
    const uint8_t *at = (const uint8_t *)pc;
    return at[0] == 0x0f && at[1] == 0x05;
}

unsigned moved_fault_back(const siginfo_t *info, const void *uc)
{
    if (info->si_signo == SIGSYS) return 2;
    return info->si_signo == SIGTRAP && !moved_is_step(info) && run_uc_is_behind(uc, SIGTRAP) ? 1 : 0;
}
