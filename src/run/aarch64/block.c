/* The thread's block as assembly sees it, and a thread of execution that takes one. */
#include "run/aarch64/abi.h"
#include "run/aarch64/offsets.h"
#include "run/kernel.h"

#include <linux/sched.h>
#include <stddef.h>

#define AT(type, field, off) _Static_assert(offsetof(type, field) == (off), #field)
AT(run_thread, frame.slot, OFF_SLOT);
AT(run_thread, frame.slot[RUN_X0], OFF_SLOT_X0);
AT(run_thread, frame.slot[RUN_X1], OFF_SLOT_X1);
AT(run_thread, frame.slot[RUN_X2], OFF_SLOT_X2);
AT(run_thread, frame.slot[3], OFF_SLOT_X3);
AT(run_thread, frame.slot[RUN_X8], OFF_SLOT_X8);
AT(run_thread, frame.slot[RUN_X16], OFF_SLOT_X16);
AT(run_thread, frame.slot[RUN_X17], OFF_SLOT_X17);
AT(run_thread, frame.slot[RUN_X30], OFF_SLOT_X30);
AT(run_thread, frame.slot[RUN_SP], OFF_SLOT_SP);
AT(run_thread, frame.flags, OFF_FLAGS);
AT(run_thread, frame.app_tls_base, OFF_APP_TLS);
AT(run_thread, frame.tool_tls_base, OFF_TOOL_TLS);
AT(run_thread, frame.save_vectors, OFF_SAVE_VECTORS);
AT(run_thread, frame.load_vectors, OFF_LOAD_VECTORS);
AT(run_thread, frame.first_tls, OFF_FIRST_TLS);
AT(run_thread, ctx, OFF_CTX);
AT(run_thread, ctx.gpr[RUN_X30], CTX_X(30));
AT(run_thread, ctx.gpr[RUN_SP], CTX_SP);
AT(run_thread, ctx.pc, CTX_PC);
AT(run_thread, ctx.flags, CTX_FLAGS);
AT(run_thread, ctx.tls_base, CTX_TLS);
AT(run_thread, where, OFF_WHERE);
AT(run_thread, leave, OFF_LEAVE);
AT(run_thread, leave_arg, OFF_LEAVE_ARG);
AT(run_thread, runtime_stack, OFF_RUNTIME_STACK);
AT(run_thread, dispatch_entry, OFF_DISPATCH_ENTRY);
AT(run_thread, enter_pc, OFF_ENTER_PC);
AT(run_thread, syscall_gate, OFF_SYSCALL_GATE);
AT(run_thread, pending.present, OFF_PENDING);
AT(run_thread, engine, OFF_ENGINE);
_Static_assert(WEAVE_FRAME_WORD == TLS_BLOCK, "where threads find their block");
_Static_assert(sizeof(run_thread) <= WEAVE_IBL, "block layout");
_Static_assert(RUN_LEAVE_INDIRECT == 1 && RUN_LEAVE_SYSCALL == 2 && RUN_LEAVE_START == 4 && RUN_IN_CODE == 0 &&
                   RUN_IN_RUNTIME == 1,
               "numbers in assembly");

static void set_word(uint64_t tls_base, const void *word)
{
    __atomic_store_n((uint64_t *)(tls_base + WEAVE_FRAME_WORD), (uint64_t)(uintptr_t)word, __ATOMIC_RELAXED);
}

void run_adopt_block(run_thread *t)
{
    t->frame.tool_tls_base = run_tls_base();
    set_word(t->frame.tool_tls_base, t);
}

void run_leave_block(void) { set_word(run_tls_base(), NULL); }

void run_bases_take(run_thread *t, const weave_context *c) { set_word(c->tls_base, t); }

/* The way to its block leads over its thread pointer: two at once cannot have the same. Without any, each has the
 * first one of its own block. */
bool run_bases_inherit(run_thread *child, const run_thread *t, uint64_t flags)
{
    uint64_t base = child->ctx.tls_base;
    return !base || base != t->ctx.tls_base || flags & CLONE_VFORK;
}

void run_bases_late(void) {}
void run_bases_by_call(void) {} /* setting one is never the kernel's affair */

inl_status run_check_processor(inl_error *e)
{
    (void)e; /* what Inlay needs, every one has */
    return INL_OK;
}
