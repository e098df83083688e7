/* Loops of a procedure (loop.h), from the edges that the analysis has marked as leading back: for each head the blocks
 * from which one of these is reached without passing it, of those that the analysis' walk met behind the head. Without
 * the last, a loop that is entered in its middle too would hold whatever leads there. (The loops are those of Havlak,
 * "Nesting of reducible and irreducible loops", 1997.)
 *
 * A procedure is the range of blocks of its view, and edges that leave the range are no part of a loop. All of a
 * procedure's loops are made when they are first asked for, and live as long as its view. */
#include "tool/code.h"

#include <inlay/loop.h>

#include <stdlib.h>
#include <string.h>

enum { WAYS = INLAY_LOOP_LEAVE + 1 };

struct inlay_loop {
    inlay_loop *next, *parent;
    code_view *view;
    uint32_t head, count;  /* in the analysis */
    uint32_t *blocks;      /* ascending */
    uint32_t *edges[WAYS]; /* in the analysis */
    uint32_t counts[WAYS];
};

typedef struct finding {
    code_view *view;
    const cfg_program *cfg;
    uint32_t first, end;     /* blocks */
    uint32_t *into, *starts; /* edges by where they lead: those to block b are into[starts[b] .. starts[b + 1]) */
    cfg_loop_order *orders;
    uint32_t *stack, depth;
    uint8_t *in; /* the loop at hand */
} finding;

static bool holds(const finding *f, uint32_t block) { return block >= f->first && block < f->end; }

static uint32_t edges_low(const finding *f) { return f->cfg->blocks[f->first].first_edge; }
static uint32_t edges_high(const finding *f)
{
    const cfg_block *last = &f->cfg->blocks[f->end - 1];
    return last->first_edge + last->edge_count;
}

/* Edges are told by where they begin; here they are put in order of where they lead. */
static bool turn_edges(finding *f)
{
    uint32_t n = f->end - f->first, low = edges_low(f), high = edges_high(f);
    f->starts = calloc(n + 2u, sizeof *f->starts);
    f->into = malloc((high - low + 1u) * sizeof *f->into);
    f->stack = malloc((n + 1u) * sizeof *f->stack);
    f->in = malloc(n + 1u);
    f->orders = malloc((n + 1u) * sizeof *f->orders);
    if (!f->starts || !f->into || !f->stack || !f->in || !f->orders) return false;
    for (uint32_t e = low; e < high; e++)
        if (holds(f, f->cfg->edges[e].to)) f->starts[f->cfg->edges[e].to - f->first + 2]++;
    for (uint32_t b = 0; b < n; b++) f->starts[b + 2] += f->starts[b + 1];
    for (uint32_t e = low; e < high; e++)
        if (holds(f, f->cfg->edges[e].to)) f->into[f->starts[f->cfg->edges[e].to - f->first + 1]++] = e;
    return cfg_loop_orders(f->cfg, f->first, n, f->orders);
}

static void finding_end(finding *f)
{
    free(f->starts);
    free(f->into);
    free(f->stack);
    free(f->in);
    free(f->orders);
}

/* Has the walk met it behind the head? */
static bool is_behind(const finding *f, uint32_t block, uint32_t head)
{
    const cfg_loop_order *h = &f->orders[head - f->first];
    uint32_t number = f->orders[block - f->first].number;
    return number >= h->number && number <= h->last;
}

static uint32_t add(finding *f, uint32_t block, uint32_t head)
{
    if (f->in[block - f->first] || !is_behind(f, block, head)) return 0;
    f->in[block - f->first] = 1;
    f->stack[f->depth++] = block;
    return 1;
}

/* Marks the loop of a head; how many blocks it has, 0: it is none's. */
static uint32_t mark(finding *f, uint32_t head)
{
    uint32_t count = 0;
    memset(f->in, 0, f->end - f->first);
    f->depth = 0;
    for (uint32_t i = f->starts[head - f->first]; i < f->starts[head - f->first + 1]; i++) {
        const cfg_edge *e = &f->cfg->edges[f->into[i]];
        if (!e->back) continue;
        if (!f->in[head - f->first]) f->in[head - f->first] = 1, count++;
        count += add(f, e->from, head);
    }
    while (f->depth) {
        uint32_t b = f->stack[--f->depth] - f->first;
        for (uint32_t i = f->starts[b]; i < f->starts[b + 1]; i++)
            count += add(f, f->cfg->edges[f->into[i]].from, head);
    }
    return count;
}

static void take(inlay_loop *l, inlay_loop_way way, uint32_t edge, bool keep)
{
    if (keep && !l->edges[way]) return;
    if (keep) l->edges[way][l->counts[way]] = edge;
    l->counts[way]++;
}

/* The edges of the loop at hand, counted or kept. */
static void sort_edges(const finding *f, inlay_loop *l, bool keep)
{
    for (uint32_t k = 0; k < l->count; k++) {
        uint32_t b = l->blocks[k], low = f->cfg->blocks[b].first_edge;
        for (uint32_t i = f->starts[b - f->first]; i < f->starts[b - f->first + 1]; i++)
            if (!f->in[f->cfg->edges[f->into[i]].from - f->first]) take(l, INLAY_LOOP_ENTER, f->into[i], keep);
        for (uint32_t e = low; e < low + f->cfg->blocks[b].edge_count; e++) {
            uint32_t to = f->cfg->edges[e].to;
            bool inside = to != CFG_NONE && holds(f, to) && f->in[to - f->first];
            if (to == l->head) take(l, INLAY_LOOP_AGAIN, e, keep);
            else if (!inside) take(l, INLAY_LOOP_LEAVE, e, keep);
        }
    }
}

static inlay_loop *keep(const finding *f, uint32_t head, uint32_t count)
{
    inl_arena *arena = &f->view->code->arena;
    inlay_loop *l = inl_arena_alloc(arena, sizeof *l);
    if (!l) return NULL;
    *l = (inlay_loop){.view = f->view, .head = head, .blocks = inl_arena_alloc(arena, count * sizeof *l->blocks)};
    for (uint32_t b = f->first; l->blocks && b < f->end; b++)
        if (f->in[b - f->first]) l->blocks[l->count++] = b;
    sort_edges(f, l, false);
    for (unsigned w = 0; w < WAYS; w++) {
        l->edges[w] = inl_arena_alloc(arena, l->counts[w] * sizeof *l->edges[w]);
        l->counts[w] = 0;
    }
    sort_edges(f, l, true);
    return l;
}

static bool has(const inlay_loop *l, uint32_t block)
{
    uint32_t low = 0, high = l->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (l->blocks[middle] < block) low = middle + 1;
        else high = middle;
    }
    return low < l->count && l->blocks[low] == block;
}

/* The larger come first, so the last one that holds a head is the innermost. */
static void put_in(inlay_loop **list, inlay_loop *l)
{
    while (*list && (*list)->count >= l->count) list = &(*list)->next;
    l->next = *list;
    *list = l;
}

static void find_parents(inlay_loop *list)
{
    for (inlay_loop *l = list; l; l = l->next)
        for (inlay_loop *around = list; around != l; around = around->next)
            if (has(around, l->head)) l->parent = around;
}

static void find(code_view *v)
{
    finding f = {.view = v, .cfg = v->code->cfg, .first = v->first, .end = v->first + v->run.block_count};
    bool good = f.end > f.first && turn_edges(&f);
    for (uint32_t b = f.first; good && b < f.end; b++) {
        uint32_t count = f.cfg->blocks[b].flags & CFG_BLOCK_LOOP_HEAD ? mark(&f, b) : 0;
        inlay_loop *l = count ? keep(&f, b, count) : NULL;
        if (l) put_in(&v->loops, l);
    }
    find_parents(v->loops);
    v->loops_found = true;
    finding_end(&f);
}

/* --- what is asked --- */

inlay_loop *inlay_proc_loop_first(inlay_proc *p)
{
    inlay_block *first = inlay_proc_block_first(p);
    bool entered = tool_enter();
    code_view *v = first ? code_view_behind(((const weave_block *)first)->run) : NULL;
    if (v && !v->loops_found) find(v);
    tool_leave(entered);
    return v ? v->loops : NULL;
}

inlay_loop *inlay_loop_next(const inlay_loop *l) { return l ? l->next : NULL; }
inlay_loop *inlay_loop_parent(const inlay_loop *l) { return l ? l->parent : NULL; }

unsigned inlay_loop_depth(const inlay_loop *l)
{
    unsigned n = 0;
    for (; l; l = l->parent) n++;
    return n;
}

static inlay_block *block(const inlay_loop *l, uint32_t b)
{
    return (inlay_block *)&l->view->run.blocks[b - l->view->first];
}

inlay_block *inlay_loop_head(const inlay_loop *l) { return l ? block(l, l->head) : NULL; }
inlay_block *inlay_loop_block(const inlay_loop *l, unsigned k)
{
    return l && k < l->count ? block(l, l->blocks[k]) : NULL;
}

bool inlay_loop_holds(const inlay_loop *l, const inlay_block *b)
{
    const weave_block *of = (const weave_block *)b;
    return l && of && of->run == &l->view->run && has(l, l->view->first + (uint32_t)(of - of->run->blocks));
}

/* --- its edges --- */

unsigned inlay_loop_edge_count(const inlay_loop *l, inlay_loop_way way)
{
    return l && (unsigned)way < WAYS ? l->counts[way] : 0;
}

inlay_loop_edge inlay_loop_edge_at(const inlay_loop *l, inlay_loop_way way, unsigned k)
{
    if (k >= inlay_loop_edge_count(l, way)) return (inlay_loop_edge){0};
    const cfg_program *cfg = l->view->code->cfg;
    uint32_t e = l->edges[way][k], from = cfg->edges[e].from;
    return (inlay_loop_edge){block(l, from), e - cfg->blocks[from].first_edge};
}
