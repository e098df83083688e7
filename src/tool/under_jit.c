/* The JIT engine under a tool, in a build that has it; the others have without_jit.c. */
#include "tool/debug_info.h"
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
    if (o->debug_info) {
        options.made = debug_info_made;
        options.flushed = debug_info_flushed;
    }
    if (options.stress & JIT_STRESS_RANDOM_REGS) options.weave.stress |= WEAVE_STRESS_RANDOM_REGS;
    inl_status s = jit_init(client, &options, start, e);
    if (!s && o->debug_info && !debug_info_begin()) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return s;
}

void tool_jit_run(void) { jit_run(); }

void tool_jit_image_gone(const image *im) { debug_info_image_gone(im); }

void tool_jit_forked(void) { debug_info_forked(); }
