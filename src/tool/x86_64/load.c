/* How a program is entered that the tool has loaded itself. */
#include "tool/tool.h"

enum { FLAGS_DEFAULT = 0x202 };

void load_start_context(weave_context *c, uint64_t pc, uint64_t sp)
{
    *c = (weave_context){.pc = pc, .flags = FLAGS_DEFAULT};
    c->gpr[4] = sp;
}

/* As the kernel enters a program: nothing in rdx to be called at the end. */
void load_enter(uint64_t pc, uint64_t sp)
{
    __asm__ volatile("mov %1, %%rsp\n\txor %%edx, %%edx\n\txor %%ebp, %%ebp\n\tjmp *%0"
                     :
                     : "a"(pc), "c"(sp)
                     : "memory");
    __builtin_unreachable();
}
