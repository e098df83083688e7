/* The tool's FS base around a routine that could not be analysed, and the program's again behind it: called by woven
 * code, through the frame (weave_vectors_choose), on the private stack. No register is touched; flags are. */
#include "isa/x86_64/bases.h"
#include "weave/x86_64/vectors.h"

        .text

.macro  PROCEDURE name
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
.endm

.macro  KEEP
        push    %rax
        push    %rcx
        push    %rsi
        push    %rdi
        push    %r11
.endm
.macro  BACK
        pop     %r11
        pop     %rdi
        pop     %rsi
        pop     %rcx
        pop     %rax
.endm

PROCEDURE weave_take_tool_base
        KEEP
        rdfsbase %rsi
        mov     %rsi, %gs:OFF_APP_TLS
        mov     %gs:OFF_TOOL_TLS, %rsi
        SET_FS_BASE
        BACK
        ret
        .size   weave_take_tool_base, . - weave_take_tool_base

PROCEDURE weave_take_app_base
        KEEP
        mov     %gs:OFF_APP_TLS, %rsi
        SET_FS_BASE
        BACK
        ret
        .size   weave_take_app_base, . - weave_take_app_base

        .section .note.GNU-stack, "", @progbits
