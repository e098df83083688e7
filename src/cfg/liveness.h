/* Liveness of registers and of each flag along a straight line of steps with side exits.
 *
 * Two questions are answered for each place: is the value *read* later on (live), and could the
 * program *see* it later on, because an instruction that may fault, and so enter a signal handler
 * with the whole register file on show, comes before the value is overwritten (seen). A value that
 * is neither may be destroyed; one that is only seen may be moved elsewhere, if it can be found again.
 * Live values are always seen as well.
 */
#ifndef INL_CFG_LIVENESS_H
#define INL_CFG_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cfg_need {
    uint64_t regs;
    uint32_t flags;
} cfg_need;

typedef struct cfg_step {
    cfg_need reads; /* used in any part */
    cfg_need kills; /* certainly overwritten whole */
    bool may_fault; /* everything may be looked at while the step runs */
    bool exits;     /* control may leave here: what `exit` holds is wanted then */
    bool ends;      /* ... and never comes to the next step */
    cfg_need exit;
} cfg_step;

typedef struct cfg_live {
    cfg_need live, seen; /* before the step */
} cfg_live;

/* Fills live[0..count]; live[count], what is wanted behind the last step, is the caller's input.
 * `all` is every register and flag there is. */
void cfg_liveness(const cfg_step *steps, size_t count, cfg_need all, cfg_live *live);

#endif
