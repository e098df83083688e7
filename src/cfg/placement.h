/* Counting where it costs least: the flow graph of a procedure, which of its edges must be counted,
 * and how all others follow from them (after Knuth; QPT, and Ball and Larus, "Optimally profiling and
 * tracing programs").
 *
 * Nodes are places between instructions; edges are stretches of code and transfers between them.
 * What flows into a node flows out again, so with a spanning tree of the graph only the edges outside
 * the tree (the chords) need a counter. The tree takes the edges that are executed most.
 *
 * Node 0 is the outside. Every place where control may enter from unknown code or leave for it is the
 * outside itself: the procedure's entries, landing pads, returns. So is every *call*, also of the
 * system: it may never come back (exit, an exception, longjmp, the thread's end), and whoever reads
 * counters meanwhile must find what has been executed so far. Therefore counts are exact whenever a
 * procedure is left or calls.
 *
 *     block b:      in(b) ---- stretch edge ----> out(b)          (edge number b - first block)
 *     cond. branch: out(b) --> in(target), out(b) --> in(next)
 *     call:         out(b) is 0;  0 --> in(behind the call)
 *     jump table:   out(b) and the in() of all its targets are one node: such edges cannot be counted
 */
#ifndef INL_CFG_PLACEMENT_H
#define INL_CFG_PLACEMENT_H

#include "base/arena.h"
#include "cfg/program.h"

typedef struct cfg_flow_edge {
    uint32_t from, to; /* nodes; may be equal: then it is a chord */
    uint32_t weight;   /* how often it is executed, relatively */
    uint32_t edge;     /* index in cfg->edges, CFG_NONE for a block's stretch */
} cfg_flow_edge;

typedef struct cfg_flow_graph {
    uint32_t node_count, edge_count;
    cfg_flow_edge *edges; /* the first block_count ones are the blocks' stretches, in their order; then the
                             transfers, in the order of cfg->edges */
    uint8_t *chord;       /* per edge: 1 when it must be counted */
} cfg_flow_graph;

enum {                       /* marks of blocks */
       CFG_FLOW_WATCHED = 1, /* its own code looks at counters or calls analysis routines: counts must be right
                                while it runs */
       CFG_FLOW_ENTERED = 2, /* entered from outside in a way that its flags do not tell */
};
/* The graph of a procedure with its chords chosen, in `arena`; NULL when memory is used up. `marks`: one
 * byte a block, or NULL. */
cfg_flow_graph *cfg_flow_build(const cfg_program *, uint32_t proc, const uint8_t *marks, inl_arena *);
/* The graph's edge for an edge of the cfg, CFG_NONE when it has none. */
uint32_t cfg_flow_transfer(const cfg_flow_graph *, uint32_t block_count, uint32_t edge);
/* Falling through to the next block, also out of the procedure or behind a call. Such an edge is a chord
 * only in odd company (see cfg_flow_build); whoever cannot count there leaves the procedure as it is. */
bool cfg_flow_is_fall(const cfg_program *, const cfg_edge *);
/* Chooses the chords of a graph that is otherwise filled in. False: no memory. */
bool cfg_flow_choose(cfg_flow_graph *, inl_arena *);
/* Which nodes are one when only the flows of edges that are `asked` for (one byte each), and of the chords, are to
 * be derived: what flows through the tree's other edges need not be known. node[i] is i's new number; 0 stays. How
 * many there are is put into the graph. False: no memory. */
bool cfg_flow_contract(cfg_flow_graph *, const uint8_t *asked, uint32_t *node, inl_arena *);
/* From the flows of the chords (in place in `flow`, one number an edge) those of all edges. Only from,
 * to and chord of the graph are looked at. False: no memory. */
bool cfg_flow_derive(const cfg_flow_graph *, uint64_t *flow, inl_arena *);

#endif
