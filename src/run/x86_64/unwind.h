/* How debuggers walk from the runtime, on the thread's private stack, to the program's code that it came from. DWARF
 * knows no GS base; so these expressions look for the thread's block in the list of all, by a word in it that is the
 * stack pointer. The list is found by a word at a fixed address, which a tool in a process that ran already has there
 * (of move_told, move/live.h); other engines' debuggers are helped otherwise (jit/x86_64, --debug-info).
 *
 * They stand in .debug_frame: nobody in the process follows them. */
#ifndef INL_RUN_X86_64_UNWIND_H
#define INL_RUN_X86_64_UNWIND_H

#include "run/x86_64/offsets.h"

#define RUN_UNWIND_THREADS 0x550800000018 /* address of the list's head */

/* Operators: const8u 0e, deref 06, dup 12, const2u 0a, plus 22, breg7 (rsp) 77, eq 29, bra 28. */
#define UNWIND_WORD(x)  (x) & 0xff, (x) >> 8 & 0xff
#define UNWIND_DWORD(x) UNWIND_WORD(x), UNWIND_WORD((x) >> 16)
/* 32 bytes: the block whose word at `key` is the stack pointer; 0: there is none. */
#define UNWIND_BLOCK(key)                                                                                              \
    0x0e, UNWIND_DWORD(RUN_UNWIND_THREADS), UNWIND_DWORD(RUN_UNWIND_THREADS >> 32), 0x06, 0x06, 0x12, 0x0a,            \
        UNWIND_WORD(key), 0x22, 0x06, 0x77, 0, 0x29, 0x28, 9, 0, 0x0a, UNWIND_WORD(OFF_NEXT), 0x22, 0x06, 0x12, 0x28,  \
        0xeb, 0xff
#define UNWIND_FIELD(key, field) UNWIND_BLOCK(key), 0x0a, UNWIND_WORD(field), 0x22

/* Rules: a register (by DWARF's number) is saved in a field of the block; the caller's stack pointer is in one. */
#define UNWIND_REGISTER(dwarf, key, field) .cfi_escape 0x10, dwarf, 36, UNWIND_FIELD(key, field)
#define UNWIND_STACK(key, field)           .cfi_escape 0x0f, 37, UNWIND_FIELD(key, field), 0x06

/* Whoever returned here from a signal's handler finds the kernel's ucontext at the stack pointer. 10: in memory, at rsp
 * and a distance, which is a SLEB128 of two bytes from 64 on. */
#define UNWIND_NEAR(dwarf, at) .cfi_escape 0x10, dwarf, 2, 0x77, at
#define UNWIND_FAR(dwarf, at)  .cfi_escape 0x10, dwarf, 3, 0x77, (at)&0x7f | 0x80, (at) >> 7
#define UNWIND_CONTEXT_STACK   .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06 /* the word at 160 */

#endif
