/* The program's registers where a signal finds the thread in the gate, or at a blocked table of indirect branches. */
#include "jit/jit.h"
#include "jit/x86_64/layout.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

#include <string.h>
#include <ucontext.h>

static bool on_private_stack(const run_thread *t, uint64_t sp)
{
    return sp - (uint64_t)(uintptr_t)t->stack_low <= t->stack_size;
}

void jit_uc_gate_context(const void *uc, run_thread *t, uint64_t tls_base, uint64_t pc, weave_context *out)
{
    uint64_t at = run_uc_pc(uc);
    run_uc_context(uc, t, tls_base, out);
    if (on_private_stack(t, run_sp(out))) run_set_sp(out, t->frame.slot[RUN_RSP]);
    if (at >= (uint64_t)(uintptr_t)jit_gate_flags) out->flags = out->gpr[RUN_R11];
    out->gpr[RUN_RCX] = jit_of(t)->syscall_resume;
    out->pc = pc;
}

/* RCX is the target; RCX and RDX of the program are in their slots. The miss routine's store into the
 * table is the one place where more is: RAX, RBX and the flags. */
void jit_uc_ibl_context(const void *uc, run_thread *t, uint64_t tls_base, weave_context *out)
{
    run_uc_context(uc, t, tls_base, out);
    uint64_t target = out->gpr[RUN_RCX];
    bool storing = run_uc_is_write(uc) && !jit_cache_contains(run_uc_pc(uc));
    run_uc_unspill(t, out, 1u << RUN_RCX | 1u << RUN_RDX | (storing ? 1u << RUN_RAX | 1u << RUN_RBX : 0), storing);
    out->pc = target;
}

/* --- paired calls and returns: what lower.c has written --- */

enum { SLOT = 8, RET = 0xc3, PUSH_ENTRY = 4, WITH_DISPLACEMENT = 8 };
static const uint8_t push_entry[PUSH_ENTRY] = {0x65, 0xff, 0x34, 0xd5}; /* push gs:[disp32 + rdx*8] */
static const uint8_t pop_entry[PUSH_ENTRY] = {0x65, 0x8f, 0x04, 0x25};  /* pop gs:[disp32] */

static bool is_push(uint64_t at)
{
    int32_t field;
    memcpy(&field, (const uint8_t *)at + PUSH_ENTRY, sizeof field);
    return !memcmp((const void *)at, push_entry, PUSH_ENTRY) && field == OFF_IBL;
}

/* The window: instruction at `at` begins there, and none of the program's can look like one of these. */
bool jit_uc_in_return(const void *uc)
{
    uint64_t pc = run_uc_pc(uc);
    return jit_cache_contains(pc) && is_push(pc);
}

static void move(void *uc, int64_t instruction)
{
    greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;
    g[REG_RSP] += SLOT;
    g[REG_RIP] += instruction;
}

void jit_uc_back_in_return(void *uc)
{
    uint64_t pc = run_uc_pc(uc);
    if (jit_cache_contains(pc) && *(const uint8_t *)pc == RET && is_push(pc - WITH_DISPLACEMENT))
        move(uc, -WITH_DISPLACEMENT);
}

bool jit_uc_skip_landing(void *uc)
{
    uint64_t pc = run_uc_pc(uc);
    if (!jit_cache_contains(pc) || memcmp((const void *)pc, pop_entry, PUSH_ENTRY)) return false;
    move(uc, WITH_DISPLACEMENT);
    return true;
}
