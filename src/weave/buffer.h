/* A thread-private buffer in the frame: the next record goes to `next`; at `limit` it is full. */
#ifndef INL_WEAVE_BUFFER_H
#define INL_WEAVE_BUFFER_H

#include <stdint.h>

typedef struct weave_buffer_slot {
    uint64_t next, limit, base;
} weave_buffer_slot;

#endif
