/* What of a context an instruction set's file says (<isa>/context_regs.c). */
#ifndef INL_TOOL_CONTEXT_REGS_H
#define INL_TOOL_CONTEXT_REGS_H

#include <inlay/context.h>

/* Where a whole register has a word in the context; NULL: it has none. */
uint64_t *tool_context_word(inlay_context *, inlay_reg whole);
/* Of the vector state that the context leads to: the register's bytes. False: it does not lead to any, or that does not
 * hold the register. */
bool tool_context_vector_get(const inlay_context *, inlay_reg, void *out);
bool tool_context_vector_set(inlay_context *, inlay_reg, const void *value);

#endif
