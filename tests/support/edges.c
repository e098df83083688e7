/* How often each transfer of unknown target went where. */
#include "stepper.h"

#include <stdlib.h>

/* Open addressing, grown at half full. */
static step_edge *find(const step_edges *e, uint64_t from, uint64_t to)
{
    size_t i = ((from * 31 + to) * 0x9e3779b97f4a7c15u >> 20) & (e->size - 1);
    while (e->at[i].count && (e->at[i].from != from || e->at[i].to != to)) i = (i + 1) & (e->size - 1);
    return &e->at[i];
}

bool step_edges_add(step_edges *e, uint64_t from, uint64_t to)
{
    if (e->used * 2 >= e->size) {
        step_edges bigger = {NULL, e->size ? e->size * 2 : 1 << 12, e->used};
        bigger.at = calloc(bigger.size, sizeof *bigger.at);
        if (!bigger.at) return false;
        for (size_t i = 0; i < e->size; i++)
            if (e->at[i].count) *find(&bigger, e->at[i].from, e->at[i].to) = e->at[i];
        free(e->at);
        *e = bigger;
    }
    step_edge *at = find(e, from, to);
    e->used += !at->count;
    *at = (step_edge){from, to, at->count + 1};
    return true;
}

static int by_ends(const void *a, const void *b)
{
    const step_edge *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

size_t step_edges_sort(step_edges *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->size; i++)
        if (e->at[i].count) e->at[n++] = e->at[i];
    if (n) qsort(e->at, n, sizeof *e->at, by_ends);
    e->size = 0;
    return n;
}
