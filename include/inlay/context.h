/* The program's registers, `inlay_context`: everything in it is the program's own (original addresses, its own bases).
 */
#ifndef INLAY_CONTEXT_H
#define INLAY_CONTEXT_H

#include <inlay/arch.h>
#include <inlay/reg.h>
#include INLAY_ARCH_HEADER(context)

#ifdef __cplusplus
extern "C" {
#endif

/* The program goes on with this, and the calling routine, with all that is inserted behind its call, does not:
 * registers, flags, pc and vectors are what it says, all at once. For analysis routines whose call has
 * inlay_context_arg: they copy what they got and change the copy, and vectors where it points to (on x86-64 in XSAVE's
 * standard form: a component that is not in the bit vector at byte 512 is as at the start). `xsave` is what the routine
 * got, or NULL: vectors stay as they are now. So a context that was kept from an earlier call is one to go on with,
 * when its `xsave` is set to NULL.
 *
 *     static void skip(const inlay_context *now, uint64_t behind)
 *     {
 *         inlay_context c = *now;
 *         c.pc = behind;
 *         inlay_resume(&c);
 *     }
 *     inlay_insert(inlay_before(insn), inlay_call(skip, inlay_context_arg(), inlay_fall_through()));
 *
 * `pc` is an address that the tool is shown, or one that the program has (a return address on its stack). An
 * instruction that is gone back to is met again, with all that is inserted at it. Locks must have been given back. Not
 * on AArch64 yet, where it ends the program with a message. */
void inlay_resume(const inlay_context *) __attribute__((noreturn));

/* The calling thread's registers where no routine is given them: in a callback of system calls those of the call; in a
 * routine that stands in for a procedure (wrap.h) those that its caller has, at the call until the original has been
 * called, and behind it since. `pc` lies in the instruction that makes the call. From there inlay_process_stack walks
 * up the stack (stack.h). False, with a message, elsewhere. */
bool inlay_context_now(inlay_context *);

#ifdef __cplusplus
}
#endif

#endif
