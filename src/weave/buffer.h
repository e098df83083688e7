/* A thread-private buffer in the frame: the next record goes to `next`; at `limit` it is full.
 *
 * Where records are appended ahead (append.c), a stretch of code looks once whether there is room, and may put
 * snippet_buffer.slack records behind `limit`; `next` is then counted like a counter: what its number is, is said here.
 */
#ifndef INL_WEAVE_BUFFER_H
#define INL_WEAVE_BUFFER_H

#include <stdint.h>

typedef struct weave_buffer_slot {
    uint64_t next, limit, base;
} weave_buffer_slot;

enum { WEAVE_NEXT_OF = 0x40000000 }; /* + a buffer's slot: the counter that is its `next` */
static inline int weave_is_next(uint32_t counter) { return counter >= WEAVE_NEXT_OF; }

#endif
