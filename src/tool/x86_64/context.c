/* System calls as the kernel's x86-64 convention has them: number in rax, arguments in rdi, rsi, rdx,
 * r10, r8, r9, result in rax. */
#include "tool/state.h"
#include "isa/x86_64/x86.h"

static const uint8_t args[6] = {X86_RDI, X86_RSI, X86_RDX, X86_R10, X86_R8, X86_R9};

_Static_assert(sizeof(inlay_context) == sizeof(weave_context) &&
                   offsetof(inlay_context, xsave) == offsetof(weave_context, vectors) && (int)INLAY_R15 == (int)X86_R15,
               "the public context is the weaver's");

void tool_syscall_read(const weave_context *c, long nr, inlay_syscall *s)
{
    *s = (inlay_syscall){.number = nr};
    for (int i = 0; i < 6; i++) s->args[i] = (long)c->gpr[args[i]];
}

void tool_syscall_write(weave_context *c, const inlay_syscall *s)
{
    c->gpr[X86_RAX] = (uint64_t)s->number;
    for (int i = 0; i < 6; i++) c->gpr[args[i]] = (uint64_t)s->args[i];
}

long tool_syscall_result(const weave_context *c) { return (long)c->gpr[X86_RAX]; }
void tool_syscall_set_result(weave_context *c, long r) { c->gpr[X86_RAX] = (uint64_t)r; }
