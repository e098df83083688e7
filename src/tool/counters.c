/* Counters: an index each; the thread's block holds the values (weave/<isa>/frame.h).
 *
 * Where a tool is carried, counters that are variables of the tool itself lose their index with the
 * instrumentor's process: a list of them in the carried heap gives it back. Those in carried memory keep
 * theirs, but main may write to what it allocates, so these are in the list too. */
#include "tool/glibc.h"
#include "tool/state.h"

#include <elf.h>

typedef struct placed { /* in the carried heap */
    struct placed *next;
    inlay_counter *counter;
    uint32_t index;
} placed;

bool tool_is_static(const void *p) { return (const char *)p >= (const char *)&__ehdr_start && (const char *)p < end; }

static void note_numbers(void)
{
    tool_heap_root *heap = tool_heap();
    if (!heap) return;
    heap->numbers[ROOT_COUNTERS] = tool_now->next_counter;
    heap->numbers[ROOT_BANKED] = tool_now->next_banked;
}

/* False when the tool that is carried could not find it again. */
static bool note(inlay_counter *c, uint32_t index)
{
    tool_heap_root *heap = tool_heap();
    if (!heap) return true;
    bool held = tool_heap_holds(c);
    if (!held && !tool_is_static(c)) {
        tool_mistake("a counter in memory from malloc, or of a stack, does not travel into a rewritten program; use "
                     "inlay_alloc, or make it static");
        return false;
    }
    note_numbers();
    if (held && heap->start && (uint64_t)(uintptr_t)c >= heap->start) return true;
    placed *p = tool_carried_alloc(sizeof *p);
    if (!p) return false;
    *p = (placed){heap->roots[ROOT_COUNTERS], c, index};
    heap->roots[ROOT_COUNTERS] = p;
    return true;
}

void tool_counters_restore(void)
{
    tool_heap_root *heap = tool_heap();
    for (placed *p = heap->roots[ROOT_COUNTERS]; p; p = p->next) p->counter->index = p->index;
    tool_now->next_counter = (uint32_t)heap->numbers[ROOT_COUNTERS];
    tool_now->next_banked = (uint32_t)heap->numbers[ROOT_BANKED];
}

static void publish(void)
{
    __atomic_store_n(&run_here.banked_high, tool_now->next_banked, __ATOMIC_RELEASE);
    __atomic_store_n(&run_here.dead_counters_high, tool_now->next_counter, __ATOMIC_RELEASE);
}

/* A number that nobody has; 0: none is left. The lock is held. */
static uint32_t fresh_number(bool with_banks)
{
    if (with_banks && tool_now->next_banked < WEAVE_BANKED) return tool_now->next_banked++;
    return tool_now->next_counter < WEAVE_MAX_COUNTERS ? tool_now->next_counter++ : 0;
}

static bool place(inlay_counter *c, bool with_banks)
{
    inl_lock_take(&tool_now->locks.small);
    uint32_t index = c->index ? 0 : fresh_number(with_banks);
    bool fresh = index;
    if (fresh) {
        c->index = index;
        publish();
    }
    inl_lock_release(&tool_now->locks.small);
    if (!c->index) tool_mistake("all %d counters are in use", WEAVE_MAX_COUNTERS - 1);
    if (fresh && !note(c, c->index)) c->index = 0;
    return c->index != 0;
}

uint32_t tool_counter_fresh(bool with_banks)
{
    inl_lock_take(&tool_now->locks.small);
    uint32_t index = fresh_number(with_banks);
    if (index) {
        note_numbers();
        publish(); /* images are planned while threads come and go, too (later.c) */
    }
    inl_lock_release(&tool_now->locks.small);
    return index;
}

/* The engine has been set up since the first counters were made. */
void tool_counters_begin(void) { publish(); }

uint32_t tool_counters_count(void) { return tool_now->next_counter; }

void inlay_counter_reserve(inlay_counter *c)
{
    if (!c || c->index || !place(c, true)) return;
    uint64_t where = (uint64_t)(uintptr_t)c - (uint64_t)(uintptr_t)&__ehdr_start;
    tool_now->kept.counters_hash = (tool_now->kept.counters_hash * 31 + c->index) * 0x9e3779b97f4a7c15u + where;
}

bool tool_counter_has_place(inlay_counter *c, bool with_banks)
{
    if (!c) tool_mistake("a counter that is NULL");
    return c && (c->index || place(c, with_banks));
}

inlay_expr inlay_count_by(inlay_counter *c, inlay_expr amount)
{
    if (!amount) tool_mistake("inlay_count_by: its amount is NULL");
    if (!amount || !tool_counter_has_place(c, true)) return NULL;
    return tool_snippet_of((snippet){.kind = SNIPPET_COUNT, .index = c->index, .a = amount});
}

inlay_expr inlay_count(inlay_counter *c, uint64_t amount) { return inlay_count_by(c, inlay_const(amount)); }

static uint64_t value_in(const void *thread, uint32_t index) { return run_counter_of(thread, index); }

uint64_t tool_counter_total(const void *all, uint32_t index)
{
    (void)all;
    return run_counter_sum_now(index);
}

uint64_t inlay_counter_sum(const inlay_counter *c)
{
    if (!c || !c->index) return 0;
    bool entered = tool_enter();
    uint64_t sum = tool_counter_total(NULL, c->index) + tool_derived(c->index, tool_counter_total, NULL) +
                   tool_joint_part(c->index, tool_counter_total, NULL);
    tool_leave(entered);
    return sum;
}

uint64_t inlay_counter_of(const inlay_counter *c, const inlay_thread *thread)
{
    if (!c || !thread || !c->index) return 0;
    bool entered = tool_enter();
    uint64_t value = value_in(thread, c->index) + tool_derived(c->index, value_in, thread) +
                     tool_joint_part(c->index, value_in, thread);
    tool_leave(entered);
    return value;
}
