/* Sums that waited (sums.c), when the program runs: what the counters say is added to the tool's variables before
 * its callbacks at the end look at them, as often as there is an end: an exec that fails is none.
 *
 * A forked child has the variables as they were, and its parent's counters are reset: what they said is kept, for
 * what has waited is the child's as well. */
#include "tool/sums.h"

#include <stdlib.h>

static uint64_t read_all(const void *of, uint32_t index)
{
    const uint64_t *inherited = tool_now->inherited;
    return (inherited ? inherited[index] : 0) + tool_counter_total(of, index);
}

static void add(const sum_cell *c, uint64_t amount)
{
    uint64_t base = c->variable ? *(const uint64_t *)(uintptr_t)c->variable : 0;
    if (c->variable && !base) return;
    void *at = (void *)(uintptr_t)(base + c->at);
    if (c->size == 8) __atomic_fetch_add((uint64_t *)at, amount, __ATOMIC_RELAXED);
    else __atomic_fetch_add((uint32_t *)at, (uint32_t)amount, __ATOMIC_RELAXED);
}

void tool_sums_add(void)
{
    tool_heap_root *heap = tool_heap();
    if (!heap || !heap->roots[ROOT_SUMS]) return;
    bool entered = tool_enter();
    uint64_t *derived = tool_derive_all(read_all, NULL);
    for (sum *s = heap->roots[ROOT_SUMS]; s && derived; s = s->next) {
        uint64_t value = read_all(NULL, s->counter) + derived[s->counter];
        if (value != s->done) add(&s->cell, value - s->done);
        s->done = value;
    }
    free(derived);
    tool_leave(entered);
}

void tool_sums_fork_child(void)
{
    tool_heap_root *heap = tool_heap();
    if (!heap || !heap->roots[ROOT_SUMS]) return;
    size_t count = heap->numbers[ROOT_COUNTERS] + 1;
    uint64_t *inherited = tool_now->inherited;
    if (!inherited) inherited = tool_now->inherited = calloc(count, sizeof *inherited);
    if (!inherited) tool_say_limited("out of memory: what was counted before the fork is lost");
    for (uint32_t i = 0; inherited && i < count; i++) {
        uint64_t now = tool_counter_total(NULL, i);
        if (now) inherited[i] += now;
    }
}
