/* The JIT engine under a tool, in a build that has it; the others have without_jit.c. */
#include "tool/state.h"

const char *tool_jit_missing(void) { return NULL; }

inl_status tool_jit_set_up(const run_client *client, const run_start_state *start, inl_error *e)
{
    const tool_options *o = &tool_now->options;
    jit_options options = {.instrument = tool_client_sees_code() ? tool_client_sees : NULL,
                           .stress = o->stress,
                           .chain_jumps = true,
                           .dump = o->dump,
                           .dump_low = o->dump_low,
                           .dump_high = o->dump_high,
                           .dump_wanted = tool_filter_images() || tool_filter_procs() ? tool_address_wanted : NULL};
    if (options.stress & JIT_STRESS_RANDOM_REGS) options.weave.stress |= WEAVE_STRESS_RANDOM_REGS;
    return jit_init(client, &options, start, e);
}

void tool_jit_run(void) { jit_run(); }
