/* How short a procedure's shortest way from its entry to an exit is, in instructions; a call counts as one. What is
 * short is what a record costs most beside, however long the rest of it is. */
#include "object/file.h"

#include <stdlib.h>

enum { NO_WAY = UINT32_MAX };

static uint32_t insns_of(const object_file *o, const cfg_block *b)
{
    uint32_t count = 0;
    isa_insn in;
    for (uint64_t at = b->addr; at < b->addr + b->size && object_insn_at(o, at, &in); at += in.len) count++;
    return count;
}

/* Up to each block's end, from the entry on; false: nothing has become shorter. */
static bool shorten(const object_plan *p, const cfg_proc *proc, const uint32_t *insns, uint32_t *ways)
{
    const cfg_program *c = p->o->cfg;
    bool any = false;
    for (uint32_t i = 0; i < proc->block_count; i++) {
        const cfg_block *b = &c->blocks[proc->first_block + i];
        for (uint32_t k = 0; ways[i] != NO_WAY && k < b->edge_count; k++) {
            const cfg_edge *e = &c->edges[b->first_edge + k];
            uint32_t to = e->to - proc->first_block;
            if (e->kind == CFG_EDGE_TAIL || e->to == CFG_NONE || to >= proc->block_count) continue;
            if (ways[to] <= ways[i] + insns[to]) continue;
            ways[to] = ways[i] + insns[to];
            any = true;
        }
    }
    return any;
}

uint32_t object_shortest_way(const object_plan *p, uint32_t number)
{
    const cfg_proc *proc = &p->o->cfg->procs[number];
    uint32_t *insns = calloc((size_t)proc->block_count * 2 + 1, sizeof *insns), *ways = insns + proc->block_count;
    uint32_t least = NO_WAY;
    bool conditional;
    if (!insns || !proc->block_count) {
        free(insns);
        return NO_WAY;
    }
    for (uint32_t i = 0; i < proc->block_count; i++) {
        insns[i] = insns_of(p->o, &p->o->cfg->blocks[proc->first_block + i]);
        ways[i] = NO_WAY;
    }
    ways[0] = insns[0];
    while (shorten(p, proc, insns, ways)) continue;
    for (uint32_t i = 0; i < proc->block_count; i++)
        if (ways[i] < least && object_block_leaves(p, proc->first_block + i, &conditional)) least = ways[i];
    free(insns);
    return least;
}
