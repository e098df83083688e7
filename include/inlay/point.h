/* Points: the places where snippets go. Several snippets at one point run in the order inserted, or, inserted first,
 * before those that are there (edges and loops: loop.h). */
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
 * instruction, which a loop may do again. Exit: before each return instruction in its range and each jump out of it to
 * another procedure's entry (a tail call), and where it runs on into the procedure behind it (as hand-written ones do);
 * there is no result yet at such an exit, it will be the other procedure's.
 * Return: before its return instructions alone, where inlay_return_value is what the caller gets. What leaves by an
 * exception or by longjmp meets neither. Jumps and returns that are written as each other, through the pieces of code
 * that compilers make against wrong guesses of processors (retpolines), count as what they are. On x86-64 the stack
 * pointer is the same at the entry and at a return, also at that of a procedure which was jumped to last: a routine can
 * tell by it which call it is that ends. What is inserted at the entry runs before what is inserted at the procedure's
 * first block or instruction. */
inlay_point *inlay_proc_entry(inlay_proc *);
inlay_point *inlay_proc_exit(inlay_proc *);
inlay_point *inlay_proc_return(inlay_proc *);

/* NULL: refused, with a message. The handle of what is inserted at a procedure, or at code of the static view
 * (code.h), lives as long as the image; of code that a callback of blocks or instructions is shown, during the
 * callback: there the callback is asked again when the code is shown again (inlay_process_show_again). */
inlay_insertion *inlay_insert(inlay_point *, inlay_expr code);
/* Before what has been inserted there already: of a procedure's points among what is inserted at these, of others among
 * all that is at the instruction. */
inlay_insertion *inlay_insert_first(inlay_point *, inlay_expr code);
/* Only when the instruction really executes: cmov with its condition, REP with a count. (A cmov's memory is read in
 * either case.) */
inlay_insertion *inlay_insert_predicated(inlay_point *, inlay_expr code);

/* Takes an insertion away again. Where programs run as they are met (jit), from any callback that is not itself shown
 * code (procedures, blocks, instructions), and from analysis routines: code that a thread is in just then it still
 * runs to its next exit. Where a program is written (rewrite), from image callbacks, before it is. In the callback
 * that inserted it, always. False, with a message, when it is too late, or it has been removed. A mutator's handle ends
 * so: it is given to a later insertion. */
bool inlay_remove(inlay_insertion *);

#ifdef __cplusplus
}
#endif

#endif
