/* From the registers that the kernel hands to Inlay's handler to the program's own: which of them are
 * in the thread's frame instead depends on where the thread was. */
#include <string.h>

#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigframe.h"

enum { DEBUG = 1, OVERFLOW = 4, PAGE_FAULT = 14, ERR_WRITE = 2 };
enum { REX = 0x40, INT3 = 0xcc, INT = 0xcd, INT1 = 0xf1 };

static greg_t *registers(const void *uc) { return ((ucontext_t *)(uintptr_t)uc)->uc_mcontext.gregs; }

uint64_t run_uc_pc(const void *uc) { return (uint64_t)registers(uc)[REG_RIP]; }

uint64_t run_uc_sp(const void *uc) { return (uint64_t)registers(uc)[REG_RSP]; }

void run_uc_set_sp(void *uc, uint64_t sp) { registers(uc)[REG_RSP] = (greg_t)sp; }

void run_uc_set_pc(void *uc, uint64_t pc)
{
    enum { DF = 0x400, TF = 0x100 };
    greg_t *g = registers(uc);
    g[REG_RIP] = (greg_t)pc;
    g[REG_EFL] &= ~(greg_t)(DF | TF);
}

long run_uc_answer(const void *uc) { return (long)registers(uc)[REG_RAX]; }

void run_uc_set_answer(void *uc, long answer) { registers(uc)[REG_RAX] = answer; }

uint64_t *run_uc_mask(void *uc) { return (uint64_t *)&((ucontext_t *)uc)->uc_sigmask; }

bool run_uc_is_write(const void *uc)
{
    const greg_t *g = registers(uc);
    return g[REG_TRAPNO] == PAGE_FAULT && g[REG_ERR] & ERR_WRITE;
}

void run_uc_keep_trap(run_thread *t, const void *uc)
{
    const greg_t *g = registers(uc);
    t->trapno = (uint64_t)g[REG_TRAPNO];
    t->trap_err = (uint64_t)g[REG_ERR];
    t->trap_addr = (uint64_t)g[REG_CR2];
}

void run_uc_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out)
{
    greg_t *g = registers(uc);
    for (unsigned r = 0; r < 16; r++) out->gpr[r] = (uint64_t)g[run_frame_place(r)];
    out->pc = (uint64_t)g[REG_RIP];
    out->flags = (uint64_t)g[REG_EFL];
    out->tls_base = tls_base;
    out->gs_base = t->frame.app_gs_base;
}

static uint8_t byte_at(uint64_t at)
{
    uint8_t byte = 0;
    run_read(&byte, at, 1);
    return byte;
}

/* The opcode of an instruction of one byte, behind whatever prefixes. */
static uint64_t opcode_at(uint64_t at)
{
    static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3};
    for (uint64_t end = at + ISA_MAX_INSN; at < end; at++) {
        uint8_t byte = byte_at(at);
        if ((byte & 0xf0) != REX && !memchr(prefixes, byte, sizeof prefixes)) break;
    }
    return at;
}

bool run_at_int1(uint64_t at) { return byte_at(opcode_at(at)) == INT1; }

/* int1 is an instruction that traps, but not every hypervisor moves the counter behind it. */
bool run_uc_is_behind(const void *uc, int signo)
{
    const greg_t *g = registers(uc);
    if (signo == SIGTRAP) return g[REG_TRAPNO] != DEBUG || !run_at_int1((uint64_t)g[REG_RIP]);
    return signo == SIGSEGV && g[REG_TRAPNO] == OVERFLOW;
}

/* The processor says so (DR6), but some hypervisors lose that, once in some 100,000 steps, and the kernel takes the
 * trap for that of int1. */
bool run_uc_is_step(const siginfo_t *info, const void *uc)
{
    enum { TF = 0x100, OF_STEP = 2 /* TRAP_TRACE */, OF_INT1 = 1 /* TRAP_BRKPT */ };
    const greg_t *g = registers(uc);
    if (info->si_signo != SIGTRAP) return false;
    bool lost = info->si_code == OF_INT1 && g[REG_TRAPNO] == DEBUG && g[REG_EFL] & TF;
    return info->si_code == OF_STEP || lost;
}

bool run_uc_is_debug(int signo, const void *uc) { return signo == SIGTRAP && registers(uc)[REG_TRAPNO] == DEBUG; }

uint64_t run_after_trap(uint64_t app)
{
    uint64_t at = opcode_at(app);
    uint8_t opcode = byte_at(at);
    return opcode == INT3 || opcode == INT1 ? at + 1 : opcode == INT ? at + 2 : app;
}

void run_uc_unspill(const run_thread *t, weave_context *c, isa_regs spilled, bool flags_saved)
{
    if (spilled & WEAVE_AHEAD) c->gpr[RUN_RSI] -= t->frame.ahead[0], c->gpr[RUN_RDI] -= t->frame.ahead[1];
    for (int r = 0; r < 16; r++)
        if ((spilled & ~WEAVE_AHEAD) >> r & 1) c->gpr[r] = t->frame.slot[r];
    if (flags_saved) c->flags = run_flags_unpacked(c->flags, t->frame.flags);
}
