/* The whole vector state to the thread's area and back, by what the processor has that the program runs on: which
 * of these two pairs a thread uses is told by its frame (weave_vectors_choose). No flags are touched; rax, rdx
 * and r11 are. The header says what FXSAVE has no word for: both components are there. */
#include "weave/x86_64/vectors.h"

        .text

.macro  PROCEDURE name
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
.endm

.macro  LOAD_AREA
        mov     %gs:OFF_XSAVE_AREA, %r11
.endm
.macro  LOAD_MASK
        mov     %gs:OFF_XSAVE_MASK, %eax
        mov     %gs:OFF_XSAVE_MASK + 4, %edx
.endm

PROCEDURE weave_save_xsave
        LOAD_AREA
        LOAD_MASK
        xsave64 (%r11)
        ret
        .size   weave_save_xsave, . - weave_save_xsave

PROCEDURE weave_load_xsave
        LOAD_AREA
        LOAD_MASK
        xrstor64 (%r11)
        ret
        .size   weave_load_xsave, . - weave_load_xsave

PROCEDURE weave_save_fxsave
        LOAD_AREA
        fxsave64 (%r11)
        movq    $3, 512(%r11)
        ret
        .size   weave_save_fxsave, . - weave_save_fxsave

PROCEDURE weave_load_fxsave
        LOAD_AREA
        fxrstor64 (%r11)
        ret
        .size   weave_load_fxsave, . - weave_load_fxsave

        .section .note.GNU-stack, "", @progbits
