/* Loops: edges that lead back to a block which is still open in a depth-first walk of its procedure. In
 * reducible code, which is what compilers make, these are the back edges of the natural loops. */
#include "cfg/work.h"

enum { WHITE, OPEN, DONE };

typedef struct open_block {
    uint32_t block, next; /* edge to look at next */
} open_block;

typedef struct walk {
    cfg_program *program;
    uint8_t *colour;
    open_block *stack;
    size_t depth;
    cfg_loop_order *orders; /* NULL: loops are marked. Of blocks from `first` on: these are numbered */
    uint32_t first, count, opened;
} walk;

static void open(walk *w, uint32_t block)
{
    w->colour[block - w->first] = OPEN;
    if (w->orders) w->orders[block - w->first].number = w->opened++;
    w->stack[w->depth++] = (open_block){block, w->program->blocks[block].first_edge};
}

static void walk_from(walk *w, uint32_t start)
{
    cfg_program *p = w->program;
    open(w, start);
    while (w->depth) {
        open_block *top = &w->stack[w->depth - 1];
        const cfg_block *b = &p->blocks[top->block];
        if (top->next == b->first_edge + b->edge_count) {
            w->colour[top->block - w->first] = DONE;
            if (w->orders) w->orders[top->block - w->first].last = w->opened - 1;
            w->depth--;
            continue;
        }
        cfg_edge *e = &p->edges[top->next++];
        if (e->to == CFG_NONE || e->to - w->first >= w->count || p->blocks[e->to].proc != b->proc) continue;
        uint8_t *colour = &w->colour[e->to - w->first];
        if (*colour == OPEN && !w->orders) {
            e->back = true;
            p->blocks[e->to].flags |= CFG_BLOCK_LOOP_HEAD;
        } else if (*colour == WHITE) {
            open(w, e->to);
        }
    }
}

void cfg_mark_loops(cfg_program *p)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (p->procs[i].block_count > largest) largest = p->procs[i].block_count;
    walk w = {.program = p, .count = p->block_count};
    w.colour = calloc(p->block_count + 1, 1);
    w.stack = malloc((largest + 1) * sizeof *w.stack);
    for (uint32_t i = 0; w.colour && w.stack && i < p->block_count; i++) /* entries come first */
        if (w.colour[i] == WHITE) walk_from(&w, i);
    free(w.colour);
    free(w.stack);
}

bool cfg_loop_orders(const cfg_program *p, uint32_t first, uint32_t count, cfg_loop_order *out)
{
    walk w = {.program = (cfg_program *)p, .orders = out, .first = first, .count = count};
    w.colour = calloc(count + 1, 1);
    w.stack = malloc((count + 1) * sizeof *w.stack);
    bool good = w.colour && w.stack;
    for (uint32_t i = 0; good && i < count; i++)
        if (w.colour[i] == WHITE) walk_from(&w, first + i);
    free(w.colour);
    free(w.stack);
    return good;
}
