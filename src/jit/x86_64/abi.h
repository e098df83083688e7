/* How a system call's arguments and answer lie in the program's registers on x86-64. */
#ifndef INL_JIT_X86_64_ABI_H
#define INL_JIT_X86_64_ABI_H

#include "jit/thread.h"
#include "weave/x86_64/frame.h"

#include <string.h>

/* clang-format off */
enum {
    JIT_RAX, JIT_RCX, JIT_RDX, JIT_RBX, JIT_RSP, JIT_RBP, JIT_RSI, JIT_RDI,
    JIT_R8, JIT_R9, JIT_R10, JIT_R11,
    JIT_SYSCALL_BYTES = 2,
    JIT_ELF_MACHINE = 62, /* EM_X86_64 */
};
/* clang-format on */
#define JIT_AUDIT_ARCH 0xc000003eu /* AUDIT_ARCH_X86_64 */

static inline uint64_t jit_arg(const weave_context *c, int i)
{
    static const uint8_t registers[6] = {JIT_RDI, JIT_RSI, JIT_RDX, JIT_R10, JIT_R8, JIT_R9};
    return c->gpr[registers[i]];
}
static inline long jit_number(const weave_context *c) { return (long)c->gpr[JIT_RAX]; }
static inline uint64_t jit_sp(const weave_context *c) { return c->gpr[JIT_RSP]; }
static inline void jit_set_sp(weave_context *c, uint64_t sp) { c->gpr[JIT_RSP] = sp; }
static inline void jit_set_call(weave_context *c, long nr, long a, long b, long d)
{
    c->gpr[JIT_RAX] = (uint64_t)nr;
    c->gpr[JIT_RDI] = (uint64_t)a;
    c->gpr[JIT_RSI] = (uint64_t)b;
    c->gpr[JIT_RDX] = (uint64_t)d;
}
static inline void jit_set_answer(weave_context *c, long answer) { c->gpr[JIT_RAX] = (uint64_t)answer; }
/* What the instruction itself leaves behind: RCX and R11. */
static inline void jit_set_clobbers(weave_context *c)
{
    c->gpr[JIT_RCX] = c->pc;
    c->gpr[JIT_R11] = c->flags;
}
static inline void jit_args(const weave_context *c, uint64_t args[6])
{
    for (int i = 0; i < 6; i++) args[i] = jit_arg(c, i);
}
/* The registers of the call that is being made, where the gate puts those of its calls. */
static inline void jit_call_keep(jit_thread *t, const weave_context *c)
{
    memcpy(t->frame.slot, c->gpr, sizeof t->frame.slot);
}
/* Its number; the arguments go to `args`. */
static inline long jit_call_made(const jit_thread *t, uint64_t args[6])
{
    weave_context c;
    memcpy(c.gpr, t->frame.slot, sizeof c.gpr);
    jit_args(&c, args);
    return jit_number(&c);
}
/* The time-stamp counter. */
static inline uint64_t jit_cycles(void) { return __builtin_ia32_rdtsc(); }
/* FS base of the running code. */
static inline uint64_t jit_fs_base(void)
{
    uint64_t base;
    __asm__ volatile("rdfsbase %0" : "=r"(base));
    return base;
}

#endif
