/* Edges and loops as points, of the static view of code (code.h).
 *
 *     for (inlay_loop *l = inlay_proc_loop_first(p); l; l = inlay_loop_next(l))
 *         for (unsigned k = 0; k < inlay_loop_edge_count(l, INLAY_LOOP_AGAIN); k++) {
 *             inlay_loop_edge e = inlay_loop_edge_at(l, INLAY_LOOP_AGAIN, k);
 *             inlay_insert(inlay_edge_point(e.from, e.successor), inlay_count(&turns, 1));
 *         }
 *
 * Loops are those of the code as it is: a head, blocks from which an edge leads back to it, and all blocks from which
 * these are reached without passing the head. Those with one head are one loop. Of code that can be entered in several
 * places (hand-written, or gotos) the place that is met first is the head. Jumps whose targets are not known, computed
 * gotos among them, are no edges. Handles live as long as the image. */
#ifndef INLAY_LOOP_H
#define INLAY_LOOP_H

#include <inlay/code.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The block's k-th way on (inlay_block_successor). The code runs when control takes it, once. Of a conditional branch
 * that is not taken, and of a jump table, it stands before the branch: registers are as they are there. NULL, and
 * inserting is refused with the reason, where an edge has no place: behind a call whose return address is branched to
 * from elsewhere as well. */
inlay_point *inlay_edge_point(inlay_block *from, unsigned k);
/* Where a call comes back, an instruction of the static view: its last successor's edge. */
inlay_point *inlay_call_return(inlay_insn *call);

typedef struct inlay_loop inlay_loop;

/* Those around others come before these; NULL at the end. */
inlay_loop *inlay_proc_loop_first(inlay_proc *);
inlay_loop *inlay_loop_next(const inlay_loop *);
inlay_loop *inlay_loop_parent(const inlay_loop *); /* the innermost around it; NULL: none is */
unsigned inlay_loop_depth(const inlay_loop *);     /* 1: none is around it */
inlay_block *inlay_loop_head(const inlay_loop *);
inlay_block *inlay_loop_block(const inlay_loop *,
                              unsigned k); /* by address, with those of loops in it; NULL: no more */
bool inlay_loop_holds(const inlay_loop *, const inlay_block *);

typedef enum inlay_loop_way {
    INLAY_LOOP_ENTER, /* from outside to one of its blocks, which is its head unless it is entered in several places; a
                       * procedure that begins with the head has its entry besides */
    INLAY_LOOP_AGAIN, /* back to its head */
    INLAY_LOOP_LEAVE, /* to another block of the procedure, or by a jump to another one; returns are none */
} inlay_loop_way;
typedef struct inlay_loop_edge {
    inlay_block *from; /* NULL: there are fewer */
    unsigned successor;
} inlay_loop_edge;
unsigned inlay_loop_edge_count(const inlay_loop *, inlay_loop_way);
inlay_loop_edge inlay_loop_edge_at(const inlay_loop *, inlay_loop_way, unsigned k);

#ifdef __cplusplus
}
#endif

#endif
