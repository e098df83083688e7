/* How a calling convention passes values of types: <isa>/passing.c. */
#ifndef INL_TOOL_PASSING_H
#define INL_TOOL_PASSING_H

#include "image/ctype.h"

enum { PASSED_MOST = 4 };

typedef enum passed_how {
    PASSED_REGISTERS,     /* in pieces, one in each register */
    PASSED_STACK,         /* so many bytes above the first that is passed there */
    PASSED_POINTER,       /* by the address of a copy, in the one register; of a result: where the caller wants it */
    PASSED_STACK_POINTER, /* by the address of a copy, which lies on the stack as PASSED_STACK says */
} passed_how;
typedef struct passed_piece {
    bool vector;
    uint8_t number; /* of the argument registers, or (in a result) of the result registers; of vector registers */
    uint8_t size;
} passed_piece;
typedef struct passed {
    passed_how how;
    unsigned count; /* 0: an object without members, of which nothing is passed */
    passed_piece pieces[PASSED_MOST];
    unsigned offset;
} passed;

typedef struct tool_passing { /* zeroed before the first */
    unsigned integers, vectors, bytes;
} tool_passing;

/* False: the way is not known. */
bool tool_pass(tool_passing *, const image_ctype *, passed *out);
bool tool_pass_result(const image_ctype *, passed *out);

extern const unsigned tool_argument_registers, tool_vector_arguments;
extern const unsigned tool_stack_arguments; /* above the stack pointer, at a procedure's entry */
extern const unsigned tool_red_zone;        /* so much below the stack pointer handlers of signals leave alone */
extern const uint8_t tool_result_registers[2];
extern const bool tool_result_address; /* of what is returned by PASSED_POINTER: in the first of them */

#endif
