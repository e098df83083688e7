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

/* A thread's registers where it stands (0: the first one); of one in new code, as they are in what that was made from.
 * All threads stand still for it, unless they do already; those that run are elsewhere when this returns. `xsave` is
 * NULL. False: there is no such thread, or it is just in what has been inserted, or in the mutator's code
 * (inlay_process_error). */
bool inlay_process_thread_context(inlay_process *, int tid, inlay_context *);

/* The frames of a thread that stands still in a process of a mutator's (process.h): a thread's context, or an event's
 * (event.h), the innermost first, by the images' unwind tables. New code is told by what it was made from. How many; it
 * ends where no table describes the code, and at a signal's frame. */
unsigned inlay_process_stack(inlay_process *, const inlay_context *, inlay_stack_frame *out, unsigned most);

#ifdef __cplusplus
}
#endif

#endif
