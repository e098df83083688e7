/* The frame that the x86-64 kernel builds for a handler with SA_SIGINFO semantics (it builds no
 * other), and its undoing. Layout, from the new stack pointer up:
 *
 *     sp + 0      return address: the program's restorer
 *        + 8      ucontext: flags, link, stack_t, 256 bytes of sigcontext, 8 bytes of mask
 *        + 312    siginfo, 128 bytes
 *        + 440    padding
 *     64-aligned  vector state in XSAVE's standard form; bytes 464..511 of its legacy part tell its
 *                 size and features; a second magic word follows it
 *
 * The program may change anything in it before it returns; what it hands back is checked as the kernel
 * checks it, since XRSTOR of a bad image would fault in the runtime.
 */
#include <string.h>

#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigvectors.h"

enum {
    UC_FP_XSTATE = 1,
    UC_SIGCONTEXT_SS = 2,
    UC_STRICT_RESTORE_SS = 4,
    RED_ZONE = 128,
    FLAG_TF = 0x100,
    FLAG_DF = 0x400,
    FLAG_RF = 0x10000,
    RESTORED_FLAGS = 0x50dd5, /* CF PF AF ZF SF TF DF OF RF AC */
    CODE_SEGMENT = 0x33,
    STACK_SEGMENT = 0x2b,
};

struct machine_context {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags;
    uint16_t cs, gs, fs, ss;
    uint64_t err, trapno, oldmask, cr2, fpstate;
    uint64_t reserved[8];
};

struct rt_frame {
    uint64_t restorer;
    uint64_t uc_flags, uc_link;
    uint64_t stack_sp, stack_flags, stack_size;
    struct machine_context mc;
    uint64_t mask;
    uint8_t info[128];
};
_Static_assert(sizeof(struct machine_context) == 256, "kernel ABI");
_Static_assert(sizeof(struct rt_frame) == 440, "kernel ABI");
_Static_assert(sizeof(siginfo_t) == 128, "kernel ABI");

/* --- the alternate stack --- */

static bool on_altstack(const run_thread *t, uint64_t sp)
{
    uint64_t low = (uint64_t)(uintptr_t)t->altstack.ss_sp;
    return sp > low && sp - low <= t->altstack.ss_size;
}

bool run_altstack_active(const run_thread *t, uint64_t sp)
{
    return !(t->altstack.ss_flags & (int)SS_AUTODISARM) && on_altstack(t, sp);
}

/* --- building --- */

/* clang-format off */
static void fill_sigcontext(const run_thread *t, struct machine_context *m, uint64_t mask)
{
    const uint64_t *r = t->ctx.gpr;
    *m = (struct machine_context){
        .r8 = r[8], .r9 = r[9], .r10 = r[10], .r11 = r[11],
        .r12 = r[12], .r13 = r[13], .r14 = r[14], .r15 = r[15],
        .rdi = r[RUN_RDI], .rsi = r[RUN_RSI], .rbp = r[RUN_RBP], .rbx = r[RUN_RBX],
        .rdx = r[RUN_RDX], .rax = r[RUN_RAX], .rcx = r[RUN_RCX], .rsp = r[RUN_RSP],
        .rip = t->ctx.pc, .flags = t->ctx.flags,
        .cs = CODE_SEGMENT, .ss = STACK_SEGMENT,
        .err = t->trap_err, .trapno = t->trapno, .cr2 = t->trap_addr, .oldmask = mask,
    };
}
/* clang-format on */

/* Where the frame goes: *fpstate and the answer, 0 when the alternate stack cannot hold it. */
static uint64_t place(const run_thread *t, const run_action *a, uint64_t *fpstate)
{
    uint64_t sp = run_sp(&t->ctx);
    bool nested = run_altstack_active(t, sp), entering = false;
    sp -= RED_ZONE;
    if (a->flags & SA_ONSTACK && t->altstack.ss_size && !run_altstack_active(t, sp)) {
        sp = (uint64_t)(uintptr_t)t->altstack.ss_sp + t->altstack.ss_size;
        entering = true;
    }
    sp = (sp - sigvectors_bytes(t)) & ~63ull;
    *fpstate = sp;
    sp = ((sp - sizeof(struct rt_frame)) & ~15ull) - 8;
    if ((nested || entering) && !on_altstack(t, sp)) return 0;
    return sp;
}

bool run_sigframe_push(run_thread *t, int signo, const siginfo_t *info, const run_action *a, uint64_t saved)
{
    if (!(a->flags & SA_RESTORER)) return false;
    sigvectors_prepare(t);
    uint64_t fpstate, sp = place(t, a, &fpstate);
    if (!sp || !sigvectors_put(t, fpstate)) return false;
    struct rt_frame f = {
        .restorer = a->restorer,
        .uc_flags = (t->frame.no_xsave ? 0 : UC_FP_XSTATE) | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
        .stack_sp = (uint64_t)(uintptr_t)t->altstack.ss_sp,
        .stack_flags = (uint32_t)t->altstack.ss_flags,
        .stack_size = t->altstack.ss_size,
        .mask = saved,
    };
    fill_sigcontext(t, &f.mc, saved);
    f.mc.fpstate = fpstate;
    memcpy(f.info, info, sizeof f.info);
    if (!run_write(sp, &f, sizeof f)) return false;

    weave_context *c = &t->ctx;
    c->gpr[RUN_RDI] = (uint64_t)signo;
    c->gpr[RUN_RAX] = 0;
    c->gpr[RUN_RSI] = sp + offsetof(struct rt_frame, info);
    c->gpr[RUN_RDX] = sp + offsetof(struct rt_frame, uc_flags);
    c->gpr[RUN_RSP] = sp;
    c->pc = a->handler;
    c->flags &= ~(uint64_t)(FLAG_DF | FLAG_RF | FLAG_TF);
    run_vectors_init(t);
    return true;
}

/* --- undoing --- */

static void take_altstack(run_thread *t, const struct rt_frame *f)
{
    int flags = (int)(uint32_t)f->stack_flags, mode = flags & ~(int)SS_AUTODISARM;
    if (run_altstack_active(t, run_sp(&t->ctx))) return;
    if (mode == SS_DISABLE) {
        t->altstack = (stack_t){.ss_flags = flags};
    } else if ((mode == 0 || mode == SS_ONSTACK) && f->stack_size >= 2048) {
        t->altstack = (stack_t){.ss_sp = (void *)(uintptr_t)f->stack_sp, .ss_flags = flags, .ss_size = f->stack_size};
    }
}

bool run_sigframe_pop(run_thread *t, uint64_t *mask)
{
    weave_context *c = &t->ctx;
    struct rt_frame f;
    if (!run_read(&f, run_sp(c) - 8, sizeof f)) return false;
    const struct machine_context *m = &f.mc;
    if (!sigvectors_take(t, m->fpstate)) return false;
    uint64_t *r = c->gpr;
    r[8] = m->r8, r[9] = m->r9, r[10] = m->r10, r[11] = m->r11;
    r[12] = m->r12, r[13] = m->r13, r[14] = m->r14, r[15] = m->r15;
    r[RUN_RDI] = m->rdi, r[RUN_RSI] = m->rsi, r[RUN_RBP] = m->rbp, r[RUN_RBX] = m->rbx;
    r[RUN_RDX] = m->rdx, r[RUN_RAX] = m->rax, r[RUN_RCX] = m->rcx, r[RUN_RSP] = m->rsp;
    c->pc = m->rip;
    c->flags = (c->flags & ~(uint64_t)RESTORED_FLAGS) | (m->flags & RESTORED_FLAGS);
    *mask = f.mask;
    take_altstack(t, &f);
    return true;
}

void run_trap_set(run_thread *t, int signo, uint64_t addr)
{
    enum { PAGE_FAULT = 14, GENERAL_PROTECTION = 13, INVALID_OPCODE = 6, USER_FETCH = 0x14 };
    if (signo == SIGILL) {
        t->trapno = INVALID_OPCODE;
        t->trap_err = 0;
    } else if (addr) {
        t->trapno = PAGE_FAULT;
        t->trap_err = USER_FETCH;
        t->trap_addr = addr;
    } else {
        t->trapno = GENERAL_PROTECTION;
        t->trap_err = 0;
    }
}
