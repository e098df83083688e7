/* Counters beside the clock (--event): their values stand before the entry or exit that they belong to.
 *
 * All are read at once, before the record: so what the record costs lies between two readings always, and is taken off
 * as the clock's is. How much that is, is measured at the first reading: earlier a program may not run at its own speed
 * yet (a process that is being attached to). */
#include "trace.h"

#include <inlay/perf.h>

#include <string.h>

static inlay_perf *counters; /* NULL: none are asked for */
static unsigned first;       /* of their numbers */
static inlay_trace_clock clock_read;
static bool is_own;                       /* the clock is without what a reading takes */
static trace_cost costs[INLAY_PERF_MOST]; /* of the process that was the first */
static bool measured, told;               /* `costs` are known; the present file has them */
static inlay_mutex lock;

bool trace_events_prepare(const trace_settings *s)
{
    clock_read = s->clock;
    is_own = s->is_own;
    if (!s->events) return true;
    counters = inlay_perf_new(s->events);
    first = trace_routine_values();
    if (counters && first + inlay_perf_count(counters) > INLAY_TRACE_EVENTS_MOST) {
        inlay_warn("--event: %u events, with %u values of the tool's own: a recording has %d",
                   inlay_perf_count(counters), first, INLAY_TRACE_EVENTS_MOST);
        return false;
    }
    return counters != NULL;
}

/* The least of several rounds, since others may run meanwhile. */
static void measure(void)
{
    enum { ROUNDS = 9, READINGS = 32 };
    uint64_t before[INLAY_PERF_MOST], last[INLAY_PERF_MOST];
    memset(costs, -1, sizeof costs);
    for (unsigned round = 0; round < ROUNDS; round++) {
        inlay_perf_read(counters, before);
        uint64_t begun = trace_raw(clock_read);
        for (unsigned i = 0; i < READINGS; i++) inlay_perf_read(counters, last);
        uint64_t took = (trace_raw(clock_read) - begun) * 1000 / READINGS;
        for (unsigned k = 0; k < inlay_perf_count(counters); k++) {
            uint64_t counts = (last[k] - before[k]) * 1000 / READINGS;
            if (counts < costs[k].counts) costs[k].counts = counts;
            if (is_own) costs[k].ticks = 0;
            else if (took < costs[k].ticks) costs[k].ticks = took;
        }
    }
}

static void tell(void)
{
    inlay_lock(&lock);
    bool begins = !measured;
    if (begins) measure();
    measured = true;
    for (unsigned k = 0; !told && k < inlay_perf_count(counters); k++) {
        const char *why, *name = inlay_perf_name(counters, k);
        inlay_perf_how how = inlay_perf_state(counters, k, &why);
        trace_note_event(first + k, how, &costs[k], name, why);
        if (why && begins) inlay_warn("event %s is not counted: %s", name, why);
    }
    __atomic_store_n(&told, true, __ATOMIC_RELEASE);
    inlay_unlock(&lock);
}

unsigned trace_events_count(void) { return counters ? inlay_perf_count(counters) : 0; }
unsigned trace_events_first(void) { return first; }

void trace_events_read(uint64_t *to)
{
    if (!__atomic_load_n(&told, __ATOMIC_ACQUIRE)) tell();
    inlay_perf_read(counters, to);
}

void trace_events_begin(void) { told = false; }

void trace_events_thread_ends(unsigned thread)
{
    inlay_perf_total totals[INLAY_PERF_MOST];
    if (!counters || !inlay_perf_end(counters, totals)) return;
    for (unsigned k = 0; k < inlay_perf_count(counters); k++)
        trace_note_event_total(thread, first + k, totals[k].value, totals[k].enabled, totals[k].running);
}

void trace_events_end(void)
{
    if (counters) inlay_perf_close(counters);
}

void trace_events_forked(void)
{
    lock.word = 0;
    if (counters) inlay_perf_forked(counters);
}
