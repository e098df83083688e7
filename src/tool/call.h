/* Calls of the program's procedures from snippets. */
#ifndef INL_TOOL_CALL_H
#define INL_TOOL_CALL_H

#include "snippet/typed.h"
#include "weave/weave.h"

enum { TOOL_CALL_ARGUMENTS = SNIPPET_MAX_PASSED - 3, TOOL_CALL_DEPTH = 8 };

typedef struct tool_call { /* made when a snippet is, and travels */
    const char *name;
    uint8_t count;
    char kinds[TOOL_CALL_ARGUMENTS], result; /* i: an integer; d, f: floating point; of no result: i */
} tool_call;

/* Such a call: its arguments follow the first three, the third is the procedure's address. NULL: of something else. */
const tool_call *tool_call_of(const snippet *);
/* snippet_maker.procedure */
const snippet *tool_call_make(snippet_maker *, const image_ctype *procedure, const snippet *address, unsigned count,
                              const snippet *const *arguments);

#endif
