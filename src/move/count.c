/* Counts that the tool asked for are taken where they cost least.
 *
 * What is inserted as "add a constant to a counter" at blocks, instructions and taken edges of a procedure
 * says how often something is executed; cfg/placement.h says which edges of the flow graph have to be
 * counted to know that. When that is less work, the inserts are taken out of the run, the chords get
 * counters of their own, and the client keeps the rest of the equation for whoever reads the counters.
 */
#include "cfg/placement.h"
#include "move/plan.h"
#include "weave/routine.h"

typedef struct placing {
    move_work *w;
    const cfg_proc *proc;
    cfg_flow_graph *g;
    uint8_t *marks; /* per block */
    INL_VEC(move_flow_term) terms;
    bool failed, may_leave;
} placing;

static bool is_constant(const weave_insert *i)
{
    return i->code->kind == SNIPPET_COUNT && i->code->a->kind == SNIPPET_CONST && !i->predicated;
}

/* The branch that a block ends with, as an edge of the cfg; CFG_NONE when its way is the block's. */
static uint32_t taken_edge(const placing *p, uint32_t block)
{
    const cfg_program *cfg = move_cfg(p->w);
    const cfg_block *k = &cfg->blocks[p->proc->first_block + block];
    const weave_block *b = &p->w->run.blocks[block];
    unsigned flow = p->w->run.insns[b->first + b->count - 1].in.flow;
    if (k->edge_count < 2 || (flow != ISA_FLOW_COND && flow != ISA_FLOW_COND_REG)) return CFG_NONE;
    for (uint32_t e = k->first_edge; e < k->first_edge + k->edge_count; e++) {
        if (cfg->edges[e].kind == CFG_EDGE_TABLE) return CFG_NONE;
        if (!cfg_flow_is_fall(cfg, &cfg->edges[e])) return e;
    }
    return CFG_NONE;
}

/* --- what was inserted --- */

typedef void visit_list(placing *, weave_list *, uint32_t block, uint32_t edge);

/* What may look at counters makes its block watched. */
static void see_others(placing *p, weave_list *list, uint32_t block, uint32_t edge)
{
    (void)edge;
    for (const weave_insert *i = list->first; i; i = i->next)
        if (weave_sees_counters(i->code)) p->marks[block] |= CFG_FLOW_WATCHED;
}

static void add_term(placing *p, uint32_t counter, uint32_t edge, uint64_t amount)
{
    for (size_t i = p->terms.count; i-- > 0 && p->terms.items[i].edge == edge;) {
        if (p->terms.items[i].counter != counter) continue;
        p->terms.items[i].amount += amount;
        return;
    }
    move_flow_term t = {counter, edge, amount};
    if (!inl_vec_push(&p->terms, t)) p->failed = true;
}

static void see_terms(placing *p, weave_list *list, uint32_t block, uint32_t edge)
{
    (void)block;
    for (const weave_insert *i = list->first; i; i = i->next)
        if (is_constant(i)) add_term(p, i->code->index, edge, i->code->a->value);
}

/* A routine may end the program where it is called: what the block counts for instructions behind it stays there. */
static bool counts_while_watched(const placing *p)
{
    for (size_t i = 0; i < p->terms.count; i++) {
        uint32_t edge = p->terms.items[i].edge;
        if (edge < p->proc->block_count && p->marks[edge] & CFG_FLOW_WATCHED) return true;
    }
    return false;
}

/* The weights of a block's counts in a counter. */
static int64_t *weights_of(placing *p, uint32_t block, uint32_t counter)
{
    move_weights *at = &p->w->weights[block];
    for (; at->weights && at->counter != counter && at->next; at = at->next) {}
    if (at->weights && at->counter == counter) return at->weights;
    if (at->weights) at = at->next = inl_arena_alloc(&p->w->arena, sizeof *at);
    if (at) at->weights = inl_arena_alloc(&p->w->arena, p->w->run.blocks[block].count * sizeof *at->weights);
    if (!at || !at->weights) return NULL;
    at->counter = counter;
    return at->weights;
}

static void note_list(placing *p, const weave_list *list, uint32_t block, uint32_t insn)
{
    for (const weave_insert *i = list->first; i; i = i->next) {
        int64_t *weights = is_constant(i) ? weights_of(p, block, i->code->index) : NULL;
        if (weights) weights[insn] += (int64_t)i->code->a->value;
        else if (is_constant(i)) p->failed = true;
    }
}

/* Which instruction each count belongs to, for those that leave a block in its middle (undo.c). */
static bool note_weights(placing *p)
{
    weave_run *run = &p->w->run;
    p->w->weights = inl_arena_alloc(&p->w->arena, run->block_count * sizeof *p->w->weights);
    for (uint32_t k = 0; p->w->weights && k < run->block_count; k++) {
        const weave_block *b = &run->blocks[k];
        note_list(p, &b->anywhere, k, 0);
        for (uint32_t i = 0; i < b->count; i++) {
            note_list(p, &run->insns[b->first + i].before, k, i);
            note_list(p, &run->insns[b->first + i].after, k, i);
        }
    }
    return p->w->weights && !p->failed;
}

static void take_terms(placing *p, weave_list *list, uint32_t block, uint32_t edge)
{
    (void)p, (void)block, (void)edge;
    weave_list rest = {0};
    for (weave_insert *i = list->first, *next; i; i = next) {
        next = i->next;
        if (is_constant(i)) continue;
        i->next = NULL;
        if (rest.last) rest.last->next = i;
        else rest.first = i;
        rest.last = i;
    }
    *list = rest;
}

static uint32_t edge_of_branch(const placing *p, uint32_t block)
{
    uint32_t e = taken_edge(p, block);
    uint32_t g = e == CFG_NONE || !p->g ? CFG_NONE : cfg_flow_transfer(p->g, p->proc->block_count, e);
    return g == CFG_NONE ? block : g;
}

/* Each list with its block and its edge of the graph. */
static void visit(placing *p, visit_list *f)
{
    weave_run *run = &p->w->run;
    for (uint32_t k = 0; k < run->block_count; k++) {
        weave_block *b = &run->blocks[k];
        if (b->anywhere.first) f(p, &b->anywhere, k, k);
        for (uint32_t i = b->first; i < b->first + b->count; i++) {
            weave_insn *n = &run->insns[i];
            if (n->before.first) f(p, &n->before, k, k);
            if (n->after.first) f(p, &n->after, k, k);
            if (n->taken.first) f(p, &n->taken, k, edge_of_branch(p, k));
        }
    }
}

static void mark_entered(placing *p)
{
    enum { FROM_OUTSIDE = MOVE_FROM_LEFT | MOVE_TAIL_SEEN | MOVE_PAD_LEFT };
    for (uint32_t k = 0; k < p->proc->block_count; k++)
        if (p->w->block_bits[p->proc->first_block + k] & FROM_OUTSIDE) p->marks[k] |= CFG_FLOW_ENTERED;
}

/* --- is there something to gain? --- */

/* What the counts cost where they are. Those of one counter at several places wait for each other, an
 * addition for the result of the one before: counters of their own are worth twice the additions. */
static uint64_t cost_now(const placing *p)
{
    uint64_t cost = 0;
    bool several = false;
    for (size_t i = 0; i < p->terms.count; i++) {
        if (!p->terms.items[i].amount) continue; /* taken off again, see heads.c */
        cost += p->g->edges[p->terms.items[i].edge].weight;
        several |= p->terms.items[i].edge != p->terms.items[0].edge;
    }
    return several ? 2 * cost : cost;
}

static bool is_loop(const cfg_flow_edge *e) { return e->from == e->to; }

/* Chords that matter: an edge that begins where it ends decides nothing but its own flow. */
static bool find_needed(const placing *p, uint8_t *needed)
{
    for (size_t i = 0; i < p->terms.count; i++) needed[p->terms.items[i].edge] = 1;
    for (uint32_t i = 0; i < p->g->edge_count; i++) {
        const cfg_flow_edge *e = &p->g->edges[i];
        needed[i] = p->g->chord[i] && (needed[i] || !is_loop(e));
        if (!needed[i] || e->edge == CFG_NONE) continue;
        const cfg_edge *edge = &move_cfg(p->w)->edges[e->edge];
        if (cfg_flow_is_fall(move_cfg(p->w), edge)) return false;
        if (taken_edge(p, edge->from - p->proc->first_block) != e->edge) return false;
    }
    return true;
}

static uint64_t cost_placed(const placing *p, const uint8_t *needed)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < p->g->edge_count; i++)
        if (needed[i]) cost += p->g->edges[i].weight;
    return cost;
}

/* --- placing --- */

static bool count_at(placing *p, uint32_t edge, uint32_t counter)
{
    weave_run *run = &p->w->run;
    snippet *one = snippet_new(run->arena, SNIPPET_CONST);
    snippet *code = snippet_new(run->arena, SNIPPET_COUNT);
    if (!one || !code) return false;
    one->value = 1;
    code->a = one;
    code->index = counter;
    const char *why;
    const cfg_flow_edge *e = &p->g->edges[edge];
    if (e->edge == CFG_NONE) {
        if (p->marks[edge] & CFG_FLOW_WATCHED) {
            weave_insn *first = &run->insns[run->blocks[edge].first];
            weave_list old = first->before;
            first->before = (weave_list){0};
            if (!weave_insert_at(run, WEAVE_BEFORE, first->index, code, false, &why)) return false;
            first->before.last->next = old.first;
            if (old.last) first->before.last = old.last;
            return true;
        }
        return weave_insert_at(run, WEAVE_ANYWHERE, edge, code, false, &why);
    }
    const weave_block *b = &run->blocks[move_cfg(p->w)->edges[e->edge].from - p->proc->first_block];
    return weave_insert_at(run, WEAVE_TAKEN, b->first + b->count - 1, code, false, &why);
}

/* Counters for the chords. False: the client gives none (any more), so that counts stay where they are. */
static bool get_counters(placing *p, const uint8_t *needed, move_flow_edge *edges)
{
    for (uint32_t i = 0; i < p->g->edge_count; i++) {
        edges[i] = (move_flow_edge){p->g->edges[i].from, p->g->edges[i].to, 0};
        if (!needed[i]) continue;
        edges[i].counter = p->w->client->new_counter(p->w->client->arg);
        if (!edges[i].counter) return false;
    }
    return true;
}

/* Flows that nobody asks for go, and nodes that they connected are one. Blocks stay, by their numbers. How many edges
 * are left; 0: no memory. */
static uint32_t shorten(placing *p, move_flow_edge *edges)
{
    inl_arena *arena = &p->w->arena;
    uint32_t n = p->g->edge_count, kept = 0;
    uint8_t *asked = inl_arena_alloc(arena, n + 1);
    uint32_t *node = inl_arena_alloc(arena, (p->g->node_count + 1) * sizeof *node);
    uint32_t *now = inl_arena_alloc(arena, (n + 1) * sizeof *now);
    if (!asked || !node || !now) return 0;
    for (size_t i = 0; i < p->terms.count; i++) asked[p->terms.items[i].edge] = 1;
    if (!cfg_flow_contract(p->g, asked, node, arena)) return 0;
    for (uint32_t i = 0; i < n; i++) {
        move_flow_edge e = {node[edges[i].from], node[edges[i].to], edges[i].counter};
        if (i >= p->proc->block_count && !asked[i] && e.from == e.to) continue;
        now[i] = kept;
        edges[kept++] = e;
    }
    for (size_t i = 0; i < p->terms.count; i++) p->terms.items[i].edge = now[p->terms.items[i].edge];
    return kept;
}

static bool place(placing *p, move_flow_edge *edges)
{
    for (uint32_t i = 0; i < p->g->edge_count; i++)
        if (edges[i].counter && !count_at(p, i, edges[i].counter)) return false;
    uint32_t n = shorten(p, edges);
    if (n == 0) return false;
    move_flows flows = {p->g->node_count, n, (uint32_t)p->terms.count, edges, p->terms.items};
    move_placed placed = {p->w->proc, p->w->client->placed(p->w->client->arg, &flows)};
    return placed.flows && inl_vec_push(&p->w->placed, placed);
}

static bool weigh_and_place(placing *p)
{
    inl_arena *arena = &p->w->arena;
    p->marks = inl_arena_alloc(arena, p->proc->block_count + 1);
    if (!p->marks) return false;
    visit(p, see_others);
    for (uint32_t k = 0; k < p->proc->block_count; k++) see_others(p, &p->w->run.blocks[k].entry, k, k);
    mark_entered(p);
    p->g = cfg_flow_build(move_cfg(p->w), p->w->proc, p->marks, arena);
    uint8_t *needed = p->g ? inl_arena_alloc(arena, p->g->edge_count + 1) : NULL;
    if (!needed) return false;
    visit(p, see_terms);
    if (p->failed) return false;
    if (counts_while_watched(p)) return true;
    if (!find_needed(p, needed) || cost_placed(p, needed) > cost_now(p)) return true;
    move_flow_edge *edges = inl_arena_alloc(arena, p->g->edge_count * sizeof *edges);
    if (!edges) return false;
    if (!get_counters(p, needed, edges)) return true;
    if (!note_weights(p)) return false;
    visit(p, take_terms);
    return place(p, edges);
}

/* A routine with the program's registers in hand may send it elsewhere in the middle of a block. */
static void see_contexts(placing *p, weave_list *list, uint32_t block, uint32_t edge)
{
    (void)block, (void)edge;
    for (const weave_insert *i = list->first; i; i = i->next)
        if (snippet_has(i->code, SNIPPET_CONTEXT)) p->may_leave = true;
}

bool move_place_counts(move_work *w)
{
    w->weights = NULL;
    if (!w->client->new_counter || !w->client->placed) return true;
    placing p = {.w = w, .proc = &move_cfg(w)->procs[w->proc]};
    visit(&p, see_contexts);
    if (p.may_leave) return true;
    bool done = weigh_and_place(&p);
    inl_vec_free(&p.terms);
    return done;
}
