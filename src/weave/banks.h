/* Where a counter lies in the thread frame. One that many places add to would make each addition wait for the one
 * before, since a load from where has just been stored takes several cycles; so the first counters have several words,
 * their banks, and each further place adds to another one. The value is the sum of all.
 *
 *     frame + counters - WEAVE_BANKS_SIZE    banks 1.., in groups: word [counter / 64][bank - 1][counter % 64]
 *     frame + counters                       bank 0: word [counter], of all counters
 */
#ifndef INL_WEAVE_BANKS_H
#define INL_WEAVE_BANKS_H

#include <stdint.h>

enum {
    WEAVE_BANKED = 4096, /* counters below have banks */
    WEAVE_BANKS = 8,
    WEAVE_BANK_GROUP = 64, /* counters whose banks lie together */
    WEAVE_GROUP_SIZE = (WEAVE_BANKS - 1) * WEAVE_BANK_GROUP * 8,
    WEAVE_BANKS_SIZE = WEAVE_BANKED / WEAVE_BANK_GROUP * WEAVE_GROUP_SIZE,
};

/* From the frame on. `counters`: where bank 0 begins. */
static inline int32_t weave_counter_at(int32_t counters, uint32_t counter, unsigned bank)
{
    if (!bank) return counters + 8 * (int32_t)counter;
    uint32_t group = counter / WEAVE_BANK_GROUP, within = counter % WEAVE_BANK_GROUP;
    uint32_t word = (bank - 1) * WEAVE_BANK_GROUP + within;
    return counters - WEAVE_BANKS_SIZE + (int32_t)(group * WEAVE_GROUP_SIZE + word * 8);
}

/* For each counter with banks, how many places add to it: the next one adds to this bank. */
typedef struct weave_places {
    uint8_t next[WEAVE_BANKED];
} weave_places;

#endif
