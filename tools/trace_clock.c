/* The recorder's clocks: which frequency they have, and what the recording of an entry or exit costs.
 *
 * Both are measured when the program starts, in about two milliseconds. The frequency is that against CLOCK_MONOTONIC;
 * the reader finds a better one from the pairs of times that the file's chunks begin with. */
#include "trace.h"

#include <time.h>

enum { SPIN_NS = 1000 * 1000, BATCHES = 9, BATCH = 512, PAIRS = 8, NEAR = 1000 };

uint64_t trace_monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t trace_raw(inlay_trace_clock clock)
{
    return clock == INLAY_TRACE_CYCLES ? inlay_cycles_now() : trace_monotonic();
}

uint64_t trace_now(inlay_trace_clock clock)
{
    if (clock != INLAY_TRACE_CYCLES) return trace_monotonic();
    return inlay_cycles_now() - inlay_own_cycles_now();
}

/* Others may run between two readings, for as long as they like: the nearest of several are taken. */
void trace_pair(inlay_trace_clock clock, uint64_t *ticks, uint64_t *ns)
{
    uint64_t least = UINT64_MAX;
    for (unsigned k = 0; k < PAIRS && least > NEAR; k++) {
        uint64_t before = trace_raw(clock), now = trace_monotonic(), took = trace_raw(clock) - before;
        if (took >= least) continue;
        least = took;
        *ticks = before + took / 2;
        *ns = now;
    }
}

uint64_t trace_frequency(inlay_trace_clock clock)
{
    uint64_t from, begun, to, ended;
    if (clock != INLAY_TRACE_CYCLES) return 1000000000u;
    trace_pair(clock, &begun, &from);
    while (trace_monotonic() - from < SPIN_NS) {}
    trace_pair(clock, &ended, &to);
    return (uint64_t)((double)(ended - begun) * 1e9 / (double)(to - from));
}

/* What the woven code does, as near as C comes to it. */
static void record(volatile inlay_trace_record *to, inlay_trace_clock clock, uint64_t sp)
{
    to->when = trace_raw(clock) << 16 | sp >> 32;
    to->stack = (uint32_t)sp;
    to->what = 2;
}

uint64_t trace_overhead(inlay_trace_clock clock)
{
    static inlay_trace_record spare[BATCH];
    uint64_t best = UINT64_MAX;
    for (unsigned k = 0; k < BATCHES; k++) {
        uint64_t begun = trace_raw(clock);
        for (unsigned i = 0; i < BATCH; i++) record(&spare[i], clock, (uintptr_t)&spare[i]);
        uint64_t took = trace_raw(clock) - begun;
        if (took < best) best = took;
    }
    return best * 1000 / BATCH;
}
