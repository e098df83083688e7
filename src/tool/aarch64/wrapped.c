/* No procedure is wrapped on AArch64 yet: a call of the original would need its return found (inlay/wrap.h says so). */
#include "tool/wrap.h"

const bool tool_can_wrap = false;

void tool_wrap_call(void (*routine)(void), tool_wrap_values *v, const uint64_t *stack, size_t words)
{
    (void)routine, (void)v, (void)stack, (void)words;
}
void tool_wrap_original(void) {}
void tool_wrap_back(tool_wrap_values *v)
{
    (void)v;
    __builtin_trap();
}
void tool_wrap_take(const weave_context *c, tool_wrap_values *v, tool_wrap_part part) { (void)c, (void)v, (void)part; }
void tool_wrap_put(weave_context *c, const tool_wrap_values *v, tool_wrap_part part, cfg_changed which)
{
    (void)c, (void)v, (void)part, (void)which;
}
uint64_t tool_wrap_fresh(weave_context *c, unsigned words)
{
    (void)c, (void)words;
    return 0;
}
void tool_wrap_put_frame(run_thread *t, const weave_frame *before) { (void)t, (void)before; }
