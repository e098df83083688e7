/* An analysis routine sends the program on with registers of its making: by the kernel's own way back from a handler,
 * which sets them all at once, vectors and the mask of signals included, wherever the program is to go.
 *
 * Nothing was counted in advance where a routine is called (weave/count.c, move/count.c), so the run of instructions
 * that is left in its middle leaves nothing to put right; one that is entered in its middle does. What signal waits for
 * the routine's end is sent once more, to come when the mask lets it. */
#include "base/page.h"
#include "base/sys.h"
#include "moved/private.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/sigvectors.h"

#include <alloca.h>
#include <string.h>
#include <sys/syscall.h>

enum { STANDARD_CS = 0x33, STANDARD_SS = 0x2b, VECTOR_ALIGN = 64 };

#ifndef UC_FP_XSTATE
#define UC_FP_XSTATE 1
#endif
#ifndef UC_SIGCONTEXT_SS
#define UC_SIGCONTEXT_SS 2
#endif

static uint64_t end_of_wait(run_thread *t, uint64_t mask)
{
    if (!t->pending.present) return mask;
    run_hung_end(t);
    t->pending.present = false;
    run_signal_send_back(&t->pending.info);
    return t->pending.mask;
}

/* The kernel's: calls in code that has not moved may have changed it unseen. */
static stack_t stack_now(const run_thread *t)
{
    stack_t stack = {0};
    bool known = sys_call2(SYS_sigaltstack, 0, (long)&stack) == 0 && stack.ss_size;
    stack.ss_flags &= ~SS_ONSTACK;
    return known ? stack : run_altstack_own(t);
}

static void enter(run_thread *t, uint64_t mask) __attribute__((noreturn));
static void enter(run_thread *t, uint64_t mask)
{
    sigvectors_prepare(t);
    uint64_t room = (uint64_t)(uintptr_t)alloca(sigvectors_bytes(t) + VECTOR_ALIGN);
    uint64_t vectors = (room + VECTOR_ALIGN - 1) & ~(uint64_t)(VECTOR_ALIGN - 1);
    stack_t stack = stack_now(t);
    run_frame f = {.flags = (t->frame.no_xsave ? 0 : UC_FP_XSTATE) | UC_SIGCONTEXT_SS, .stack = stack, .mask = mask};
    sigvectors_put(t, vectors);
    moved_frame_set(&f, &t->ctx);
    f.mc.gregs[REG_CSGSFS] = (greg_t)(STANDARD_CS | (uint64_t)STANDARD_SS << 48);
    f.mc.fpregs = (fpregset_t)vectors;
    t->frame.app_gs_base = t->ctx.gs_base;
    t->frame.in_tool = 0;
    run_sigreturn_now((uint64_t)(uintptr_t)&f + RUN_FRAME_CONTEXT, t->ctx.tls_base);
}

void moved_resume(run_thread *t)
{
    uint64_t mask = end_of_wait(t, run_kernel_mask_all()), to = 0;
    if (!moved_at(t->ctx.pc)) to = moved_onward((real_addr){t->ctx.pc}).at;
    if (to) {
        moved_enter_run(t, to, true);
        moved_fill_slots(t, &t->ctx);
        t->ctx.pc = to;
    }
    enter(t, mask);
}
