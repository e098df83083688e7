/* Nobody holds processes here yet (live/aarch64/remote.c). */
#include "moved/private.h"

void moved_park_settle(uint64_t at, const weave_context *c) { (void)at, (void)c; }
void moved_park_block(uint64_t at, uint64_t block) { (void)at, (void)block; }

unsigned moved_park_vectors(uint64_t at, moved_words out[2])
{
    (void)at, (void)out;
    return 0;
}

void moved_park_stack(uint64_t at, uint64_t stack, uint64_t flags, uint64_t size)
{
    (void)at, (void)stack, (void)flags, (void)size;
}
