/* How a program is entered that the tool has loaded itself. */
#include "tool/tool.h"

#include <inlay/reg.h>

void load_start_context(weave_context *c, uint64_t pc, uint64_t sp)
{
    *c = (weave_context){.pc = pc};
    c->gpr[INLAY_XSP] = sp;
}

/* As the kernel enters a program: nothing in x0 to be called at the end. */
void load_enter(uint64_t pc, uint64_t sp)
{
    __asm__ volatile("mov sp, %1\n\tmov x0, xzr\n\tmov x29, xzr\n\tmov x30, xzr\n\tbr %0"
                     :
                     : "r"(pc), "r"(sp)
                     : "x0", "x30", "memory");
    __builtin_unreachable();
}
