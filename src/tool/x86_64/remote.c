/* Registers of a stopped x86-64 process. orig_rax = -1 keeps the kernel from taking the state for an
 * interrupted system call that it must restart. */
#include "tool/remote.h"
#include "tool/tool.h"

#include <string.h>

enum { USER64_CS = 0x33, FLAGS_DEFAULT = 0x202 };

const uint8_t remote_syscall_insn[8] = {0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};

bool remote_is_ours(const remote *r) { return r->regs.cs == USER64_CS; }

void remote_registers_call(struct user_regs_struct *u, uint64_t code, long nr, const long args[6])
{
    u->rip = code;
    u->rax = (unsigned long)nr;
    u->orig_rax = ~0ul;
    u->rdi = (unsigned long)args[0];
    u->rsi = (unsigned long)args[1];
    u->rdx = (unsigned long)args[2];
    u->r10 = (unsigned long)args[3];
    u->r8 = (unsigned long)args[4];
    u->r9 = (unsigned long)args[5];
}

void remote_registers_start(struct user_regs_struct *u, uint64_t pc, uint64_t sp)
{
    struct user_regs_struct fresh = {.cs = u->cs, .ss = u->ss, .ds = u->ds, .es = u->es};
    fresh.rip = pc;
    fresh.rsp = sp;
    fresh.orig_rax = ~0ul;
    fresh.eflags = FLAGS_DEFAULT;
    *u = fresh;
}

long remote_registers_answer(const struct user_regs_struct *u) { return (long)u->rax; }
uint64_t remote_registers_pc(const struct user_regs_struct *u) { return u->rip; }
uint64_t remote_registers_sp(const struct user_regs_struct *u) { return u->rsp; }

void remote_context(const remote *r, weave_context *c)
{
    const struct user_regs_struct *u = &r->regs;
    *c = (weave_context){
        .gpr = {u->rax, u->rcx, u->rdx, u->rbx, u->rsp, u->rbp, u->rsi, u->rdi, u->r8, u->r9, u->r10, u->r11, u->r12,
                u->r13, u->r14, u->r15},
        .pc = u->rip,
        .flags = u->eflags,
    };
}
