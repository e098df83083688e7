/* Registers of a stopped x86-64 process. orig_rax = -1 keeps the kernel from taking the state for an
 * interrupted system call that it must restart. */
#include "live/remote.h"

#include "weave/x86_64/frame.h"

#include <string.h>

#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "move/x86_64/park.h"
#include "run/x86_64/sigframe.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { USER64_CS = 0x33, FLAGS_DEFAULT = 0x202, SYSCALL_BYTES = 2 };
/* What the kernel has in RAX of a call that it will make once more: never seen by the program. */
enum { ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

const uint8_t remote_syscall_insn[8] = {0x0f, 0x05, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
const unsigned remote_syscall_size = SYSCALL_BYTES;
const int remote_vector_set = NT_X86_XSTATE;

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

void remote_registers_set_argument(struct user_regs_struct *u, unsigned index, uint64_t value)
{
    unsigned long long *at[6] = {&u->rdi, &u->rsi, &u->rdx, &u->r10, &u->r8, &u->r9};
    *at[index] = value;
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
uint64_t remote_registers_first(const struct user_regs_struct *u) { return u->rdi; }
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
        .tls_base = u->fs_base,
        .gs_base = u->gs_base,
    };
}

void remote_registers_jump(struct user_regs_struct *u, uint64_t pc, uint64_t sp)
{
    u->rip = pc;
    u->rsp = sp;
    u->orig_rax = ~0ul;
    u->eflags = FLAGS_DEFAULT;
}

/* A call that ended with EINTR was interrupted by the stop alone: a signal's handler would be entered by now. */
void remote_registers_restart(struct user_regs_struct *u)
{
    bool in_call = (long)u->orig_rax >= 0;
    switch (in_call ? -(long)u->rax : 0) {
    case ERESTARTSYS:
    case ERESTARTNOINTR:
    case ERESTARTNOHAND:
    case EINTR: u->rax = u->orig_rax; break;
    case ERESTART_RESTARTBLOCK: u->rax = SYS_restart_syscall; break;
    default: in_call = false;
    }
    if (in_call) u->rip -= SYSCALL_BYTES;
    u->orig_rax = ~0ul;
}

void remote_registers_anew(struct user_regs_struct *u, uint64_t nr)
{
    if (u->rax == SYS_restart_syscall && nr) u->rax = nr;
}

long remote_registers_number(const struct user_regs_struct *u) { return (long)u->orig_rax; }

void remote_skip_call(const remote *r)
{
    struct user_regs_struct u = r->regs;
    struct iovec all = {&u, sizeof u};
    if (ptrace(PTRACE_GETREGSET, r->pid, NT_PRSTATUS, &all) != 0) return;
    u.orig_rax = ~0ul;
    ptrace(PTRACE_SETREGSET, r->pid, NT_PRSTATUS, &all);
}

void remote_registers_frame(struct user_regs_struct *u, const remote_call_frame *f, uint64_t sp)
{
    unsigned long long *at[] = {&u->rdi, &u->rsi, &u->rdx, &u->rcx, &u->r8, &u->r9};
    for (unsigned i = 0; i < f->count; i++) *at[i] = f->args[i];
    remote_registers_jump(u, f->pc, sp);
    u->rax = f->reals;
}

/* The return address, and above it what park.S takes from there; the stack's alignment stays that of a call. */
_Static_assert(REMOTE_WORDS == 2 * MOVE_PARK_POPS_MOST, "as many as it pops");

/* | where it returns to | arguments, an even number of words | slot | - | */
size_t remote_frame_bytes(const remote_call_frame *f, uint8_t out[REMOTE_FRAME_BYTES])
{
    unsigned pairs = (f->word_count + 1) / 2;
    uint64_t words[REMOTE_FRAME_BYTES / sizeof(uint64_t)] = {f->back};
    if (pairs) words[0] = MOVE_PARK_POPS + (pairs - 1) * MOVE_PARK_POPS_SIZE;
    memcpy(words + 1, f->words, f->word_count * sizeof *words);
    words[1 + 2 * pairs] = f->slot;
    size_t size = (3 + 2 * pairs) * sizeof *words;
    memcpy(out, words, size);
    return size;
}

/* park.S has kept it from the kernel's own answer. */
void remote_registers_results(const struct user_regs_struct *u, uint64_t out[2]) { out[0] = u->rdi, out[1] = u->rdx; }

void remote_registers_set_sp(struct user_regs_struct *u, uint64_t sp) { u->rsp = sp; }

enum { XMM_AT = 160, XMM_BYTES = 16, XSAVE_PRESENT_AT = 512, XSAVE_SSE = 2 };

uint64_t remote_vectors_real(const void *state, unsigned n)
{
    uint64_t bits, present;
    memcpy(&present, (const char *)state + XSAVE_PRESENT_AT, sizeof present);
    memcpy(&bits, (const char *)state + XMM_AT + XMM_BYTES * n, sizeof bits);
    return present & XSAVE_SSE ? bits : 0;
}

/* Registers that are not present are zero. */
void remote_vectors_set_real(void *state, unsigned n, uint64_t bits)
{
    enum { REGISTERS = 16 };
    uint64_t present;
    char *at = state;
    memcpy(&present, at + XSAVE_PRESENT_AT, sizeof present);
    if (!(present & XSAVE_SSE)) memset(at + XMM_AT, 0, REGISTERS * XMM_BYTES);
    present |= XSAVE_SSE;
    memcpy(at + XSAVE_PRESENT_AT, &present, sizeof present);
    memcpy(at + XMM_AT + XMM_BYTES * n, &bits, sizeof bits);
}

long remote_registers_wanted(const struct user_regs_struct *u) { return (long)u->rax; }

/* glibc's: in the thread's control block, PTR_MANGLE. */
uint64_t remote_guard(remote *r)
{
    enum { GUARD_AT = 0x30 };
    inl_error ignored;
    uint64_t guard = 0;
    remote_read(r, r->regs.fs_base + GUARD_AT, &guard, sizeof guard, &ignored);
    return guard;
}

uint64_t remote_unscrambled(uint64_t word, uint64_t guard) { return (word >> 17 | word << 47) ^ guard; }

uint64_t remote_registers_block(const struct user_regs_struct *u) { return u->gs_base; }
void remote_registers_set_block(struct user_regs_struct *u, uint64_t block) { u->gs_base = block; }

void remote_set_context(remote *r, const weave_context *c)
{
    struct user_regs_struct *u = &r->regs;
    unsigned long long *at[16] = {&u->rax, &u->rcx, &u->rdx, &u->rbx, &u->rsp, &u->rbp, &u->rsi, &u->rdi,
                                  &u->r8,  &u->r9,  &u->r10, &u->r11, &u->r12, &u->r13, &u->r14, &u->r15};
    for (int i = 0; i < 16; i++) *at[i] = c->gpr[i];
    u->rip = c->pc;
    u->eflags = c->flags;
}

/* Every slot holds what its register does: right for whatever the code at hand believes. */
void remote_fill_slots(const remote *r, weave_frame *f)
{
    weave_context c;
    remote_context(r, &c);
    memcpy(f->slot, c.gpr, sizeof f->slot);
    f->flags = run_flags_packed(c.flags);
}

/* pushf has put the trap flag of the step on the stack; and behind a popf the kernel takes the flag for the thread's
 * own.
 */
void remote_after_step(remote *r, const struct user_regs_struct *before, const uint8_t code[REMOTE_STEP_BYTES])
{
    enum { PUSHF = 0x9c, OPERAND16 = 0x66, TRAP = 0x100 };
    uint16_t flags;
    inl_error ignored;
    if (!(before->eflags & TRAP)) r->regs.eflags &= ~(unsigned long long)TRAP;
    if (code[0] != PUSHF && (code[0] != OPERAND16 || code[1] != PUSHF)) return;
    if (remote_read(r, r->regs.rsp, &flags, sizeof flags, &ignored) != INL_OK) return;
    flags &= (uint16_t)~TRAP;
    remote_write(r, r->regs.rsp, &flags, sizeof flags, &ignored);
}

/* jmp *(%rip) */
void remote_put_jump(uint8_t *at, uint64_t target)
{
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &target, sizeof target);
}

inl_status remote_check(inl_error *e)
{
    (void)e;
    return INL_OK;
}
