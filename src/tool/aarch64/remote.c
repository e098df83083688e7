/* Registers of a stopped AArch64 process. */
#include "tool/remote.h"
#include "tool/tool.h"

#include <inlay/reg.h>

#include <string.h>

const uint8_t remote_syscall_insn[8] = {0x01, 0, 0, 0xd4, 0, 0, 0x20, 0xd4}; /* svc 0 ; brk 0 */

/* Of a process of another width there are fewer registers, and all are 0 (remote.c). */
bool remote_is_ours(const remote *r) { return r->regs.sp; }

void remote_registers_call(struct user_regs_struct *u, uint64_t code, long nr, const long args[6])
{
    u->pc = code;
    u->regs[8] = (unsigned long)nr;
    for (int i = 0; i < 6; i++) u->regs[i] = (unsigned long)args[i];
}

void remote_registers_start(struct user_regs_struct *u, uint64_t pc, uint64_t sp)
{
    *u = (struct user_regs_struct){.pc = pc, .sp = sp, .pstate = u->pstate};
}

long remote_registers_answer(const struct user_regs_struct *u) { return (long)u->regs[0]; }
uint64_t remote_registers_pc(const struct user_regs_struct *u) { return u->pc; }
uint64_t remote_registers_sp(const struct user_regs_struct *u) { return u->sp; }

void remote_context(const remote *r, weave_context *c)
{
    *c = (weave_context){.pc = r->regs.pc, .flags = r->regs.pstate};
    memcpy(c->gpr, r->regs.regs, sizeof r->regs.regs);
    c->gpr[INLAY_XSP] = r->regs.sp;
}
