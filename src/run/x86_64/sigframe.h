/* The frame that the x86-64 kernel builds for a handler with SA_SIGINFO semantics (it builds no other), from the
 * handler's stack pointer up:
 *
 *     sp + 0      return address: the program's restorer
 *        + 8      ucontext: flags, link, stack_t, 256 bytes of sigcontext, 8 bytes of mask
 *        + 312    siginfo, 128 bytes
 *        + 440    padding
 *     64-aligned  vector state in XSAVE's standard form; bytes 464..511 of its legacy part tell its
 *                 size and features; a second magic word follows it
 */
#ifndef INL_RUN_X86_64_SIGFRAME_H
#define INL_RUN_X86_64_SIGFRAME_H

#define RUN_FRAME_SIZE    440 /* without the vector state */
#define RUN_FRAME_CONTEXT 8
#define RUN_FRAME_INFO    312

#ifndef __ASSEMBLER__
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum { RUN_RED_ZONE = 128 };

typedef struct run_frame {
    uint64_t restorer, flags, link;
    stack_t stack;
    mcontext_t mc;
    uint64_t mask;
    uint8_t info[128];
} run_frame;
_Static_assert(sizeof(mcontext_t) == 256 && sizeof(siginfo_t) == 128, "kernel ABI");
_Static_assert(sizeof(run_frame) == RUN_FRAME_SIZE && offsetof(run_frame, info) == RUN_FRAME_INFO &&
                   offsetof(run_frame, flags) == RUN_FRAME_CONTEXT,
               "kernel ABI");

/* Where the kernel's context has general register r, among its gregs. */
static inline unsigned run_frame_place(unsigned r)
{
    static const uint8_t place[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return place[r];
}

/* The arithmetic flags, and how they wait in the thread's frame: lahf's byte in bits 8 to 15, overflow in bit 0. */
enum { RUN_FLAGS_AH = 0xd5, RUN_FLAG_OF = 0x800, RUN_ARITHMETIC = RUN_FLAGS_AH | RUN_FLAG_OF };
static inline uint64_t run_flags_packed(uint64_t flags) { return (flags & 0xff) << 8 | (flags & RUN_FLAG_OF ? 1 : 0); }
static inline uint64_t run_flags_unpacked(uint64_t flags, uint64_t packed)
{
    return (flags & ~(uint64_t)RUN_ARITHMETIC) | (packed >> 8 & RUN_FLAGS_AH) | (packed & 1 ? RUN_FLAG_OF : 0);
}
#endif

#endif
