/* System calls as the kernel's AArch64 convention has them: number in x8, arguments in x0 to x5, result in x0. */
#include "tool/state.h"

#include <stddef.h>

_Static_assert(sizeof(inlay_context) == sizeof(weave_context) &&
                   offsetof(inlay_context, vectors) == offsetof(weave_context, vectors) &&
                   offsetof(inlay_context, pc) == INLAY_XSP * 8 + 8,
               "the public context is the weaver's");

void tool_syscall_read(const weave_context *c, long nr, inlay_syscall *s)
{
    *s = (inlay_syscall){.number = nr};
    for (int i = 0; i < 6; i++) s->args[i] = (long)c->gpr[INLAY_X0 + i];
}

void tool_syscall_write(weave_context *c, const inlay_syscall *s)
{
    c->gpr[INLAY_X8] = (uint64_t)s->number;
    for (int i = 0; i < 6; i++) c->gpr[INLAY_X0 + i] = (uint64_t)s->args[i];
}

long tool_syscall_result(const weave_context *c) { return (long)c->gpr[INLAY_X0]; }
void tool_syscall_set_result(weave_context *c, long r) { c->gpr[INLAY_X0] = (uint64_t)r; }
