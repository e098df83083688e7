/* Calls of the program's procedures from snippets. */
#ifndef INL_TOOL_CALL_H
#define INL_TOOL_CALL_H

#include "snippet/typed.h"
#include "tool/passing.h"
#include "weave/weave.h"

/* WHOLE: bytes of a structure, up to so many. */
enum { TOOL_CALL_WORDS = SNIPPET_MAX_PASSED - 3, TOOL_CALL_DEPTH = 8, TOOL_CALL_WHOLE = 256, TOOL_CALL_STACK = 64 };

typedef enum tool_call_to { CALL_INTEGER, CALL_VECTOR, CALL_STACK } tool_call_to;
typedef struct tool_call_word { /* one of the snippet's arguments, and where it goes */
    char kind; /* i: an integer; d: a double; f: one that is passed as a float; m: an object's address */
    uint8_t to;
    uint16_t number; /* of the register, of the word of the stack */
    uint16_t size;   /* m: in bytes */
} tool_call_word;

typedef struct tool_call { /* made when a snippet is, and travels */
    const char *name;
    uint8_t count, vectors; /* vectors: registers that are in use */
    uint16_t stack;         /* words of it */
    tool_call_word words[TOOL_CALL_WORDS];
    char result; /* i, d, f: as above; of no result i; m: in `pieces`, to be kept at `place` of the thread's own room;
                  * p: to where the first integer argument says, likewise */
    uint16_t place; /* within TOOL_CALL_ROOM */
    uint16_t size;
    uint8_t piece_count;
    passed_piece pieces[2];
} tool_call;
enum { TOOL_CALL_ROOM = 4096 };

/* Such a call: its arguments follow the first three, the third is the procedure's address. NULL: of something else. */
const tool_call *tool_call_of(const snippet *);
/* snippet_maker.procedure */
const snippet *tool_call_make(snippet_maker *, const image_ctype *procedure, const snippet *address, unsigned count,
                              const snippet *const *arguments);

#endif
