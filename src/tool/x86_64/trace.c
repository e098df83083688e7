/* A thread's registers by the numbers that unwind tables of x86-64 have for them. */
#include "tool/trace.h"

#include <ucontext.h>

const unsigned trace_stack = 7, trace_return = 16;

void trace_of_context(const void *uc, trace_registers *r)
{
    static const uint8_t places[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t *g = ((const ucontext_t *)uc)->uc_mcontext.gregs;
    *r = (trace_registers){.pc = (uint64_t)g[REG_RIP]};
    for (unsigned i = 0; i < sizeof places; i++) r->value[i] = (uint64_t)g[places[i]];
}

/* A call has just put it on the stack. */
bool trace_leave_nowhere(trace_registers *r)
{
    uint64_t *sp = &r->value[trace_stack];
    if (!trace_read(&r->pc, *sp, sizeof r->pc)) return false;
    *sp += sizeof r->pc;
    return true;
}
