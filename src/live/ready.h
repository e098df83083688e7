/* Memory that a process is given in two steps, of which only the mapping needs its threads stopped (ready.c). */
#ifndef INL_LIVE_READY_H
#define INL_LIVE_READY_H

#include "live/change.h"

typedef struct live_ready {
    INL_VEC(live_text) pieces; /* with bytes of their own */
    size_t mapped;             /* of these */
    bool is_apart;             /* children of fork do not get it */
} live_ready;

inl_status live_ready_add(live_ready *, const live_text *, inl_error *);
void live_ready_end(live_ready *);
/* `runs_on`: the process will run before it is taken. All or nothing. */
inl_status live_ready_map(live_ready *, live_process *, bool runs_on, inl_error *);
void live_ready_unmap(live_ready *, live_process *);
inl_status live_ready_fill(const live_ready *, const live_process *, inl_error *);
/* Out of `there`, what is mapped now. */
inl_status live_ready_take(live_ready *, live_process *, live_process *there, inl_error *);

#endif
