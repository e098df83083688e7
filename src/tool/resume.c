/* The program goes on with a context that an analysis routine has made (context.h), or ends there. What the routine was
 * called by is given up; the engine knows how, and what that means for counts. */
#include "tool/state.h"
#include "tool/wrap.h"
#include "moved/moved.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#include <inlay/context.h>
#include <inlay/image.h>
#include <inlay/tool.h>

_Static_assert(sizeof(inlay_context) == sizeof(weave_context), "the public context is the weaver's");

static run_thread *thread_now(void) { return tool_handoff_data.role == TOOL_INSTRUMENTOR ? NULL : run_self(); }

static const char *fault_here(const run_thread *t)
{
    if (!t) return "the program does not run yet";
    return t->frame.in_tool ? NULL : "this is for analysis routines, called by inlay_call";
}

static const char *fault_of(const run_thread *t, const weave_context *c)
{
    const char *why = fault_here(t);
    if (why) return why;
    if (c->vectors != t->frame.vector_area) return "the context is not one that the routine got by inlay_context_arg";
    return NULL;
}

void inlay_resume(const inlay_context *context)
{
    weave_context c = *(const weave_context *)(const void *)context;
    run_thread *t = thread_now();
    if (t && !c.vectors) c.vectors = t->frame.vector_area; /* as they are */
    const char *why = fault_of(t, &c);
    if (!why) {
        c.pc = inlay_address_real(c.pc);
        t->ctx = c;
        tool_wrap_leave(t);
        run_here.engine->resume(t);
        why = "not on this processor";
    }
    tool_fail(TOOL_EXIT_FAILED, "the program cannot go on by inlay_resume: %s", why);
}

/* As a return would, from where one stands; what is behind the address has moved. */
static void return_anywhere(const weave_context *context)
{
    weave_context c = *context;
    run_thread *t = run_self();
    c.pc = run_return_take(&c);
    t->ctx = c;
    run_here.engine->resume(t);
}

void (*const tool_return_anywhere)(void) = (void (*)(void))return_anywhere;

/* Nothing was counted in advance where a routine is called. */
void inlay_end(int status)
{
    run_thread *t = thread_now();
    const char *why = fault_here(t);
    if (why) tool_fail(TOOL_EXIT_FAILED, "the program cannot be ended by inlay_end: %s", why);
    run_kernel_mask_all();
    tool_wrap_leave(t);
    t->where = RUN_IN_RUNTIME;
    t->frame.in_tool = 0;
    run_process_exit(t, status & 0xff);
}
