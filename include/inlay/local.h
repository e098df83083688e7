/* Data that each thread of the program has for itself, for what counters and buffers cannot hold.
 *
 *     static inlay_local *stack;
 *     stack = inlay_local_new(sizeof(struct stack));                                in main
 *     inlay_insert(point, inlay_call(enter, inlay_local_address(stack)));           a pointer for the routine
 *     struct stack *s = inlay_local_of(stack, thread);                              in a callback of threads
 *
 * It is zeroed when the thread begins, before the callbacks of its start, and gone behind those of its end. A child of
 * fork has that of the thread that forked, as it was. Unlike thread numbers, which are never used again, it does not
 * grow with the number of threads that there have been. */
#ifndef INLAY_LOCAL_H
#define INLAY_LOCAL_H

#include <inlay/snippet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_local inlay_local;

/* Between inlay_init and inlay_start, in main. `bytes` of any number: what is not touched takes no memory. NULL, with a
 * message, later, or when memory is used up. */
inlay_local *inlay_local_new(size_t bytes);
inlay_expr inlay_local_address(const inlay_local *);
/* NULL: it has ended. Threads that still run when the process ends have theirs in its callbacks
 * (inlay_process_thread_first); the one that ends the process has had its own end by then. */
void *inlay_local_of(const inlay_local *, const inlay_thread *);
/* Of the calling thread: in analysis routines, and callbacks of threads, system calls and signals. In a buffer's
 * function, of the thread whose records these are. NULL: it is none of the program's. */
void *inlay_local_now(const inlay_local *);

#ifdef __cplusplus
}
#endif

#endif
