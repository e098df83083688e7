/* Faults that Inlay's own code raises because of what the program has set, and that nobody has to hear of:
 *
 *   EFLAGS.AC         unaligned accesses fault. The runtime and large analysis routines begin with plain flags;
 *                     snippets and short routines run with the program's, for speed. The instruction is stepped
 *                     over with the check switched off.
 *   PR_TSC_SIGSEGV    rdtsc faults. Its answer is got with the switch on for a moment.
 *
 * Both are asked only where the fault is not at an instruction of the program's. For both engines; in a rewritten
 * program, whose masks are the kernel's, not while the program blocks SIGBUS or SIGSEGV: it then dies. */
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/sys.h"
#include "jit/kernel.h"
#include "jit/x86_64/abi.h"

enum { FLAG_TF = 0x100, FLAG_AC = 0x40000, TRAP_GP = 13, TRAP_AC = 17, STEPPED = 2 /* TRAP_TRACE */ };

static greg_t *registers(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.gregs; }

static void step_over(jit_thread *t, void *uc)
{
    greg_t *g = registers(uc);
    t->unaligned = true;
    t->unaligned_mask = *jit_uc_mask(uc);
    *jit_uc_mask(uc) |= ~JIT_FAULTS;
    *jit_uc_mask(uc) &= ~JIT_BIT(SIGTRAP);
    g[REG_EFL] = (g[REG_EFL] & ~(greg_t)FLAG_AC) | FLAG_TF;
}

bool jit_stepped_over(jit_thread *t, int signo, const siginfo_t *info, void *uc)
{
    if (!t->unaligned || signo != SIGTRAP || info->si_code != STEPPED) return false;
    greg_t *g = registers(uc);
    t->unaligned = false;
    *jit_uc_mask(uc) = t->unaligned_mask;
    g[REG_EFL] = (g[REG_EFL] & ~(greg_t)FLAG_TF) | FLAG_AC;
    return true;
}

/* Bytes of the rdtsc or rdtscp there, or 0. */
static unsigned time_stamp(uint64_t pc)
{
    static const uint8_t rdtsc[] = {0x0f, 0x31}, rdtscp[] = {0x0f, 0x01, 0xf9};
    const void *code = (const void *)(uintptr_t)pc; /* Inlay's own, and it has just been run */
    if (!memcmp(code, rdtsc, sizeof rdtsc)) return sizeof rdtsc;
    return memcmp(code, rdtscp, sizeof rdtscp) ? 0 : sizeof rdtscp;
}

static bool read_time_stamp(jit_thread *t, void *uc)
{
    greg_t *g = registers(uc);
    unsigned length = time_stamp(jit_uc_pc(uc)), processor = 0;
    if (!length || sys_call2(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE)) return false;
    uint64_t now = length == 2 ? jit_cycles() : __builtin_ia32_rdtscp(&processor);
    sys_call2(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
    t->no_cycles = true;
    g[REG_RAX] = (greg_t)(uint32_t)now;
    g[REG_RDX] = (greg_t)(now >> 32);
    if (length > 2) g[REG_RCX] = (greg_t)processor;
    g[REG_RIP] += length;
    return true;
}

bool jit_settings_fault(jit_thread *t, int signo, void *uc)
{
    const greg_t *g = registers(uc);
    if (signo == SIGSEGV && g[REG_TRAPNO] == TRAP_GP) return read_time_stamp(t, uc);
    if (signo != SIGBUS || g[REG_TRAPNO] != TRAP_AC || !(g[REG_EFL] & FLAG_AC)) return false;
    step_over(t, uc);
    return true;
}
