/* Points: the places where snippets go. Several snippets at one point run in the order inserted. */
#ifndef INLAY_POINT_H
#define INLAY_POINT_H

#include <inlay/snippet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A point is asked for and used at once; NULL when it does not exist (after a jump, the taken edge of
 * a non-branch), which inlay_insert then refuses with a message. */
inlay_point *inlay_before(inlay_insn *);
inlay_point *inlay_after(inlay_insn *);      /* falls through, so no branches */
inlay_point *inlay_taken_edge(inlay_insn *); /* of a branch, when it is taken */
inlay_point *inlay_block_entry(inlay_block *);
inlay_point *inlay_block_anywhere(inlay_block *); /* once an execution, where it costs least */
/* Procedures: from a procedure or image callback. Entry: each time control reaches the first
 * instruction. Exit: before each return instruction in its range and each jump out of it to
 * another procedure's entry (a tail call). */
inlay_point *inlay_proc_entry(inlay_proc *);
inlay_point *inlay_proc_exit(inlay_proc *);

bool inlay_insert(inlay_point *, inlay_expr code);
/* Only when the instruction really executes: cmov with its condition, REP with a count. */
bool inlay_insert_predicated(inlay_point *, inlay_expr code);

#ifdef __cplusplus
}
#endif

#endif
