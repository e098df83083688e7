/* Counters whose counts the rewrite engine placed elsewhere (rewrite/count.c): what the tool counts is a
 * sum of flows through procedures, and these follow from the counters on a few edges of each.
 *
 * The equations are made in the instrumentor, lie in the carried heap, and are solved when somebody reads
 * a counter: for all counters at once, since one solution says them all. While the program runs the
 * solution is made anew each time; at its end, and for the report before an exec, it is kept. */
#include "tool/state.h"
#include "cfg/placement.h"
#include "rewrite/rewrite.h"

#include <stdlib.h>
#include <string.h>

typedef struct equations {
    struct equations *next;
    uint32_t number;
    rewrite_flows flows;
} equations;

static uint64_t *final; /* the solution at the program's end, by counter */
static const void *final_of; /* ... of which thread, NULL: of all */
static bool reporting;  /* ... or, before an exec, of a report that may turn out not to be the last */
static bool values_wanted; /* some snippet reads a counter where it runs */

void tool_counter_value_wanted(void) { values_wanted = true; }

bool tool_derive_used(void)
{
    tool_heap_root *heap = tool_heap();
    return heap && heap->roots[ROOT_FLOWS];
}

uint32_t tool_derive_counter(void *arg)
{
    (void)arg;
    return values_wanted ? 0 : tool_counter_fresh();
}

static void *carried_copy(const void *from, size_t bytes)
{
    void *to = tool_carried_alloc(bytes ? bytes : 1);
    return to ? memcpy(to, from, bytes) : NULL;
}

uint32_t tool_derive_placed(void *arg, const rewrite_flows *flows)
{
    (void)arg;
    equations *e = tool_carried_alloc(sizeof *e);
    if (!e) return 0;
    e->flows = *flows;
    e->flows.edges = carried_copy(flows->edges, flows->edge_count * sizeof *flows->edges);
    e->flows.terms = carried_copy(flows->terms, flows->term_count * sizeof *flows->terms);
    if (!e->flows.edges || !e->flows.terms) return 0;
    e->next = tool_heap()->roots[ROOT_FLOWS];
    e->number = e->next ? e->next->number + 1 : 1;
    tool_heap()->roots[ROOT_FLOWS] = e;
    return e->number;
}

/* --- solving --- */

/* Most procedures of a program are never entered. */
static bool was_entered(const rewrite_flows *f, tool_counter_reader *read, const void *of)
{
    for (uint32_t i = 0; i < f->edge_count; i++)
        if (f->edges[i].counter && read(of, f->edges[i].counter)) return true;
    return false;
}

static bool add_solution(const rewrite_flows *f, tool_counter_reader *read, const void *of, uint64_t *sums,
                         inl_arena *arena)
{
    cfg_flow_graph g = {.node_count = f->node_count, .edge_count = f->edge_count};
    g.edges = inl_arena_alloc(arena, f->edge_count * sizeof *g.edges);
    g.chord = inl_arena_alloc(arena, f->edge_count + 1);
    uint64_t *flow = inl_arena_alloc(arena, f->edge_count * sizeof *flow);
    if (!g.edges || !g.chord || !flow) return false;
    for (uint32_t i = 0; i < f->edge_count; i++) {
        const rewrite_flow_edge *e = &f->edges[i];
        g.edges[i].from = e->from;
        g.edges[i].to = e->to;
        g.chord[i] = e->counter != 0 || e->from == e->to;
        if (e->counter) flow[i] = read(of, e->counter);
    }
    if (!cfg_flow_derive(&g, flow, arena)) return false;
    for (uint32_t i = 0; i < f->term_count; i++)
        sums[f->terms[i].counter] += f->terms[i].amount * flow[f->terms[i].edge];
    return true;
}

static uint64_t *solve(tool_counter_reader *read, const void *of)
{
    tool_heap_root *heap = tool_heap();
    uint64_t *sums = calloc(heap->numbers[ROOT_COUNTERS] + 1, sizeof *sums);
    inl_arena arena = {0};
    for (equations *e = heap->roots[ROOT_FLOWS]; sums && e; e = e->next) {
        inl_arena_reset(&arena);
        if (!was_entered(&e->flows, read, of)) continue;
        if (add_solution(&e->flows, read, of, sums, &arena)) continue;
        free(sums);
        sums = NULL;
    }
    inl_arena_free(&arena);
    if (!sums) tool_say_limited("out of memory: counters cannot be told");
    return sums;
}

uint64_t *tool_derive_all(tool_counter_reader *read, const void *of) { return solve(read, of); }

static void forget(void)
{
    free(final);
    final = NULL;
}

void tool_derive_report(bool begins)
{
    forget();
    reporting = begins;
}

uint64_t tool_derived(uint32_t index, tool_counter_reader *read, const void *of)
{
    if (!tool_derive_used()) return 0;
    bool keep = jit.exiting || reporting;
    bool known = keep && final && final_of == of;
    uint64_t *sums = known ? final : solve(read, of);
    if (!sums) return 0;
    uint64_t value = sums[index];
    if (known) return value;
    if (keep) forget();
    else free(sums);
    if (keep) final = sums, final_of = of;
    return value;
}
