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

unsigned moved_park_vectors(uint64_t at, moved_words out[2])
{
    uint8_t *state = (uint8_t *)at + MOVE_SLOT_VECTORS;
    if (!at) return 0;
    const size_t size = moved_vector_bytes(state);
    out[0] = (moved_words){(uint64_t *)(state + MOVE_VECTORS_LOW), (MOVE_VECTORS_LOW_END - MOVE_VECTORS_LOW) / 8};
    if (size <= MOVE_VECTORS_HIGH) return 1;
    out[1] = (moved_words){(uint64_t *)(state + MOVE_VECTORS_HIGH), (size - MOVE_VECTORS_HIGH) / 8};
    return 2;
}

void moved_park_stack(uint64_t at, uint64_t stack, uint64_t flags, uint64_t size)
{
    move_park_slot *slot = (move_park_slot *)at;
    if (slot) slot->frame.stack = (stack_t){.ss_sp = (void *)stack, .ss_flags = (int)flags, .ss_size = size};
}
