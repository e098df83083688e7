/* The tool leaves its process because it asks for it (include/inlay/tool.h). */
#include "tool/state.h"

#include <inlay/tool.h>

bool inlay_detach(void)
{
    const char *why = "only where the JIT engine runs the program";
    if (tool_handoff_data.role == TOOL_RESIDENT && tool_jit_leave(&why)) return true;
    inlay_warn("inlay_detach: the tool stays: %s", why);
    return false;
}
