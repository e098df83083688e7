/* The runtime without a code cache: threads, processes, signals' dispositions and the client, for an
 * engine whose code is part of the program (jit_native in jit.h). */
#include "jit/kernel.h"

#include <string.h>

inl_status jit_native_init(const jit_native *native, const jit_client *client, const jit_start_state *start,
                           inl_error *e)
{
    memset(&jit, 0, sizeof jit);
    jit.native = native;
    jit.client = *client;
    jit.start = *start;
    jit_proc_init();
    inl_status s = jit_check_processor(e);
    if (s) return s;
    jit_own(start->tool_low, start->tool_high - start->tool_low, true);
    jit_signals_init();
    return jit_first_thread(e);
}

void jit_native_run(void)
{
    jit_thread *t = jit_self();
    t->leave = JIT_LEAVE_START;
    t->enter_pc = jit_dispatch(t);
    jit_enter_cache(t);
}
