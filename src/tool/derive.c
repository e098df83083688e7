/* Counters whose counts the rewrite engine placed elsewhere (rewrite/count.c): what the tool counts is a
 * sum of flows through procedures, and these follow from the counters on a few edges of each.
 *
 * The equations are made in the instrumentor, lie in the carried heap, and are solved when somebody reads
 * a counter: for all counters at once, since one solution says them all. While the program runs the
 * solution is made anew each time; at its end, and for the report before an exec, it is kept. */
#include "tool/state.h"
#include "cfg/placement.h"
#include "tool/equations.h"
#include "run/thread.h"

#include <stdlib.h>
#include <string.h>

static tool_derivation *state(void) { return &tool_now->derive; }

/* Counts of procedures that were shown before may be placed elsewhere already. */
bool tool_counter_value_wanted(void)
{
    bool late = tool_handoff_data.role == TOOL_INSTRUMENTOR && !state()->values_wanted && tool_derive_used();
    if (late) state()->value_late = true;
    else state()->values_wanted = true;
    return !late;
}

bool tool_derive_failed(void) { return state()->value_late; }

bool tool_derive_used(void)
{
    tool_heap_root *heap = tool_heap();
    return heap && heap->roots[ROOT_FLOWS];
}

uint32_t tool_derive_counter(void *arg)
{
    (void)arg;
    return state()->values_wanted ? 0 : tool_counter_fresh(false);
}

uint32_t tool_derive_placed(void *arg, const move_flows *flows)
{
    (void)arg;
    return tool_equations_add(flows);
}

/* --- flows that end, or begin, in the middle: where a signal's handler jumps out, or goes on elsewhere --- */

enum { ENDS = 1 << 14 };
typedef struct tool_flow_end {
    uint64_t key; /* number of the equations << 40 | node << 16 | thread; 0: free */
    int64_t times;
} flow_end;

bool tool_derive_begin(void)
{
    if (tool_derive_used() && !state()->ends) state()->ends = tool_alloc(ENDS * sizeof *state()->ends);
    return !tool_derive_used() || state()->ends;
}

static uint64_t key_of(uint32_t number, uint32_t node, const run_thread *t)
{
    return (uint64_t)number << 40 | (uint64_t)(node & 0xffffff) << 16 | (t->frame.thread_number & 0xffff);
}

static uint32_t node_of(uint32_t number, uint32_t block, bool entered)
{
    tool_equations of;
    if (!tool_equations_find(number, &of) || block >= of.edge_count) return 0;
    tool_edge_reader edges = tool_equations_edges(&of);
    move_flow_edge e = {0};
    for (uint32_t i = 0; i <= block; i++) e = tool_equations_edge(&edges);
    return entered ? e.to : e.from;
}

void tool_derive_flow_ends(run_thread *t, uint32_t number, uint32_t block, bool entered, int64_t times)
{
    uint32_t node = node_of(number, block, entered);
    uint64_t key = key_of(number, node, t);
    if (!node) return; /* the outside */
    __atomic_store_n(&state()->any_end, true, __ATOMIC_RELAXED);
    for (uint64_t n = 0, at = key * 0x9e3779b97f4a7c15ull >> 40; n < ENDS; n++, at++) {
        flow_end *to = &state()->ends[at % ENDS];
        uint64_t old = 0;
        bool mine = __atomic_compare_exchange_n(&to->key, &old, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        if (!mine && old != key) continue;
        __atomic_add_fetch(&to->times, times, __ATOMIC_RELAXED);
        return;
    }
}

void tool_derive_forked(void)
{
    if (state()->any_end) memset(state()->ends, 0, ENDS * sizeof *state()->ends);
    state()->any_end = false;
}

/* Those that matter now, of thread `of` (NULL: of all). */
typedef struct end_list {
    flow_end *items;
    uint32_t count;
} end_list;

static bool list_ends(const run_thread *of, end_list *to)
{
    *to = (end_list){0};
    if (!state()->any_end) return true;
    to->items = calloc(ENDS, sizeof *to->items);
    if (!to->items) return false;
    for (uint32_t i = 0; i < ENDS; i++) {
        flow_end e = state()->ends[i];
        bool matters = e.key && e.times && (!of || (e.key & 0xffff) == (of->frame.thread_number & 0xffff));
        if (matters) to->items[to->count++] = e;
    }
    return true;
}

/* How many of these flows there are; they become edges of the graph, if one is given. */
static uint32_t add_ends(const end_list *list, uint32_t number, cfg_flow_graph *g, uint64_t *flow)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const flow_end *e = &list->items[i];
        if (e->key >> 40 != number) continue;
        n++;
        if (!g) continue;
        g->edges[g->edge_count] = (cfg_flow_edge){.from = (uint32_t)(e->key >> 16) & 0xffffff, .to = 0};
        g->chord[g->edge_count] = 1;
        flow[g->edge_count++] = (uint64_t)e->times;
    }
    return n;
}

/* --- solving --- */

/* Most procedures of a program are never entered. */
static bool was_entered(const tool_equations *eq, tool_counter_reader *read, const void *of)
{
    tool_edge_reader edges = tool_equations_edges(eq);
    for (uint32_t i = 0; i < eq->edge_count; i++) {
        move_flow_edge e = tool_equations_edge(&edges);
        if (e.counter && read(of, e.counter)) return true;
    }
    return false;
}

static bool add_solution(const tool_equations *eq, const end_list *list, tool_counter_reader *read, const void *of,
                         uint64_t *sums, inl_arena *arena)
{
    cfg_flow_graph g = {.node_count = eq->node_count, .edge_count = eq->edge_count};
    uint32_t room = eq->edge_count + add_ends(list, eq->number, NULL, NULL) + 1;
    g.edges = inl_arena_alloc(arena, room * sizeof *g.edges);
    g.chord = inl_arena_alloc(arena, room);
    uint64_t *flow = inl_arena_alloc(arena, room * sizeof *flow);
    if (!g.edges || !g.chord || !flow) return false;
    tool_edge_reader edges = tool_equations_edges(eq);
    for (uint32_t i = 0; i < eq->edge_count; i++) {
        move_flow_edge e = tool_equations_edge(&edges);
        g.edges[i].from = e.from;
        g.edges[i].to = e.to;
        g.chord[i] = e.counter != 0 || e.from == e.to;
        if (e.counter) flow[i] = read(of, e.counter);
    }
    add_ends(list, eq->number, &g, flow);
    if (!cfg_flow_derive(&g, flow, arena)) return false;
    tool_term_reader terms = tool_equations_terms(&edges);
    for (uint32_t i = 0; i < eq->term_count; i++) {
        move_flow_term t = tool_equations_term(&terms);
        sums[t.counter] += t.amount * flow[t.edge];
    }
    return true;
}

static uint64_t *solve(tool_counter_reader *read, const void *of)
{
    tool_heap_root *heap = tool_heap();
    uint64_t *sums = calloc(heap->numbers[ROOT_COUNTERS] + 1, sizeof *sums);
    inl_arena arena = {0};
    end_list list;
    if (!list_ends(of, &list)) {
        free(sums);
        sums = NULL;
    }
    tool_equations_walk all = tool_equations_first();
    for (tool_equations e; sums && tool_equations_next(&all, &e);) {
        inl_arena_reset(&arena);
        if (!was_entered(&e, read, of) && !add_ends(&list, e.number, NULL, NULL)) continue;
        if (add_solution(&e, &list, read, of, sums, &arena)) continue;
        free(sums);
        sums = NULL;
    }
    inl_arena_free(&arena);
    free(list.items);
    if (!sums) tool_say_limited("out of memory: counters cannot be told");
    return sums;
}

uint64_t *tool_derive_all(tool_counter_reader *read, const void *of) { return solve(read, of); }

static void forget(void)
{
    free(state()->final);
    state()->final = NULL;
}

void tool_derive_report(bool begins)
{
    forget();
    state()->reporting = begins;
}

uint64_t tool_derived(uint32_t index, tool_counter_reader *read, const void *of)
{
    if (!tool_derive_used()) return 0;
    tool_derivation *d = state();
    bool keep = run_here.exiting || d->reporting;
    bool known = keep && d->final && d->final_of == of;
    uint64_t *sums = known ? d->final : solve(read, of);
    if (!sums) return 0;
    uint64_t value = sums[index];
    if (known) return value;
    if (keep) forget();
    else free(sums);
    if (keep) d->final = sums, d->final_of = of;
    return value;
}
