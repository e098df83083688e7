/* A thread's registers by the numbers that unwind tables of AArch64 have for them. */
#include "tool/trace.h"

#include <ucontext.h>

enum { GENERAL = 31 };
const unsigned trace_stack = 31, trace_return = 30;

void trace_of_context(const void *uc, trace_registers *r)
{
    const mcontext_t *m = &((const ucontext_t *)uc)->uc_mcontext;
    *r = (trace_registers){.pc = m->pc};
    for (unsigned i = 0; i < GENERAL; i++) r->value[i] = m->regs[i];
    r->value[trace_stack] = m->sp;
}

/* A call has just put it into the link register. */
bool trace_leave_nowhere(trace_registers *r)
{
    r->pc = r->value[trace_return];
    return r->pc != 0;
}
