/* Up the stack of a thread of another process. */
#ifndef INLAY_STACK_H
#define INLAY_STACK_H

#include <inlay/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_stack_frame {
    uint64_t address; /* of the instruction that it stands at, of the others' calls: in original code */
    uint64_t stack;   /* the stack pointer that its caller has behind the call */
} inlay_stack_frame;

/* The frames of a thread that stands still in a process of a mutator's (process.h): an event's context (event.h), the
 * innermost first, by the images' unwind tables. New code is told by what it was made from. How many; it ends where no
 * table describes the code, and at a signal's frame. */
unsigned inlay_process_stack(inlay_process *, const inlay_context *, inlay_stack_frame *out, unsigned most);

#ifdef __cplusplus
}
#endif

#endif
