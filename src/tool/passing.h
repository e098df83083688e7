/* How calling conventions pass values of types: the platform's own (<isa>/passing.c), Rust's and Go's, each in a file.
 */
#ifndef INL_TOOL_PASSING_H
#define INL_TOOL_PASSING_H

#include "image/ctype.h"

enum { PASSED_MOST = 24 };

typedef enum passed_how {
    PASSED_REGISTERS,     /* in pieces, one in each register */
    PASSED_STACK,         /* so many bytes above the first that is passed there */
    PASSED_POINTER,       /* by the address of a copy, in the one register; of a result: where the caller wants it */
    PASSED_STACK_POINTER, /* by the address of a copy, which lies on the stack as PASSED_STACK says */
} passed_how;
typedef struct passed_piece {
    bool vector, stack; /* stack: it lies `offset` bytes above the first that is passed there */
    uint8_t number;     /* of the argument registers, or (in a result) of the result registers; of vector registers */
    uint8_t size;
    unsigned offset;
} passed_piece;
typedef struct passed {
    passed_how how;
    bool by_register; /* numbers of general registers are those of isa.h */
    unsigned count;   /* 0: an object without members, of which nothing is passed */
    passed_piece pieces[PASSED_MOST];
    unsigned offset;
} passed;

typedef struct tool_passing { /* zeroed before the first */
    unsigned integers, vectors, bytes;
} tool_passing;

/* As C does. False: the way is not known. */
bool tool_pass(tool_passing *, const image_ctype *, passed *out);
bool tool_pass_result(const image_ctype *, passed *out);

/* As the procedure of the type does, whatever its language is; arguments are counted from 1 on. */
bool passing_argument(const image_ctype *proc, unsigned number, passed *out);
bool passing_result(const image_ctype *proc, passed *out);

/* passing_rust.c, passing_go.c */
bool passing_rust(tool_passing *, const image_ctype *, passed *out);
bool passing_rust_result(const image_ctype *, passed *out);
bool passing_go(const image_ctype *proc, unsigned number, passed *out);
bool passing_go_result(const image_ctype *proc, passed *out);

extern const unsigned tool_argument_registers, tool_vector_arguments;
extern const uint8_t tool_argument_numbers[]; /* of these registers, as in isa.h */
extern const unsigned tool_stack_arguments;   /* above the stack pointer, at a procedure's entry */
extern const unsigned tool_red_zone;          /* so much below the stack pointer handlers of signals leave alone */
extern const uint8_t tool_result_registers[2];
extern const bool tool_result_address; /* of what is returned by PASSED_POINTER: in the first of them */
/* Go's registers for integers, as in isa.h; of vector registers the first ones. */
extern const uint8_t tool_go_registers[];
extern const unsigned tool_go_integers, tool_go_vectors;

#endif
