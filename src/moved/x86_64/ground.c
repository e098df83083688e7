/* What a thread stands on may go: nothing of x86-64's ways to the gate lies there. */
#include "moved/private.h"

bool moved_loses_ground(const weave_context *c)
{
    (void)c;
    return false;
}

long moved_unmap_ground(run_thread *t, weave_context *c) { return run_pass(t, c); }
