/* Which blocks of a procedure's static view all ways to another one pass, and all ways from it (code.h).
 *
 * The graph is that of the procedure's edges, with one node more that leads to each block which control may come to
 * from elsewhere, or from which it may leave; for the ways from a block it is walked against the edges. Immediate
 * dominators are found as Cooper, Harvey and Kennedy do ("A simple, fast dominance algorithm", 2001), both kinds at
 * once when one is first asked for, and live as long as the view. */
#include "tool/code.h"

#include <stdlib.h>

enum {
    ENTRIES = CFG_BLOCK_ENTRY | CFG_BLOCK_LANDING | CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_OUTSIDE,
    EXITS = CFG_BLOCK_RETURN | CFG_BLOCK_NO_RETURN | CFG_BLOCK_UNRESOLVED,
};

struct code_dominance { /* by block of the view; the node behind the last: there is none */
    uint32_t *before, *behind;
};

typedef struct arc {
    uint32_t from, to;
} arc;

typedef struct graph {
    uint32_t n; /* nodes; the last one is the one that there is more */
    INL_VEC(arc) arcs;
    uint32_t *starts[2], *ends[2]; /* of node k those ways on (0) and back (1): ends[.][starts[.][k]] ... */
    uint32_t *number, *order;      /* in the order in which a walk is done with it, from 1; and back */
    uint32_t reached;
} graph;

static bool put(graph *g, uint32_t from, uint32_t to) { return inl_vec_push(&g->arcs, ((arc){from, to})); }

static bool turn(graph *g, unsigned way)
{
    uint32_t *starts = g->starts[way] = calloc(g->n + 2u, sizeof *starts);
    uint32_t *ends = g->ends[way] = malloc((g->arcs.count + 1) * sizeof *ends);
    if (!starts || !ends) return false;
    for (size_t i = 0; i < g->arcs.count; i++) starts[(way ? g->arcs.items[i].to : g->arcs.items[i].from) + 2]++;
    for (uint32_t k = 0; k < g->n; k++) starts[k + 2] += starts[k + 1];
    for (size_t i = 0; i < g->arcs.count; i++) {
        const arc *a = &g->arcs.items[i];
        ends[starts[(way ? a->to : a->from) + 1]++] = way ? a->from : a->to;
    }
    return true;
}

/* Numbers all that is reached from the last node. */
static bool walk(graph *g)
{
    uint32_t *stack = malloc(2 * (g->n + 1u) * sizeof *stack), depth = 0;
    g->number = calloc(g->n, sizeof *g->number);
    g->order = calloc(g->n + 1u, sizeof *g->order);
    if (stack && g->number && g->order) {
        uint8_t *seen = calloc(g->n, 1);
        stack[0] = g->n - 1;
        stack[1] = g->starts[0][g->n - 1];
        depth = seen ? 1 : 0;
        while (depth) {
            uint32_t node = stack[2 * depth - 2], *next = &stack[2 * depth - 1];
            if (*next == g->starts[0][node + 1]) {
                g->number[node] = ++g->reached;
                g->order[g->reached] = node;
                depth--;
                continue;
            }
            uint32_t to = g->ends[0][(*next)++];
            if (seen[to]) continue;
            seen[to] = 1;
            stack[2 * depth] = to;
            stack[2 * depth + 1] = g->starts[0][to];
            depth++;
        }
        free(seen);
    }
    free(stack);
    return g->reached != 0;
}

static uint32_t meet(const graph *g, const uint32_t *up, uint32_t a, uint32_t b)
{
    while (a != b)
        if (g->number[a] < g->number[b]) a = up[a];
        else b = up[b];
    return a;
}

/* Fills in `up` for each node; what is not reached is as if nothing stood in front of it. */
static void solve(const graph *g, uint32_t *up)
{
    const uint32_t root = g->n - 1;
    bool changed = true;
    for (uint32_t k = 0; k < root; k++) up[k] = UINT32_MAX;
    while (changed) {
        changed = false;
        for (uint32_t o = g->reached; o-- > 1;) {
            uint32_t node = g->order[o], best = UINT32_MAX;
            for (uint32_t i = g->starts[1][node]; i < g->starts[1][node + 1]; i++) {
                uint32_t from = g->ends[1][i];
                if (!g->number[from] || (from != root && up[from] == UINT32_MAX)) continue;
                best = best == UINT32_MAX ? from : meet(g, up, best, from);
            }
            changed |= best != up[node];
            up[node] = best;
        }
    }
    for (uint32_t k = 0; k < root; k++)
        if (up[k] == UINT32_MAX) up[k] = root;
}

/* `back`: against the edges. */
static bool draw(graph *g, const code_view *v, bool back)
{
    const cfg_program *cfg = v->code->cfg;
    const uint32_t root = g->n - 1, first = v->first;
    bool good = true;
    uint8_t *led_to = calloc(g->n, 1);
    for (uint32_t k = 0; led_to && k < root; k++) {
        const cfg_block *b = &cfg->blocks[first + k];
        bool leaves = !b->edge_count || b->flags & EXITS;
        for (uint32_t e = b->first_edge; e < b->first_edge + b->edge_count; e++) {
            uint32_t to = cfg->edges[e].to - first;
            bool within = cfg->edges[e].to != CFG_NONE && to < root;
            leaves |= !within;
            if (within) led_to[to] |= to != k;
            if (within) good &= back ? put(g, to, k) : put(g, k, to);
        }
        if (leaves && back) good &= put(g, root, k);
    }
    for (uint32_t k = 0; led_to && !back && k < root; k++)
        if (!k || !led_to[k] || cfg->blocks[first + k].flags & ENTRIES) good &= put(g, root, k);
    good &= led_to != NULL;
    free(led_to);
    return good;
}

static bool find(const code_view *v, bool back, uint32_t *up)
{
    graph g = {.n = v->run.block_count + 1};
    bool good = draw(&g, v, back) && turn(&g, 0) && turn(&g, 1) && walk(&g);
    if (good) solve(&g, up);
    inl_vec_free(&g.arcs);
    for (unsigned way = 0; way < 2; way++) {
        free(g.starts[way]);
        free(g.ends[way]);
    }
    free(g.number);
    free(g.order);
    return good;
}

static const code_dominance *dominance_of(code_view *v)
{
    inl_arena *arena = &v->code->arena;
    size_t bytes = (v->run.block_count + 1) * sizeof(uint32_t);
    code_dominance *d = v->dominance;
    if (d) return d;
    d = inl_arena_alloc(arena, sizeof *d);
    if (d) *d = (code_dominance){inl_arena_alloc(arena, bytes), inl_arena_alloc(arena, bytes)};
    if (!d || !d->before || !d->behind || !find(v, false, d->before) || !find(v, true, d->behind)) return NULL;
    return v->dominance = d;
}

/* --- what is asked --- */

static const weave_block *view_of(const inlay_block *b, code_view **v)
{
    tool_code *c;
    const cfg_block *known = b ? code_known_block(b, &c) : NULL;
    const weave_block *own = known ? (void *)code_block_by_index(c, (uint32_t)(known - c->cfg->blocks)) : NULL;
    *v = own ? code_view_behind(own->run) : NULL;
    return own;
}

static inlay_block *next_up(const inlay_block *b, bool back)
{
    code_view *v;
    bool entered = tool_enter();
    const weave_block *own = view_of(b, &v);
    const code_dominance *d = own ? dominance_of(v) : NULL;
    uint32_t up = d ? (back ? d->behind : d->before)[own - v->run.blocks] : UINT32_MAX;
    inlay_block *out = d && up < v->run.block_count ? (inlay_block *)&v->run.blocks[up] : NULL;
    tool_leave(entered);
    return out;
}

inlay_block *inlay_block_dominator(const inlay_block *b) { return next_up(b, false); }
inlay_block *inlay_block_post_dominator(const inlay_block *b) { return next_up(b, true); }

static bool is_above(const inlay_block *a, const inlay_block *b, bool back)
{
    for (; a && b; b = next_up(b, back))
        if (inlay_block_address(a) == inlay_block_address(b)) return true;
    return false;
}

bool inlay_block_dominates(const inlay_block *a, const inlay_block *b) { return is_above(a, b, false); }
bool inlay_block_post_dominates(const inlay_block *a, const inlay_block *b) { return is_above(a, b, true); }

inlay_block *inlay_block_predecessor(const inlay_block *b, unsigned k)
{
    code_view *v;
    bool entered = tool_enter();
    const weave_block *own = view_of(b, &v);
    inlay_block *out = NULL;
    for (uint32_t from = 0; own && !out && from < v->run.block_count; from++) {
        const cfg_block *its = &v->code->cfg->blocks[v->first + from];
        bool leads = false;
        for (uint32_t e = its->first_edge; e < its->first_edge + its->edge_count; e++)
            leads |= v->code->cfg->edges[e].to == v->first + (uint32_t)(own - v->run.blocks);
        if (leads && k-- == 0) out = (inlay_block *)&v->run.blocks[from];
    }
    tool_leave(entered);
    return out;
}
