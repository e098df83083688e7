#include "cfg/placement.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 6, PER_LOOP = 3, ONCE = 64 }; /* a loop goes round 2^3 times; ONCE outside loops */
enum { STRETCH_COST = 2, TAKEN_COST = 4, ALWAYS_IN = 1 << 30 };

/* --- sets of nodes that are one --- */

static uint32_t find(uint32_t *parent, uint32_t n)
{
    while (parent[n] != n) n = parent[n] = parent[parent[n]];
    return n;
}

/* The smaller number stays, so that the outside stays 0. False: they were one already. */
static bool merge(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = find(parent, a);
    b = find(parent, b);
    if (a == b) return false;
    if (a < b) parent[b] = a;
    else parent[a] = b;
    return true;
}

/* --- the graph of a procedure --- */

typedef struct builder {
    const cfg_program *cfg;
    const cfg_proc *proc;
    uint32_t first;   /* block */
    uint32_t *parent; /* of nodes: 0, then in and out of each block */
    uint8_t *depth;   /* of loops, per block */
    cfg_flow_graph *g;
} builder;

static uint32_t in_of(const builder *b, uint32_t block) { return 1 + 2 * (block - b->first); }
static uint32_t out_of(const builder *b, uint32_t block) { return 2 + 2 * (block - b->first); }

static bool is_inside(const builder *b, uint32_t block)
{
    return block >= b->first && block - b->first < b->proc->block_count;
}

/* A block that only leads out of its loop is executed once for all its rounds. */
static uint8_t at_most(const builder *b, uint32_t i)
{
    const cfg_block *k = &b->cfg->blocks[b->first + i];
    uint8_t most = 0;
    for (uint32_t e = k->first_edge; e < k->first_edge + k->edge_count; e++) {
        uint32_t to = b->cfg->edges[e].to;
        if (is_inside(b, to) && b->depth[to - b->first] > most) most = b->depth[to - b->first];
    }
    return b->depth[i] < most ? b->depth[i] : most;
}

/* Blocks between a loop's head and its back edge, by address: loops are laid out in one piece. */
static bool find_depths(builder *b, inl_arena *arena)
{
    uint32_t n = b->proc->block_count;
    b->depth = inl_arena_alloc(arena, n + 1);
    int32_t *change = inl_arena_alloc(arena, (n + 1) * sizeof *change);
    if (!b->depth || !change) return false;
    for (uint32_t i = 0; i < n; i++) {
        const cfg_block *k = &b->cfg->blocks[b->first + i];
        for (uint32_t e = k->first_edge; e < k->first_edge + k->edge_count; e++) {
            uint32_t to = b->cfg->edges[e].to;
            if (!b->cfg->edges[e].back || !is_inside(b, to) || to - b->first > i) continue;
            change[to - b->first]++;
            change[i + 1]--;
        }
    }
    int32_t now = 0;
    for (uint32_t i = 0; i < n; i++) {
        now += change[i];
        b->depth[i] = (uint8_t)(now > MOST_DEPTH ? MOST_DEPTH : now);
    }
    for (uint32_t i = n; i-- > 0;) b->depth[i] = at_most(b, i);
    return true;
}

static uint32_t often(const builder *b, uint32_t block)
{
    return (uint32_t)ONCE << PER_LOOP * b->depth[block - b->first];
}

/* Does the block end with a jump through a table? Its targets may all lie in other procedures. */
static bool ends_with_table(const cfg_program *cfg, const cfg_block *k)
{
    uint32_t first = (uint32_t)INL_FIRST(cfg->table_count, t, cfg->tables[t].jump >= k->addr);
    if (first < cfg->table_count && cfg->tables[first].jump < k->addr + k->size) return true;
    for (uint32_t e = k->first_edge; e < k->first_edge + k->edge_count; e++)
        if (cfg->edges[e].kind == CFG_EDGE_TABLE) return true;
    return false;
}

/* Behind a call that seems not to return: should it, control goes on there. */
static void join_behind(builder *b, const cfg_block *k)
{
    uint64_t at;
    if (!(k->flags & CFG_BLOCK_NO_RETURN) || cfg_look_at(b->cfg, k->addr + k->size, &at) != CFG_SEES_BLOCK) return;
    uint32_t behind = cfg_block_at(b->cfg, at);
    if (is_inside(b, behind)) merge(b->parent, 0, in_of(b, behind));
}

/* What cannot be counted on its way, or must be right there, is one node. */
static void join_nodes(builder *b, const uint8_t *marks)
{
    const uint32_t entered = CFG_BLOCK_ENTRY | CFG_BLOCK_LANDING | CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_OUTSIDE;
    const uint32_t left = CFG_BLOCK_CALL | CFG_BLOCK_NO_RETURN | CFG_BLOCK_RETURN | CFG_BLOCK_UNRESOLVED |
                          CFG_BLOCK_TAIL_IND | CFG_BLOCK_SYSCALL;
    for (uint32_t i = b->first; i < b->first + b->proc->block_count; i++) {
        const cfg_block *k = &b->cfg->blocks[i];
        if (k->flags & entered || (marks && marks[i - b->first])) merge(b->parent, 0, in_of(b, i));
        if (k->flags & left || k->edge_count == 0) merge(b->parent, 0, out_of(b, i));
        join_behind(b, k);
        if (!ends_with_table(b->cfg, k)) continue;
        for (uint32_t e = k->first_edge; e < k->first_edge + k->edge_count; e++) {
            uint32_t to = b->cfg->edges[e].to;
            if (b->cfg->edges[e].kind == CFG_EDGE_RETURNED) continue;
            merge(b->parent, out_of(b, i), is_inside(b, to) ? in_of(b, to) : 0);
        }
    }
}

static void add(builder *b, uint32_t from, uint32_t to, uint32_t weight, uint32_t edge)
{
    b->g->edges[b->g->edge_count++] = (cfg_flow_edge){find(b->parent, from), find(b->parent, to), weight, edge};
}

/* Falling through has no instruction of its own to count at. */
bool cfg_flow_is_fall(const cfg_program *cfg, const cfg_edge *edge)
{
    const cfg_block *k = &cfg->blocks[edge->from];
    return edge->kind != CFG_EDGE_TAKEN && edge->kind != CFG_EDGE_JUMP && edge->target == k->addr + k->size;
}

/* A transfer goes before the stretch that is executed as often: what is counted is then the block. What falls
 * through goes before all others: only where tables make places one can it fail to be in the tree. */
static void add_transfers(builder *b, uint32_t block)
{
    const cfg_block *k = &b->cfg->blocks[block];
    if (!(k->flags & CFG_BLOCK_CALL) && ends_with_table(b->cfg, k)) return;
    for (uint32_t e = k->first_edge; e < k->first_edge + k->edge_count; e++) {
        const cfg_edge *edge = &b->cfg->edges[e];
        if (edge->kind == CFG_EDGE_TABLE) continue;
        bool inside = is_inside(b, edge->to);
        uint32_t weight = often(b, block);
        bool only = edge->kind == CFG_EDGE_JUMP; /* executed as often as the block */
        if (inside && !only && often(b, edge->to) < weight) weight = often(b, edge->to);
        /* A branch that is counted when it is taken costs a jump besides. */
        weight = cfg_flow_is_fall(b->cfg, edge) ? ALWAYS_IN : TAKEN_COST * weight + 1;
        add(b, out_of(b, block), inside ? in_of(b, edge->to) : 0, weight, e);
    }
}

/* Numbers the nodes that are left, in place, each as its set; the outside stays 0. How many there are. */
static uint32_t number_sets(uint32_t *parent, uint32_t nodes, uint32_t *number)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < nodes; i++) number[i] = find(parent, i) == i ? next++ : number[find(parent, i)];
    return next;
}

static bool renumber(builder *b, uint32_t nodes, inl_arena *arena)
{
    uint32_t *number = inl_arena_alloc(arena, nodes * sizeof *number);
    if (!number) return false;
    b->g->node_count = number_sets(b->parent, nodes, number);
    for (uint32_t i = 0; i < b->g->edge_count; i++) {
        b->g->edges[i].from = number[b->g->edges[i].from];
        b->g->edges[i].to = number[b->g->edges[i].to];
    }
    return true;
}

bool cfg_flow_contract(cfg_flow_graph *g, const uint8_t *asked, uint32_t *node, inl_arena *arena)
{
    uint32_t *parent = inl_arena_alloc(arena, (g->node_count + 1) * sizeof *parent);
    if (!parent) return false;
    for (uint32_t i = 0; i < g->node_count; i++) parent[i] = i;
    for (uint32_t i = 0; i < g->edge_count; i++)
        if (!g->chord[i] && !asked[i]) merge(parent, g->edges[i].from, g->edges[i].to);
    g->node_count = number_sets(parent, g->node_count, node);
    return true;
}

cfg_flow_graph *cfg_flow_build(const cfg_program *cfg, uint32_t proc, const uint8_t *marks, inl_arena *arena)
{
    const cfg_proc *p = &cfg->procs[proc];
    uint32_t n = p->block_count, nodes = 1 + 2 * n, most = n;
    for (uint32_t i = 0; i < n; i++) most += cfg->blocks[p->first_block + i].edge_count;
    builder b = {.cfg = cfg, .proc = p, .first = p->first_block};
    b.g = inl_arena_alloc(arena, sizeof *b.g);
    b.parent = inl_arena_alloc(arena, nodes * sizeof *b.parent);
    if (!b.g || !b.parent || !find_depths(&b, arena)) return NULL;
    b.g->edges = inl_arena_alloc(arena, most * sizeof *b.g->edges);
    b.g->chord = inl_arena_alloc(arena, most);
    if (!b.g->edges || !b.g->chord) return NULL;
    for (uint32_t i = 0; i < nodes; i++) b.parent[i] = i;
    join_nodes(&b, marks);
    for (uint32_t i = b.first; i < b.first + n; i++) {
        bool watch = marks && marks[i - b.first] & CFG_FLOW_WATCHED; /* counted as soon as it is entered */
        add(&b, in_of(&b, i), out_of(&b, i), watch ? 0 : STRETCH_COST * often(&b, i), CFG_NONE);
    }
    for (uint32_t i = b.first; i < b.first + n; i++) add_transfers(&b, i);
    if (!renumber(&b, nodes, arena) || !cfg_flow_choose(b.g, arena)) return NULL;
    return b.g;
}

uint32_t cfg_flow_transfer(const cfg_flow_graph *g, uint32_t block_count, uint32_t edge)
{
    const uint32_t transfers = g->edge_count - block_count;
    uint32_t first = block_count + (uint32_t)INL_FIRST(transfers, k, g->edges[block_count + k].edge >= edge);
    return first < g->edge_count && g->edges[first].edge == edge ? first : CFG_NONE;
}

/* --- chords: all edges outside a heaviest spanning tree (Kruskal) --- */

typedef struct ranked {
    uint32_t weight, edge;
} ranked;

static int heavier_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return x->edge < y->edge ? -1 : x->edge > y->edge;
}

bool cfg_flow_choose(cfg_flow_graph *g, inl_arena *arena)
{
    ranked *order = inl_arena_alloc(arena, (g->edge_count + 1) * sizeof *order);
    uint32_t *parent = inl_arena_alloc(arena, (g->node_count + 1) * sizeof *parent);
    if (!order || !parent) return false;
    for (uint32_t i = 0; i < g->edge_count; i++) order[i] = (ranked){g->edges[i].weight, i};
    for (uint32_t i = 0; i < g->node_count; i++) parent[i] = i;
    qsort(order, g->edge_count, sizeof *order, heavier_first);
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const cfg_flow_edge *e = &g->edges[order[i].edge];
        g->chord[order[i].edge] = !merge(parent, e->from, e->to);
    }
    return true;
}

/* --- the others, from the leaves of the tree inwards --- */

typedef struct peel {
    uint32_t *degree;   /* tree edges not yet known, per node */
    uint32_t *sum_edge; /* xor of their numbers: the last one left */
    int64_t *balance;   /* what has flowed in less what has flowed out, of known edges */
} peel;

static void know(peel *p, const cfg_flow_edge *e, uint64_t flow)
{
    p->balance[e->to] += (int64_t)flow;
    p->balance[e->from] -= (int64_t)flow;
}

static bool start_peeling(peel *p, const cfg_flow_graph *g, const uint64_t *flow, inl_arena *arena)
{
    p->degree = inl_arena_alloc(arena, g->node_count * sizeof *p->degree);
    p->sum_edge = inl_arena_alloc(arena, g->node_count * sizeof *p->sum_edge);
    p->balance = inl_arena_alloc(arena, g->node_count * sizeof *p->balance);
    if (!p->degree || !p->sum_edge || !p->balance) return false;
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const cfg_flow_edge *e = &g->edges[i];
        if (g->chord[i]) {
            know(p, e, flow[i]);
            continue;
        }
        p->degree[e->from]++;
        p->degree[e->to]++;
        p->sum_edge[e->from] ^= i;
        p->sum_edge[e->to] ^= i;
    }
    return true;
}

bool cfg_flow_derive(const cfg_flow_graph *g, uint64_t *flow, inl_arena *arena)
{
    peel p;
    if (!start_peeling(&p, g, flow, arena)) return false;
    for (uint32_t start = 1; start < g->node_count; start++) {
        uint32_t node = start;
        while (node != 0 && p.degree[node] == 1) {
            uint32_t edge = p.sum_edge[node];
            const cfg_flow_edge *e = &g->edges[edge];
            bool inwards = e->to == node; /* the missing edge brings in what is missing */
            uint32_t other = inwards ? e->from : e->to;
            flow[edge] = (uint64_t)(inwards ? -p.balance[node] : p.balance[node]);
            know(&p, e, flow[edge]);
            p.degree[node] = 0;
            p.degree[other]--;
            p.sum_edge[other] ^= edge;
            node = other;
        }
    }
    return true;
}
