/* What a thread's counters had, where they changed, for pictures of time: raw times, as its calls have them. */
#ifndef INL_TRACE_COUNTERS_H
#define INL_TRACE_COUNTERS_H

#include "trace/out.h"

typedef struct trace_counter_teller {
    void (*value)(uint32_t event, uint64_t now, uint64_t value, void *arg);
    void *arg;
} trace_counter_teller;

inl_status trace_counters_tell(const trace_session *, const trace_thread *, const trace_view *,
                               const trace_counter_teller *, inl_error *);

#endif
