/* What the program has set, other than registers, and Inlay's own code would fault by; nobody has to hear of it:
 *
 *   EFLAGS.AC         unaligned accesses fault. The runtime and large analysis routines begin with plain flags;
 *                     snippets and short routines run with the program's, for speed. The instruction is stepped
 *                     over with the check switched off.
 *   PR_TSC_SIGSEGV    rdtsc faults. Its answer is got with the switch on for a moment.
 *
 *   PKRU              protection keys forbid reading code that may be executed. While it is read for translating
 *                     all keys are open; calls made for the program are made with its own.
 *
 * The first two are asked only where the fault is not at an instruction of the program's. For both engines; in a
 * rewritten program, whose masks are the kernel's, not while the program blocks SIGBUS or SIGSEGV: it then dies. */
#include <cpuid.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "base/sys.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

enum { FLAG_TF = 0x100, FLAG_AC = 0x40000, TRAP_GP = 13, TRAP_AC = 17 };

static greg_t *registers(void *uc) { return ((ucontext_t *)uc)->uc_mcontext.gregs; }

static void step_over(run_thread *t, void *uc)
{
    greg_t *g = registers(uc);
    t->unaligned = true;
    t->unaligned_mask = *run_uc_mask(uc);
    *run_uc_mask(uc) |= ~RUN_FAULTS;
    *run_uc_mask(uc) &= ~RUN_BIT(SIGTRAP);
    g[REG_EFL] = (g[REG_EFL] & ~(greg_t)FLAG_AC) | FLAG_TF;
}

bool run_stepped_over(run_thread *t, int signo, const siginfo_t *info, void *uc)
{
    if (!t->unaligned || signo != SIGTRAP || !run_uc_is_step(info, uc)) return false;
    greg_t *g = registers(uc);
    t->unaligned = false;
    *run_uc_mask(uc) = t->unaligned_mask;
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

static bool read_time_stamp(run_thread *t, void *uc)
{
    greg_t *g = registers(uc);
    unsigned length = time_stamp(run_uc_pc(uc)), processor = 0;
    if (!length || sys_call2(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE)) return false;
    uint64_t now = length == 2 ? run_cycles() : __builtin_ia32_rdtscp(&processor);
    sys_call2(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
    t->no_cycles = true;
    g[REG_RAX] = (greg_t)(uint32_t)now;
    g[REG_RDX] = (greg_t)(now >> 32);
    if (length > 2) g[REG_RCX] = (greg_t)processor;
    g[REG_RIP] += length;
    return true;
}

bool run_settings_fault(run_thread *t, int signo, void *uc)
{
    const greg_t *g = registers(uc);
    if (signo == SIGSEGV && g[REG_TRAPNO] == TRAP_GP) return read_time_stamp(t, uc);
    if (signo != SIGBUS || g[REG_TRAPNO] != TRAP_AC || !(g[REG_EFL] & FLAG_AC)) return false;
    step_over(t, uc);
    return true;
}

/* --- protection keys --- */

static bool has_keys(void)
{
    static int known; /* 1: no, 2: yes */
    unsigned a, b, c = 0, d;
    const unsigned ospke = 1u << 4;
    if (!known) known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & ospke ? 2 : 1;
    return known == 2;
}

static void set_rights(uint32_t pkru)
{
    __asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(pkru), "c"(0), "d"(0) : "memory"); /* wrpkru */
}

uint32_t run_rights_open(void)
{
    uint32_t pkru = 0, zero;
    if (!has_keys()) return 0;
    __asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(pkru), "=d"(zero) : "c"(0)); /* rdpkru */
    if (pkru) set_rights(0);
    return pkru;
}

void run_rights_close(uint32_t rights)
{
    if (rights) set_rights(rights);
}
