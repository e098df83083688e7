/* How short a procedure's shortest way from its entry to an exit is, in instructions; a call counts as one. What is
 * short is what a record costs most beside, however long the rest of it is. */
#include "trace.h"

#include <stdlib.h>

enum { NO_WAY = UINT32_MAX };

typedef struct way {
    inlay_block *block;
    uint32_t length; /* up to its end */
} way;

static bool leaves(const inlay_block *b)
{
    if (inlay_block_flags(b) & (INLAY_BLOCK_RETURN | INLAY_BLOCK_UNRESOLVED)) return true;
    for (unsigned k = 0; k < inlay_block_successor_count(b); k++)
        if (inlay_block_successor(b, k).kind == INLAY_EDGE_TAIL) return true;
    return false;
}

static int ascending(const void *a, const void *b)
{
    const way *x = a, *y = b;
    uint64_t p = inlay_block_address(x->block), q = inlay_block_address(y->block);
    return p < q ? -1 : p > q;
}

/* Blocks are in order of address. */
static bool shorten(way *ways, unsigned count)
{
    bool any = false;
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; ways[i].length != NO_WAY && k < inlay_block_successor_count(ways[i].block); k++) {
            inlay_edge e = inlay_block_successor(ways[i].block, k);
            const way key = {.block = e.to};
            way *to = e.to && e.kind != INLAY_EDGE_TAIL ? bsearch(&key, ways, count, sizeof *ways, ascending) : NULL;
            uint32_t length = to ? ways[i].length + inlay_block_insn_count(to->block) : 0;
            if (!to || to->length <= length) continue;
            to->length = length;
            any = true;
        }
    }
    return any;
}

uint32_t trace_shortest_way(inlay_proc *proc)
{
    unsigned count = inlay_proc_block_count(proc), n = 0;
    way *ways = count ? calloc(count, sizeof *ways) : NULL;
    uint32_t least = NO_WAY;
    if (!ways) return NO_WAY;
    for (inlay_block *b = inlay_proc_block_first(proc); b && n < count; b = inlay_block_next(b))
        ways[n++] = (way){b, inlay_block_address(b) == inlay_proc_address(proc) ? inlay_block_insn_count(b) : NO_WAY};
    while (shorten(ways, n)) continue;
    for (unsigned i = 0; i < n; i++)
        if (ways[i].length < least && leaves(ways[i].block)) least = ways[i].length;
    free(ways);
    return least;
}
