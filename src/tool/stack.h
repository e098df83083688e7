/* Up a stack by the unwind tables of images: what a mutator's process (mutator_stack.c) and the present one (stack.c)
 * share. Code is known by the addresses that the tool is shown: where it has moved, the frame there is as it would be
 * here. Return addresses and all that is read are the process's own. */
#ifndef INL_TOOL_STACK_H
#define INL_TOOL_STACK_H

#include "image/file.h"

#include <inlay/context.h>
#include <inlay/stack.h>

typedef struct stack_code { /* where an address lies; `file` NULL: in no image */
    image *file;
    uint64_t bias;
} stack_code;

/* Who has called a procedure that returns to the engine, for the tool's sake. */
typedef enum stack_passed {
    STACK_PASSED_NOT,     /* it is none */
    STACK_PASSED_CALL,    /* a call of the program's, of what a routine stands in for: `back` and `stack` */
    STACK_PASSED_SNIPPET, /* what is inserted where the program has these registers: `at` */
} stack_passed;
typedef struct stack_caller {
    uint64_t back, stack; /* where the call returns to, the stack pointer behind that */
    inlay_context at;
} stack_caller;

typedef struct stack_process stack_process;
struct stack_process {
    void *of;
    bool (*read)(void *of, void *to, uint64_t from, size_t size);
    stack_code (*code_at)(void *of, uint64_t shown);
    uint64_t (*call_before)(void *of, uint64_t back); /* as it is shown, in the call that a return address is behind */
    uint64_t (*shown)(void *of, uint64_t real);
    /* Of a frame that returns to `back`, with this stack pointer behind it. */
    stack_passed (*passes)(const stack_process *, uint64_t back, uint64_t stack, stack_caller *);
};

/* The frames from these registers on. How many. */
unsigned stack_walk(const stack_process *, const inlay_context *, inlay_stack_frame *out, unsigned most);

#endif
