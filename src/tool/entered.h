/* What a procedure had at its entry, for snippets that stand elsewhere in it: at its returns parameters are not where
 * they were passed any more.
 *
 * An expression that asks for it holds a call of the routine that finds it. As such an expression is inserted, code
 * that keeps the value is put at the procedure's entry; it goes with the last insertion that needs it. What is kept is
 * found by where the stack pointer was at the entry, the frame, which no two calls that are under way have at one time,
 * whichever threads and stacks they are on; so calls that end by an exception or longjmp need no care: whoever is
 * called in their place says anew what it was called with. A call that had begun before the code was put in has no
 * value, and the whole snippet is not executed then. */
#ifndef INL_TOOL_ENTERED_H
#define INL_TOOL_ENTERED_H

#include "snippet/typed.h"

#include <inlay/types.h>

typedef struct tool_entered tool_entered;

/* What the expression, a value, would give where the procedure begins. `frame`: where the stack pointer was then.
 * `owner`: whose expressions share what is kept. */
const snippet *tool_entered_value(snippet_maker *, const void *owner, inlay_proc *, const snippet *value,
                                  const snippet *frame);
bool tool_entered_is_in(const snippet *);
/* Of code that is about to be inserted: keeps what it asks for. The answer is executed in its place; NULL: *why says
 * why that cannot be. */
const snippet *tool_entered_begin(const snippet *, const char **why);
void tool_entered_end(const snippet *); /* it is not inserted any more */

/* entered_run.c: routines. `of`: whose value, and which. */
void tool_entered_keep(uint64_t of, uint64_t frame, uint64_t value);
bool tool_entered_has(uint64_t of, uint64_t frame);
uint64_t tool_entered_find(uint64_t of, uint64_t frame);
void tool_entered_say(const char *procedure); /* that there is none */

#endif
