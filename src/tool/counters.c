/* Counters: an index each; the thread's block holds the values (weave/<isa>/frame.h). */
#include "tool/state.h"

static uint32_t next_index = 1;

static bool place(inlay_counter *c)
{
    inl_lock_take(&tool_small_lock);
    if (!c->index && next_index < WEAVE_MAX_COUNTERS) {
        c->index = next_index++;
        __atomic_store_n(&jit.dead_counters_high, next_index, __ATOMIC_RELEASE);
    }
    inl_lock_release(&tool_small_lock);
    if (!c->index) tool_say_limited("all %d counters are in use", WEAVE_MAX_COUNTERS - 1);
    return c->index != 0;
}

/* The engine has been set up since the first counters were made. */
void tool_counters_begin(void)
{
    __atomic_store_n(&jit.dead_counters_high, next_index, __ATOMIC_RELEASE);
}

static snippet *with_counter(snippet_kind kind, inlay_counter *c)
{
    if (!c || (!c->index && !place(c))) return NULL;
    snippet *s = tool_snippet_alloc(sizeof *s);
    if (!s) return NULL;
    s->kind = (uint8_t)kind;
    s->index = c->index;
    return s;
}

inlay_expr inlay_count_by(inlay_counter *c, inlay_expr amount)
{
    snippet *s = amount ? with_counter(SNIPPET_COUNT, c) : NULL;
    if (s) s->a = amount;
    return s;
}

inlay_expr inlay_count(inlay_counter *c, uint64_t amount)
{
    return inlay_count_by(c, inlay_const(amount));
}

inlay_expr inlay_counter_value(inlay_counter *c) { return with_counter(SNIPPET_COUNTER, c); }

static uint64_t value_in(const jit_thread *t, uint32_t index)
{
    const uint64_t *values = (const uint64_t *)((const char *)t + WEAVE_COUNTERS);
    return __atomic_load_n(&values[index], __ATOMIC_RELAXED);
}

uint64_t inlay_counter_sum(const inlay_counter *c)
{
    if (!c->index) return 0;
    bool entered = tool_enter();
    uint64_t sum = jit.dead_counters ? jit.dead_counters[c->index] : 0;
    for (const jit_thread *t = jit.threads; t; t = t->next) sum += value_in(t, c->index);
    tool_leave(entered);
    return sum;
}

uint64_t inlay_counter_of(const inlay_counter *c, const inlay_thread *thread)
{
    return c->index ? value_in((const jit_thread *)thread, c->index) : 0;
}
