/* The thread's block as assembly sees it, and a thread of execution that takes one. */
#include "base/libc_ready.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"
#include "run/x86_64/offsets.h"

#include <stddef.h>
#include <sys/auxv.h>

#define AT(type, field, off) _Static_assert(offsetof(type, field) == (off), #field)
AT(run_thread, frame.slot, OFF_SLOT);
AT(run_thread, frame.flags, OFF_FLAGS);
AT(run_thread, frame.tool_tls_base, OFF_TOOL_FS);
AT(run_thread, frame.app_gs_base, OFF_APP_GS);
AT(run_thread, frame.in_tool, OFF_IN_TOOL);
AT(run_thread, frame.save_vectors, OFF_SAVE_VECTORS);
AT(run_thread, frame.vector_area, OFF_XSAVE_AREA);
AT(run_thread, frame.xsave_mask, OFF_XSAVE_MASK);
AT(run_thread, frame.no_xsave, OFF_NO_XSAVE);
AT(run_thread, frame.tool_base_in, OFF_BASE_IN);
AT(run_thread, ctx, OFF_CTX);
AT(run_thread, ctx.gpr[RUN_RCX], CTX_RCX);
AT(run_thread, ctx.gpr[15], CTX_R15);
AT(run_thread, ctx.pc, CTX_PC);
AT(run_thread, ctx.flags, CTX_FLAGS);
AT(run_thread, ctx.tls_base, CTX_FS);
AT(run_thread, ctx.gs_base, CTX_GS);
AT(run_thread, where, OFF_WHERE);
AT(run_thread, leave, OFF_LEAVE);
AT(run_thread, leave_arg, OFF_LEAVE_ARG);
AT(run_thread, runtime_stack, OFF_RUNTIME_STACK);
AT(run_thread, dispatch_entry, OFF_DISPATCH_ENTRY);
AT(run_thread, enter_pc, OFF_ENTER_PC);
AT(run_thread, next, OFF_NEXT);
AT(run_thread, syscall_gate, OFF_SYSCALL_GATE);
AT(run_thread, pending.present, OFF_PENDING);
AT(run_thread, pending.passes, OFF_PENDING + 1);
AT(run_thread, engine, OFF_ENGINE);
_Static_assert(sizeof(run_thread) <= WEAVE_IBL, "block layout");
_Static_assert(RUN_LEAVE_INDIRECT == 1 && RUN_LEAVE_SYSCALL == 2 && RUN_LEAVE_START == 4 && RUN_IN_CODE == 0 &&
                   RUN_IN_RUNTIME == 1,
               "numbers in assembly");

static void set_gs_base(uint64_t base)
{
    if (x86_bases_by_call) sys_call2(SYS_arch_prctl, X86_SET_GS, (long)base);
    else __asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
}

void run_adopt_block(run_thread *t)
{
    t->frame.tool_tls_base = run_tls_base();
    set_gs_base((uint64_t)(uintptr_t)t);
}

void run_bases_take(run_thread *t, const weave_context *c) { t->frame.app_gs_base = t->ctx.gs_base = c->gs_base; }

bool run_bases_inherit(run_thread *child, const run_thread *t, uint64_t flags)
{
    (void)flags;
    child->frame.app_gs_base = t->frame.app_gs_base;
    return true;
}

void run_leave_block(void) { set_gs_base(0); }

static void take_tool_base(void)
{
    run_thread *t = run_self();
    if (t->frame.tool_base_in) return;
    run_set_tls_base(t->frame.tool_tls_base);
    t->frame.tool_base_in = 1;
}

void run_bases_late(void)
{
    if (!x86_bases_by_call) return;
    inl_libc_wanted = take_tool_base;
    x86_bases_late = true;
}

void run_bases_by_call(void) { x86_bases_by_call = x86_bases_nowhere = true; }

inl_status run_check_processor(inl_error *e)
{
    if (x86_bases_choose(getauxval(AT_HWCAP2)) != X86_BASES_NOT) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "the processor or kernel lacks FSGSBASE (Linux 5.9 or later is needed)");
}
