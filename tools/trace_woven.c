/* What is inserted for counters, and for the user's routines: the calls, and the records of what they store. */
#include "trace.h"

#include <inlay/perf.h>
#include <inlay/trace.h>

static inlay_local *values, *counted;

bool trace_woven_prepare(void)
{
    if (!trace_routine_agrees()) return false;
    values = inlay_local_new(INLAY_TRACE_VALUES_MOST * sizeof(uint64_t));
    counted = trace_events_count() ? inlay_local_new(INLAY_PERF_MOST * sizeof(uint64_t)) : NULL;
    return values != NULL && (counted || !trace_events_count());
}

/* What a routine takes is no more the program's time than what Inlay takes itself. */
static void call(bool leaves, const inlay_trace_at *at)
{
    uint64_t begun = inlay_cycles_now();
    trace_routine_call(leaves, at);
    inlay_own_cycles_add(inlay_cycles_now() - begun);
}

static void enters(inlay_trace_proc *p, uint64_t *to, uint64_t sp, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                   uint64_t e, uint64_t f)
{
    const uint64_t arguments[INLAY_TRACE_ARGUMENTS] = {a, b, c, d, e, f};
    call(false, &(inlay_trace_at){p, sp, arguments, to, inlay_thread_number_now()});
}

static void leaves(inlay_trace_proc *p, uint64_t *to, uint64_t sp)
{
    call(true, &(inlay_trace_at){p, sp, NULL, to, inlay_thread_number_now()});
}

inlay_expr trace_woven_call(trace_proc *p, bool leaving)
{
    inlay_expr proc = inlay_const((uintptr_t)&p->told), to = inlay_local_address(values);
    if (!trace_routine_is_there(leaving)) return NULL;
    if (leaving) return inlay_call(leaves, proc, to, inlay_stack_pointer());
    return inlay_call(enters, proc, to, inlay_stack_pointer(), inlay_argument(0), inlay_argument(1), inlay_argument(2),
                      inlay_argument(3), inlay_argument(4), inlay_argument(5));
}

static inlay_expr sequence(inlay_expr first, inlay_expr second)
{
    return first ? inlay_sequence(first, second) : second;
}

inlay_expr trace_woven_record(trace_proc *p, bool leaving, inlay_buffer *records)
{
    inlay_expr all = trace_woven_call(p, leaving);
    for (unsigned k = 0; k < trace_routine_values(); k++) {
        inlay_expr at = inlay_binary(INLAY_ADD, inlay_local_address(values), inlay_const(k * sizeof(uint64_t)));
        all = sequence(all, trace_event_value(records, k, inlay_load(at, 8)));
    }
    return all;
}

/* --- counters --- */

inlay_expr trace_event_value(inlay_buffer *records, unsigned event, inlay_expr value)
{
    return inlay_append(records, INLAY_FIELD(8, value),
                        INLAY_FIELD(4, inlay_const(event | 'e' << 8 | sizeof(uint64_t) << 16)),
                        INLAY_FIELD(4, inlay_const(INLAY_TRACE_VALUE)));
}

inlay_expr trace_events_record(inlay_buffer *records)
{
    inlay_expr all = counted ? inlay_call(trace_events_read, inlay_local_address(counted)) : NULL;
    for (unsigned i = 0; i < trace_events_count(); i++) {
        inlay_expr at = inlay_binary(INLAY_ADD, inlay_local_address(counted), inlay_const(i * sizeof(uint64_t)));
        all = inlay_sequence(all, trace_event_value(records, trace_events_first() + i, inlay_load(at, 8)));
    }
    return all;
}
