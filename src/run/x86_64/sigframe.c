/* The frame that the kernel builds for a handler (sigframe.h), built and undone here. The program may change anything
 * in it before it returns; what it hands back is checked as the kernel checks it, since XRSTOR of a bad image would
 * fault in the runtime. */
#include <string.h>
#include <sys/syscall.h>

#include "base/page.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigframe.h"
#include "run/x86_64/sigvectors.h"

enum {
    UC_FP_XSTATE = 1,
    UC_SIGCONTEXT_SS = 2,
    UC_STRICT_RESTORE_SS = 4,
    FLAG_TF = 0x100,
    FLAG_DF = 0x400,
    FLAG_RF = 0x10000,
    RESTORED_FLAGS = 0x50dd5, /* CF PF AF ZF SF TF DF OF RF AC */
    CODE_SEGMENT = 0x33,
    STACK_SEGMENT = 0x2b,
};

#define KERNEL_BEGINS 0x7ffffffff000ull /* from here on the kernel says that there is something, whatever there is */

/* --- building --- */

static void fill_sigcontext(const run_thread *t, greg_t *g, uint64_t mask)
{
    for (unsigned r = 0; r < 16; r++) g[run_frame_place(r)] = (greg_t)t->ctx.gpr[r];
    g[REG_RIP] = (greg_t)t->ctx.pc;
    g[REG_EFL] = (greg_t)t->ctx.flags;
    g[REG_CSGSFS] = (greg_t)(CODE_SEGMENT | (uint64_t)STACK_SEGMENT << 48);
    g[REG_ERR] = (greg_t)t->trap_err;
    g[REG_TRAPNO] = (greg_t)t->trapno;
    g[REG_CR2] = (greg_t)t->trap_addr;
    g[REG_OLDMASK] = (greg_t)mask;
}

/* Where the frame goes: *fpstate and the answer, 0 when the alternate stack cannot hold it. */
static uint64_t place(const run_thread *t, const run_action *a, uint64_t *fpstate)
{
    bool bounded;
    uint64_t sp = run_altstack_top(t, a, run_sp(&t->ctx), &bounded);
    sp = (sp - sigvectors_bytes(t)) & ~63ull;
    *fpstate = sp;
    sp = ((sp - sizeof(run_frame)) & ~15ull) - 8;
    return bounded && !run_altstack_holds(t, sp) ? 0 : sp;
}

/* Where the last floating-point instruction stood is in the legacy part of the vector state. */
static void show_pointer(run_thread *t)
{
    enum { LAST_POINTER = 8 };
    uint64_t noted;
    char *at = (char *)t->frame.vector_area + LAST_POINTER;
    if (!run_here.engine->watch) return;
    memcpy(&noted, at, sizeof noted);
    if (noted) noted = run_here.engine->watch->pointer_shown(noted);
    memcpy(at, &noted, sizeof noted);
}

bool run_sigframe_push(run_thread *t, int signo, const siginfo_t *info, const run_action *a, uint64_t saved)
{
    if (!(a->flags & SA_RESTORER)) return false;
    sigvectors_prepare(t);
    show_pointer(t);
    uint64_t fpstate, sp = place(t, a, &fpstate);
    if (!sp || !sigvectors_put(t, fpstate)) return false;
    run_frame f;
    memset(&f, 0, sizeof f);
    f.restorer = a->restorer;
    f.flags = (t->frame.no_xsave ? 0 : UC_FP_XSTATE) | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    f.stack.ss_sp = t->altstack.ss_sp;
    f.stack.ss_flags = t->altstack.ss_flags;
    f.stack.ss_size = t->altstack.ss_size;
    f.mask = saved;
    fill_sigcontext(t, f.mc.gregs, saved);
    f.mc.fpregs = (fpregset_t)fpstate;
    memcpy(f.info, info, sizeof f.info);
    if (!run_write(sp, &f, sizeof f)) return false;

    weave_context *c = &t->ctx;
    c->gpr[RUN_RDI] = (uint64_t)signo;
    c->gpr[RUN_RAX] = 0;
    c->gpr[RUN_RSI] = sp + RUN_FRAME_INFO;
    c->gpr[RUN_RDX] = sp + RUN_FRAME_CONTEXT;
    c->gpr[RUN_RSP] = sp;
    c->pc = a->handler;
    c->flags &= ~(uint64_t)(FLAG_DF | FLAG_RF | FLAG_TF);
    run_vectors_init(t);
    return true;
}

/* --- undoing --- */

bool run_sigframe_pop(run_thread *t, uint64_t *mask)
{
    weave_context *c = &t->ctx;
    run_frame f;
    if (!run_read(&f.flags, run_sp(c), offsetof(run_frame, info) - offsetof(run_frame, flags))) return false;
    greg_t *g = f.mc.gregs;
    for (unsigned r = 0; r < 16; r++) c->gpr[r] = (uint64_t)g[run_frame_place(r)];
    c->pc = (uint64_t)g[REG_RIP];
    c->flags = (c->flags & ~(uint64_t)RESTORED_FLAGS) | ((uint64_t)g[REG_EFL] & RESTORED_FLAGS);
    *mask = f.mask;
    /* The kernel looks at the vectors last: a handler of the fault finds the registers as they are to be, and goes on.
     */
    if (!sigvectors_take(t, (uint64_t)f.mc.fpregs)) {
        run_vectors_init(t);
        return false;
    }
    run_altstack_take(t, &f.stack, run_sp(c));
    t->returns_to = (uint16_t)g[REG_CSGSFS] | 3; /* as the kernel does it */
    return true;
}

/* Then the kernel has put a page there before it says no. */
static bool can_be_accessed(uint64_t addr)
{
    const run_watch *watch = run_here.engine->watch;
    return watch && watch->prot(addr);
}

void run_trap_set(run_thread *t, int signo, int code, uint64_t addr)
{
    enum { INVALID_OPCODE = 6, DEBUG = 1, USER_FETCH = 0x14, PRESENT = 1 };
    if (signo == SIGTRAP) {
        t->trapno = DEBUG;
        t->trap_err = 0;
        return;
    }
    /* Processors set it at each fault, and there is an address at each that one is to have found. */
    if (addr) t->ctx.flags |= FLAG_RF;
    if (signo == SIGILL) {
        t->trapno = INVALID_OPCODE;
        t->trap_err = 0;
    } else if (addr && code != SI_KERNEL) {
        bool present = addr >= KERNEL_BEGINS || (code == SEGV_ACCERR && can_be_accessed(addr));
        t->trapno = RUN_TRAP_PAGE;
        t->trap_err = USER_FETCH | (present ? PRESENT : 0);
        t->trap_addr = addr;
    } else {
        t->trapno = RUN_TRAP_PROTECTION;
        t->trap_err = 0;
    }
}

static bool is_mapped(uint64_t addr)
{
    uint8_t in_core;
    return !sys_call3(SYS_mincore, (long)inl_page_down(addr), INL_PAGE, (long)&in_core);
}

void run_fault_raise(run_thread *t, uint64_t trap, uint64_t err, uint64_t addr)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    bool mapped = trap == RUN_TRAP_PAGE && is_mapped(addr);
    bool there = trap == RUN_TRAP_PAGE && (addr >= KERNEL_BEGINS || (mapped && can_be_accessed(addr)));
    info.si_signo = trap == RUN_TRAP_STACK ? SIGBUS : SIGSEGV;
    info.si_code = trap != RUN_TRAP_PAGE ? SI_KERNEL : mapped ? SEGV_ACCERR : SEGV_MAPERR;
    t->trapno = trap;
    t->trap_err = err | there;
    if (trap == RUN_TRAP_PAGE) {
        info.si_addr = (void *)addr;
        t->trap_addr = addr;
    }
    t->ctx.flags |= FLAG_RF;
    t->leave = RUN_LEAVE_START; /* the instruction has not been done */
    run_signal_force(t, &info);
}
