/* The frame that the AArch64 kernel builds for a handler, from the handler's stack pointer up:
 *
 *     sp + 0      siginfo, 128 bytes (written for handlers with SA_SIGINFO)
 *        + 128    ucontext: flags, link, stack_t, mask (8 bytes and 120 of room),
 *        + 304    the context of the registers; its last 4096 bytes are records, and go on behind the frame when
 *                 there are more of them (sigvectors.c)
 *     behind it   two words, x29 and x30 of what was interrupted, to which the handler's x29 points
 *
 * The handler returns to x30: the program's restorer, or the kernel's own in the vdso.
 */
#ifndef INL_RUN_AARCH64_SIGFRAME_H
#define INL_RUN_AARCH64_SIGFRAME_H

#define RUN_FRAME_SIZE    4688 /* without further records and the two words */
#define RUN_FRAME_CONTEXT 128
#define RUN_FRAME_RECORDS 592

#ifndef __ASSEMBLER__
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum { RUN_RED_ZONE = 0, RUN_FRAME_LINK = 16 };

typedef struct run_frame {
    uint8_t info[128];
    uint64_t flags, link;
    stack_t stack;
    uint64_t mask;
    uint8_t mask_room[120];
    mcontext_t mc;
} run_frame;
_Static_assert(sizeof(mcontext_t) == 4384 && sizeof(siginfo_t) == 128, "kernel ABI");
_Static_assert(sizeof(run_frame) == RUN_FRAME_SIZE && offsetof(run_frame, flags) == RUN_FRAME_CONTEXT &&
                   offsetof(run_frame, mc) == 304 && offsetof(run_frame, mc.__reserved) == RUN_FRAME_RECORDS,
               "kernel ABI");

/* The conditions, in the processor's word of state and in the thread's frame. */
#define RUN_CONDITIONS 0xf0000000u
static inline uint64_t run_flags_packed(uint64_t flags) { return flags & RUN_CONDITIONS; }
static inline uint64_t run_flags_unpacked(uint64_t flags, uint64_t packed)
{
    return (flags & ~(uint64_t)RUN_CONDITIONS) | (packed & RUN_CONDITIONS);
}
#endif

#endif
