/* How a system call's arguments and answer lie in the program's registers on x86-64. */
#ifndef INL_RUN_X86_64_ABI_H
#define INL_RUN_X86_64_ABI_H

#include "isa/isa.h"
#include "isa/x86_64/bases.h"
#include "run/thread.h"
#include "weave/x86_64/frame.h"

#include <string.h>

/* clang-format off */
enum {
    RUN_RAX, RUN_RCX, RUN_RDX, RUN_RBX, RUN_RSP, RUN_RBP, RUN_RSI, RUN_RDI,
    RUN_R8, RUN_R9, RUN_R10, RUN_R11,
    RUN_SYSCALL_BYTES = 2,
    RUN_ELF_MACHINE = 62, /* EM_X86_64 */
};
/* Arguments of clone that other architectures have in another order. */
enum { RUN_CLONE_CHILD_TID = 3, RUN_CLONE_TLS = 4 };
enum { RUN_LEAST_ALTSTACK = 2048 }; /* the kernel takes no smaller one */
/* Where a procedure returns to at its return instruction, which is then over. */
static inline uint64_t run_return_take(weave_context *c)
{
    uint64_t to = *(const uint64_t *)c->gpr[RUN_RSP];
    c->gpr[RUN_RSP] += sizeof to;
    return to;
}
enum { RUN_HANDLER_POPS = 8 };      /* bytes of a signal's frame, when the handler has returned */
/* clang-format on */
#define RUN_AUDIT_ARCH 0xc000003eu /* AUDIT_ARCH_X86_64 */

static const uint8_t run_arg_registers[6] = {RUN_RDI, RUN_RSI, RUN_RDX, RUN_R10, RUN_R8, RUN_R9};
static inline uint64_t run_arg(const weave_context *c, int i) { return c->gpr[run_arg_registers[i]]; }
static inline long run_number(const weave_context *c) { return (long)c->gpr[RUN_RAX]; }
static inline uint64_t run_sp(const weave_context *c) { return c->gpr[RUN_RSP]; }
static inline void run_set_sp(weave_context *c, uint64_t sp) { c->gpr[RUN_RSP] = sp; }
static inline void run_set_call(weave_context *c, long nr, long a, long b, long d)
{
    c->gpr[RUN_RAX] = (uint64_t)nr;
    c->gpr[RUN_RDI] = (uint64_t)a;
    c->gpr[RUN_RSI] = (uint64_t)b;
    c->gpr[RUN_RDX] = (uint64_t)d;
}
static inline void run_set_answer(weave_context *c, long answer) { c->gpr[RUN_RAX] = (uint64_t)answer; }
/* Has the processor raised what it raises for debuggers: a step, a breakpoint or watchpoint of its own, int1? */
bool run_uc_is_debug(int signo, const void *uc);
/* Is it the trap of a step, where one is made? Is int1 at this address? */
bool run_uc_is_step(const siginfo_t *, const void *uc);
bool run_at_int1(uint64_t at);
/* Of an operand, with the segment's base. */
uint64_t run_memory_address(const weave_context *, const isa_mem *);
/* What the instruction itself leaves behind: RCX and R11. */
static inline void run_set_clobbers(weave_context *c)
{
    c->gpr[RUN_RCX] = c->pc;
    c->gpr[RUN_R11] = c->flags;
}
static inline void run_args(const weave_context *c, uint64_t args[6])
{
    for (int i = 0; i < 6; i++) args[i] = run_arg(c, i);
}
static inline void run_asked_note(const weave_context *c, run_asked *a)
{
    a->sp = run_sp(c);
    a->number = c->gpr[RUN_RAX];
    run_args(c, a->args);
}
/* For the call to be made once more; and behind it, where only the answer is new. */
static inline void run_asked_again(weave_context *c, const run_asked *a)
{
    c->gpr[RUN_RAX] = a->number;
    for (int i = 0; i < 6; i++) c->gpr[run_arg_registers[i]] = a->args[i];
}
static inline void run_asked_back(weave_context *c, const run_asked *a)
{
    uint64_t answer = c->gpr[RUN_RAX];
    run_asked_again(c, a);
    c->gpr[RUN_RAX] = answer;
}
/* The registers of the call that is being made, where the gate puts those of its calls. */
static inline void run_call_keep(run_thread *t, const weave_context *c)
{
    memcpy(t->frame.slot, c->gpr, sizeof t->frame.slot);
}
/* Its number; the arguments go to `args`. */
static inline long run_call_made(const run_thread *t, uint64_t args[6])
{
    weave_context c;
    memcpy(c.gpr, t->frame.slot, sizeof c.gpr);
    run_args(&c, args);
    return run_number(&c);
}
/* The time-stamp counter. */
static inline uint64_t run_cycles(void) { return __builtin_ia32_rdtsc(); }
/* FS base of the running code. */
static inline uint64_t run_tls_base(void)
{
    uint64_t base;
    __asm__ volatile("rdfsbase %0" : "=r"(base));
    return base;
}
static inline void run_set_tls_base(uint64_t base)
{
    if (x86_bases_by_call) sys_call2(SYS_arch_prctl, X86_SET_FS, (long)base);
    else __asm__ volatile("wrfsbase %0" : : "r"(base) : "memory");
}
/* Can memory have it (with tables of four levels)? */
static inline bool run_address_possible(uint64_t a) { return !(a >> 47) || a >> 47 == UINT64_MAX >> 47; }

/* Faults, by the processor's numbers. */
enum { RUN_TRAP_STACK = 12, RUN_TRAP_PROTECTION = 13, RUN_TRAP_PAGE = 14 };
/* A fault of an access or a segment that the runtime has found where the program stands: the processor's number and
 * code of it; whether there is a page at `addr` is added. */
void run_fault_raise(run_thread *t, uint64_t trap, uint64_t err, uint64_t addr);

/* The system call, in arch_prctl.c. */
long run_arch_prctl(run_thread *t, int option, uint64_t value);

#endif
