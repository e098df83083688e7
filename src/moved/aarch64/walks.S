/* How the unwinder's procedures begin (moved/walks.c): a note in the thread's block; registers that linkers may use
 * between a call and its procedure are changed. */
#include "run/aarch64/offsets.h"
#define OFF_WALKS (OFF_ENGINE + 0x10) /* moved_own.walks */
        .macro  begins name, next, value
        .globl  \name
        .hidden \name
        .type   \name, %function
        .p2align 4
\name:
        mov     x17, \value
        mrs     x16, tpidr_el0
        ldr     x16, [x16, #8]
        str     x17, [x16, #OFF_WALKS]
        adrp    x16, \next
        ldr     x16, [x16, :lo12:\next]
        br      x16
        .size   \name, . - \name
        .endm
        .text
        begins  moved_walk_begins, moved_next_walk, sp
        begins  moved_raise_begins, moved_next_raise, xzr
        begins  moved_forced_begins, moved_next_forced, xzr
        begins  moved_resume_begins, moved_next_resume, xzr
        begins  moved_rethrow_begins, moved_next_rethrow, xzr
        .section .note.GNU-stack, "", %progbits
