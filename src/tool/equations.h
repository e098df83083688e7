/* Flows through procedures, as the rewrite engine hands them over (move_flows), in the carried heap: written when
 * a program is instrumented, read in order when somebody asks for counters. They are many, one for each block of the
 * program and more, so they are kept as bytes.
 *
 *     chunk | chunk | ...      the heap's root leads to the last one
 *     chunk:     head, procedures
 *     procedure: size of what follows; nodes, edges, terms: how many; edges; terms
 *     edge:      a byte, then what it says to follow
 *                bits 0, 1  where it begins: the outside; a node that was not named yet; where the one before
 *                           ends; else its number follows
 *                bits 2, 3  where it ends, likewise
 *                bits 4, 5  no counter; the one behind the last; else how far it is from the last, signed
 *     term:      a byte, then what it says to follow
 *                bit 0      another counter than that of the term before: how far it is, signed
 *                bit 1      not the edge behind that of the term before: how far it is, signed
 *                bits 2..7  its amount; 0: it follows
 *
 * All numbers are ULEB128, of zigzag where they have a sign. */
#ifndef INL_TOOL_EQUATIONS_H
#define INL_TOOL_EQUATIONS_H

#include "move/move.h"

typedef struct tool_equations {
    uint32_t number; /* from 1 on */
    uint32_t node_count, edge_count, term_count;
    const uint8_t *edges; /* where they begin; the terms are behind them */
} tool_equations;
typedef struct tool_equations_walk {
    const void *chunk;
    const uint8_t *at;
    uint32_t left, number; /* in the chunk; of the next one */
} tool_equations_walk;

typedef struct tool_edge_reader {
    const uint8_t *at;
    uint32_t high, before, counter; /* the highest node so far; where the last edge ended; the last counter */
} tool_edge_reader;
typedef struct tool_term_reader {
    const uint8_t *at;
    move_flow_term last;
} tool_term_reader;

/* Their number; 0: no memory. */
uint32_t tool_equations_add(const move_flows *);
/* All of them, in some order. Nothing is allocated, so that any thread may read them at any time. */
tool_equations_walk tool_equations_first(void);
bool tool_equations_next(tool_equations_walk *, tool_equations *);
bool tool_equations_find(uint32_t number, tool_equations *);
tool_edge_reader tool_equations_edges(const tool_equations *);
move_flow_edge tool_equations_edge(tool_edge_reader *);
tool_term_reader tool_equations_terms(const tool_edge_reader *behind_all_edges);
move_flow_term tool_equations_term(tool_term_reader *);

#endif
