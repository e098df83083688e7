/* The runtime's begin in a process, and the ways between it and the engine. */
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#include "base/log.h"
#include "base/page.h"
#include "base/sys.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

run_process run_here;

void run_say(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (run_here.client.say) run_here.client.say(run_here.client.arg, text);
    else inl_log(INL_LOG_TRANSLATE, "%s", text);
}

inl_status run_begin(const run_engine *engine, const run_client *client, const run_start_state *start, inl_error *e)
{
    memset(&run_here, 0, sizeof run_here);
    run_here.engine = engine;
    if (client) run_here.client = *client;
    run_here.start = *start;
    run_proc_init();
    run_here.born_traced = !engine->is_native && run_is_traced();
    inl_status s = inl_page_check(e);
    if (!s) s = run_check_processor(e);
    if (s) return s;
    if (start->tool_high) run_own(start->tool_low, start->tool_high - start->tool_low, true);
    if (engine->watch) run_memory_begin();
    if (start->stack_high) run_own(start->stack_low, start->stack_high - start->stack_low, true);
    return INL_OK;
}

/* The private libc's block for it is the one it has. */
inl_status run_first_thread(inl_error *e)
{
    run_signals_init();
    run_thread *t = run_thread_new(e);
    if (!t) return e ? e->code : INL_ERR_NO_MEMORY;
    t->ctx = run_here.start.ctx;
    t->ctx.vectors = t->frame.vector_area;
    run_adopt_block(t);
    run_signals_init_thread(t);
    inl_lock_take(&run_here.lock);
    run_thread_link(t);
    inl_lock_release(&run_here.lock);
    return INL_OK;
}

uint64_t run_dispatch(run_thread *t) { return run_here.engine->dispatch(t); }

run_call *run_call_back(const run_thread *t)
{
    run_call *c = t->calls;
    while (c && !(c->waits && c->sp == run_sp(&t->ctx) && c->behind == t->ctx.pc)) c = c->outer;
    return c;
}

void run_go(void)
{
    run_thread *t = run_self();
    t->leave = RUN_LEAVE_START;
    t->enter_pc = run_dispatch(t);
    run_enter_code(t);
}

void run_end(void)
{
    run_thread *t = run_self();
    uint64_t mask = t->sigmask;
    stack_t none = {.ss_flags = SS_DISABLE};
    run_kernel_mask_all();
    run_signals_give_back(run_here.signals);
    sys_call2(SYS_sigaltstack, (long)&none, 0);
    run_leave_block();
    run_here.signals = NULL; /* they go with their last thread */
    run_threads_free();
    run_proc_end();
    inl_vec_free(&run_here.owned);
    inl_map_free(&run_here.attached);
    memset(&run_here, 0, sizeof run_here);
    run_kernel_mask_set(mask);
}
