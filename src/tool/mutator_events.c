/* The mutator's file in a process that it changes. */
#include "tool/mutator.h"

#include <inlay/tool.h>

void mutator_resident(void)
{
    tool_now->options.mutating = true;
    inlay_start();
    __builtin_unreachable();
}
