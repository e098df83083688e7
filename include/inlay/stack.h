/* Up the stack of a thread, one's own or one of another process.
 *
 *     static void allocated(const inlay_context *now, size_t size)          inlay_call(allocated, inlay_context_arg(),
 * ...)
 *     {
 *         inlay_stack_frame frames[16];
 *         unsigned n = inlay_process_stack(inlay_process_self(), now, frames, 16);
 *         for (unsigned k = 0; k < n; k++) ... inlay_proc_at(frames[k].address), inlay_line_at(frames[k].address, ...)
 *     }
 */
#ifndef INLAY_STACK_H
#define INLAY_STACK_H

#include <inlay/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_stack_frame {
    uint64_t address; /* of the instruction that it stands at; of a frame that has called the one before it: in that
                       * call. As the tool is shown code */
    uint64_t stack;   /* the stack pointer that its caller has behind the call */
    bool interrupted; /* it has called nothing: the frame before it is that of a signal's handler, or of a procedure
                       * that a snippet there has called */
} inlay_stack_frame;

/* A thread's registers where it stands (0: the first one); of one in new code, as they are in what that was made from.
 * All threads stand still for it, unless they do already; those that run are elsewhere when this returns. `xsave` is
 * NULL. False: there is no such thread, or it is just in what has been inserted, or in the mutator's code
 * (inlay_process_error). For processes of a mutator's (process.h). */
bool inlay_process_thread_context(inlay_process *, int tid, inlay_context *);

/* The frames from a context on, the innermost first, by the images' unwind tables. How many; it ends where no table
 * describes the code. In the present process the context is what the calling routine or callback has got, or
 * inlay_context_now (context.h): some microseconds, and a look into the files of the images at the first time. In a
 * process of a mutator's it is that of a thread that stands still, or an event's (event.h). */
unsigned inlay_process_stack(inlay_process *, const inlay_context *, inlay_stack_frame *out, unsigned most);

#ifdef __cplusplus
}
#endif

#endif
