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

/* A register of the context by its full name (reg.h): whole general ones and their parts, the pc, flags, single ones
 * too, bases of segments, vectors, masks, x87, MXCSR. Its bytes to `out`, and how many: (inlay_reg_bits(reg) + 7) / 8.
 * 0: that is more than `room`, or the context does not have it, as vectors where they were not saved, or are another
 * process's (event.h). */
size_t inlay_context_get(const inlay_context *, inlay_reg, void *out, size_t room);
/* Sets it in a copy, for inlay_resume and inlay_signal_resume; `size` as above. 32 bits of a general register clear the
 * rest, other parts leave it (a vector's on AArch64 clear it). Vectors are set where `xsave` leads to, which copies
 * share. False: not had, or another size. */
bool inlay_context_set(inlay_context *, inlay_reg, const void *value, size_t size);

/* The calling thread's registers where no routine is given them: in a callback of system calls those of the call; in a
 * routine that stands in for a procedure (wrap.h) those that its caller has, at the call until the original has been
 * called, and behind it since. `pc` lies in the instruction that makes the call. From there inlay_process_stack walks
 * up the stack (stack.h). False, with a message, elsewhere. */
bool inlay_context_now(inlay_context *);

#ifdef __cplusplus
}
#endif

#endif
