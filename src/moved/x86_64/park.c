/* Frames of threads that stand still while the tool comes or goes (move/live.h): where they go on when whoever holds
 * the process does not see to it any more. */
#include "moved/private.h"
#include "move/live.h"
#include "run/x86_64/abi.h"

#include <sys/syscall.h>

void moved_park_settle(uint64_t at, const weave_context *c)
{
    move_park_slot *slot = (move_park_slot *)at;
    if (!slot) return;
    moved_frame_set(&slot->frame, c);
    if (c->gpr[RUN_RAX] == SYS_restart_syscall && slot->restarts)
        slot->frame.mc.gregs[REG_RAX] = (greg_t)slot->restarts;
}

void moved_park_block(uint64_t at, uint64_t block)
{
    move_park_slot *slot = (move_park_slot *)at;
    if (slot) slot->gs_base = block;
}

void moved_park_stack(uint64_t at, uint64_t stack, uint64_t flags, uint64_t size)
{
    move_park_slot *slot = (move_park_slot *)at;
    if (slot) slot->frame.stack = (stack_t){.ss_sp = (void *)stack, .ss_flags = (int)flags, .ss_size = size};
}
