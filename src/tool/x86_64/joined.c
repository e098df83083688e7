/* The threads of a process that the tool has come to, settled from within: should whoever holds them be killed from now
 * on, each goes on as its frame in the parking area says (move/live.h), which is under the engine. Until here the
 * frames lead back to where the program stood, and the first thread, which goes on with the tool's work whoever holds
 * it, is waited for by the others. */
#include "move/live.h"
#include "run/kernel.h"
#include "run/x86_64/sigframe.h"
#include "tool/tool.h"

#include "move/x86_64/park.h"

void join_settle(const tool_joined *threads, size_t count)
{
    move_park *park = (move_park *)MOVE_PARK_DATA;
    for (size_t i = 0; i < count; i++)
        if (!threads[i].slot) return; /* it stands elsewhere */
    for (size_t i = 0; i < count; i++) {
        const tool_joined *t = &threads[i];
        move_park_slot *s = (move_park_slot *)t->slot;
        s->gs_base = t->block;
        s->frame.mc.gregs[REG_RIP] = (greg_t)(uintptr_t)run_leave_code;
        s->frame.mask &= ~RUN_FAULTS;
        s->frame.stack = (stack_t){
            .ss_sp = (void *)t->stack, .ss_flags = (int)t->stack_flags, .ss_size = t->stack_size};
    }
    park->gone_count = 0; /* the tool's memory */
}
