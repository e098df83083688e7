/* Registers of a stopped AArch64 process. The kernel has put an interrupted call back to its beginning by then: there
 * is nothing to restart. A thread's block is found through its thread pointer, not in a register. */
#include "live/remote.h"
#include "run/kernel.h"
#include "run/aarch64/abi.h"
#include "run/aarch64/sigframe.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum { SP = 31 };

const uint8_t remote_syscall_insn[8] = {0x01, 0, 0, 0xd4, 0, 0, 0x20, 0xd4}; /* svc 0 ; brk 0 */
const unsigned remote_syscall_size = 4;
const int remote_vector_set = NT_PRFPREG;

/* Of a process of another width there are fewer registers, and all are 0 (remote.c). */
bool remote_is_ours(const remote *r) { return r->regs.sp; }

void remote_registers_call(struct user_regs_struct *u, uint64_t code, long nr, const long args[6])
{
    u->pc = code;
    u->regs[8] = (unsigned long)nr;
    for (int i = 0; i < 6; i++) u->regs[i] = (unsigned long)args[i];
}

void remote_registers_set_argument(struct user_regs_struct *u, unsigned index, uint64_t value)
{
    u->regs[index] = value;
}

void remote_registers_start(struct user_regs_struct *u, uint64_t pc, uint64_t sp)
{
    *u = (struct user_regs_struct){.pc = pc, .sp = sp, .pstate = u->pstate};
}

long remote_registers_answer(const struct user_regs_struct *u) { return (long)u->regs[0]; }
uint64_t remote_registers_first(const struct user_regs_struct *u) { return u->regs[0]; }
uint64_t remote_registers_pc(const struct user_regs_struct *u) { return u->pc; }
uint64_t remote_registers_sp(const struct user_regs_struct *u) { return u->sp; }

static uint64_t thread_pointer(const remote *r)
{
    uint64_t base = 0;
    struct iovec all = {&base, sizeof base};
    return ptrace(PTRACE_GETREGSET, r->pid, NT_ARM_TLS, &all) == 0 ? base : 0;
}

void remote_context(const remote *r, weave_context *c)
{
    *c = (weave_context){.pc = r->regs.pc, .flags = r->regs.pstate, .tls_base = thread_pointer(r)};
    memcpy(c->gpr, r->regs.regs, sizeof r->regs.regs);
    c->gpr[SP] = r->regs.sp;
}

void remote_set_context(remote *r, const weave_context *c)
{
    memcpy(r->regs.regs, c->gpr, sizeof r->regs.regs);
    r->regs.sp = c->gpr[SP];
    r->regs.pc = c->pc;
    r->regs.pstate = c->flags;
}

void remote_registers_jump(struct user_regs_struct *u, uint64_t pc, uint64_t sp)
{
    u->pc = pc;
    u->sp = sp;
}

void remote_registers_restart(struct user_regs_struct *u) { (void)u; }
long remote_asked_for(remote *r) { return remote_registers_number(&r->regs); }
void remote_registers_anew(struct user_regs_struct *u, uint64_t nr) { (void)u, (void)nr; }
long remote_registers_number(const struct user_regs_struct *u) { return (long)u->regs[8]; }

/* A call that does nothing takes its place. */
void remote_skip_call(const remote *r)
{
    int none = -1;
    struct iovec all = {&none, sizeof none};
    ptrace(PTRACE_SETREGSET, r->pid, NT_ARM_SYSTEM_CALL, &all);
}

enum { VECTOR_BYTES = 16 };

uint64_t remote_vectors_real(const void *state, unsigned n)
{
    uint64_t bits;
    memcpy(&bits, (const char *)state + VECTOR_BYTES * n, sizeof bits);
    return bits;
}

void remote_vectors_set_real(void *state, unsigned n, uint64_t bits)
{
    memcpy((char *)state + VECTOR_BYTES * n, &bits, sizeof bits);
}

long remote_registers_wanted(const struct user_regs_struct *u) { return (long)u->regs[8]; }

void remote_registers_frame(struct user_regs_struct *u, const remote_call_frame *f, uint64_t sp)
{
    enum { LINK = 30 };
    for (unsigned i = 0; i < f->count; i++) u->regs[i] = f->args[i];
    u->regs[LINK] = f->back;
    remote_registers_jump(u, f->pc, sp);
}

size_t remote_frame_bytes(const remote_call_frame *f, uint8_t out[REMOTE_FRAME_BYTES])
{
    (void)f, (void)out;
    return 0;
}

void remote_registers_results(const struct user_regs_struct *u, uint64_t out[2])
{
    out[0] = u->regs[0], out[1] = u->regs[1];
}

uint64_t remote_guard(remote *r)
{
    (void)r;
    return 0;
}

uint64_t remote_unscrambled(uint64_t word, uint64_t guard) { return word ^ guard; }

uint64_t remote_registers_block(const struct user_regs_struct *u) { return (void)u, 0; }
void remote_registers_set_block(struct user_regs_struct *u, uint64_t block) { (void)u, (void)block; }

void remote_after_step(remote *r, const struct user_regs_struct *before, const uint8_t code[REMOTE_STEP_BYTES])
{
    (void)r, (void)before, (void)code;
}

/* Every slot holds what its register does: right for whatever the code at hand believes. */
void remote_fill_slots(const remote *r, weave_frame *f)
{
    weave_context c;
    remote_context(r, &c);
    memcpy(f->slot, c.gpr, sizeof f->slot);
    f->flags = run_flags_packed(c.flags);
}

/* ldr x16, 1f ; br x16 ; 1: */
void remote_put_jump(uint8_t *at, uint64_t target)
{
    static const uint32_t jump[] = {0x58000050, 0xd61f0200};
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &target, sizeof target);
}

/* There is no parking area yet: nothing holds processes here (remote_check). */
const remote_pattern remote_returns[] = {{0}};
const uint8_t remote_tail[] = {0x01, 0, 0, 0xd4, 0, 0, 0x20, 0xd4}; /* svc 0 ; brk 0 */
const size_t remote_tail_size = sizeof remote_tail, remote_tail_until = 4;
void remote_registers_set_sp(struct user_regs_struct *u, uint64_t sp) { u->sp = sp; }

const uint8_t *remote_park_code(size_t *size)
{
    *size = 0;
    return NULL;
}

size_t remote_slot_size(void) { return 1; }

inl_status remote_slot_make(remote *r, uint64_t at, void *bytes, inl_error *e)
{
    (void)r, (void)at, (void)bytes;
    return remote_check(e);
}

inl_status remote_slot_vectors(remote *r, inl_error *e)
{
    (void)r;
    return remote_check(e);
}

void remote_registers_return(struct user_regs_struct *u, uint64_t from, uint64_t slot)
{
    remote_registers_jump(u, from, slot);
}

void remote_registers_instead(struct user_regs_struct *u, uint64_t from, long nr, const long args[6])
{
    remote_registers_call(u, from, nr, args);
}

uint64_t remote_below_stack(const struct user_regs_struct *u, size_t size) { return (u->sp - size) & ~(uint64_t)15; }

inl_status remote_check(inl_error *e)
{
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "on AArch64 tools are not put into processes that run yet; use inlay rewrite");
}
