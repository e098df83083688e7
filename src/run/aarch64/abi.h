/* How a system call's arguments and answer lie in the program's registers on AArch64. */
#ifndef INL_RUN_AARCH64_ABI_H
#define INL_RUN_AARCH64_ABI_H

#include "run/thread.h"
#include "weave/aarch64/frame.h"

#include <string.h>

/* clang-format off */
enum {
    RUN_X0, RUN_X1, RUN_X2, RUN_X8 = 8, RUN_X16 = 16, RUN_X17 = 17, RUN_X29 = 29, RUN_X30 = 30, RUN_SP = 31,
    RUN_GPRS = 32, /* with the stack pointer */
    RUN_SYSCALL_BYTES = 4,
    RUN_ELF_MACHINE = 183, /* EM_AARCH64 */
};
/* Arguments of clone that other architectures have in another order. */
enum { RUN_CLONE_TLS = 3, RUN_CLONE_CHILD_TID = 4 };
enum { RUN_LEAST_ALTSTACK = 5120 }; /* the kernel takes no smaller one */
/* Where a procedure returns to at its return instruction, which is then over. */
static inline uint64_t run_return_take(weave_context *c) { return c->gpr[RUN_X30]; }
enum { RUN_HANDLER_POPS = 0 };      /* bytes of a signal's frame, when the handler has returned */
/* clang-format on */
#define RUN_AUDIT_ARCH 0xc00000b7u /* AUDIT_ARCH_AARCH64 */

static inline uint64_t run_arg(const weave_context *c, int i) { return c->gpr[i]; }
static inline long run_number(const weave_context *c) { return (long)(int32_t)c->gpr[RUN_X8]; }
static inline uint64_t run_sp(const weave_context *c) { return c->gpr[RUN_SP]; }
static inline void run_set_sp(weave_context *c, uint64_t sp) { c->gpr[RUN_SP] = sp; }
static inline void run_set_call(weave_context *c, long nr, long a, long b, long d)
{
    c->gpr[RUN_X8] = (uint64_t)nr;
    c->gpr[RUN_X0] = (uint64_t)a;
    c->gpr[RUN_X1] = (uint64_t)b;
    c->gpr[RUN_X2] = (uint64_t)d;
}
static inline void run_set_answer(weave_context *c, long answer) { c->gpr[RUN_X0] = (uint64_t)answer; }
/* The instruction itself leaves nothing behind. */
static inline void run_set_clobbers(weave_context *c) { (void)c; }
static inline void run_args(const weave_context *c, uint64_t args[6])
{
    for (int i = 0; i < 6; i++) args[i] = run_arg(c, i);
}
static inline void run_asked_note(const weave_context *c, run_asked *a)
{
    a->sp = run_sp(c);
    a->number = c->gpr[RUN_X8];
    run_args(c, a->args);
}
/* For the call to be made once more; and behind it, where only the answer is new. */
static inline void run_asked_again(weave_context *c, const run_asked *a)
{
    c->gpr[RUN_X8] = a->number;
    for (int i = 0; i < 6; i++) c->gpr[i] = a->args[i];
}
static inline void run_asked_back(weave_context *c, const run_asked *a)
{
    uint64_t answer = c->gpr[RUN_X0];
    run_asked_again(c, a);
    c->gpr[RUN_X0] = answer;
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
/* The counter of time. */
static inline uint64_t run_cycles(void)
{
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
}
/* The thread pointer of the running code. */
static inline uint64_t run_tls_base(void)
{
    uint64_t base;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
    return base;
}
static inline void run_set_tls_base(uint64_t base) { __asm__ volatile("msr tpidr_el0, %0" : : "r"(base) : "memory"); }

#endif
