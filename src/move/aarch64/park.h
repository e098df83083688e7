/* There is no target "process" yet (live/aarch64/remote.c). */
#ifndef INL_MOVE_AARCH64_PARK_H
#define INL_MOVE_AARCH64_PARK_H

#define MOVE_PARK_BASE  0x550000000000
#define MOVE_PARK_DATA  (MOVE_PARK_BASE + 0x1000)
#define MOVE_PARK_BACK  MOVE_PARK_BASE
#define MOVE_PARK_CALL  MOVE_PARK_BASE
#define MOVE_PARK_AFTER MOVE_PARK_BASE

typedef struct move_park_slot {
    uint64_t calls;
} move_park_slot;

#endif
