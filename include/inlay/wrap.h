/* A procedure that the tool stands in for, and that it calls.
 *
 *     static void *my_malloc(size_t size)
 *     {
 *         void *p = inlay_call_original(my_malloc, size);
 *         note(p, size);
 *         return p;
 *     }
 *     ...
 *     inlay_proc_wrap(inlay_image_proc_named(image, "malloc"), (void (*)(void))my_malloc, 0);
 *
 * Each call of the procedure becomes one of the routine, a C function of the same type: integers and pointers, float
 * and double, structures in registers and by address, variable arguments in registers. `words`: how many 8-byte words
 * of arguments the procedure takes on the stack, which those behind the sixth integer (the eighth double) are; at
 * most 16.
 *
 * The original runs as it always does: instrumented, with its signals, threads, calls of system, and calls of
 * procedures that are wrapped, itself included. The routine may call it not at all, once, or several times, with any
 * arguments; but nothing else of the program's. Its result is the routine's to look at and to return.
 *
 * Where the program leaves the original otherwise than by returning (longjmp, an exception, the end of the thread), the
 * routine is given up where it stands, as a C function of the program's own would be: what is behind the call in it
 * does not happen. So it must not hold a lock while it calls. A program that goes to and fro between stacks of its own
 * inside of originals may have routines given up whose original returns later; the program itself goes on as without
 * the tool.
 *
 * Under the JIT an original that was left so is taken to have returned when the same indirect call, in the same frame
 * of its caller, calls another procedure next: what the routine does behind its call happens when that one has
 * returned.
 *
 * Some ten thousand calls may wait for each other in a thread; what goes deeper ends the program with a message. Not
 * for procedures that return twice (setjmp, vfork), nor for long double and vectors of more than 16 bytes, as arguments
 * or results. */
#ifndef INLAY_WRAP_H
#define INLAY_WRAP_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From an image or procedure callback. False, with a message, where it cannot be. In a program that is rewritten, a
 * procedure that stays where it is, as import stubs do, is wrapped where its image calls it directly. Not on AArch64
 * yet. */
bool inlay_proc_wrap(inlay_proc *, void (*routine)(void), unsigned words);

/* The procedure that the routine which runs stands in for: to be called as a function of the routine's type. Ends the
 * program, with a message, where none does. */
void (*inlay_original(void))(void);

#ifdef __cplusplus
}
#endif

/* Calls it, as a function of the type of `routine`, which is the routine that stands in for it. */
#define inlay_call_original(routine, ...) (((__typeof__(&(routine)))inlay_original())(__VA_ARGS__))

#endif
