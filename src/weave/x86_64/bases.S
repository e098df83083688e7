/* The tool's FS base around a routine that may look at it, and the program's again behind it: called by woven code,
 * through the frame, in which weave_vectors_choose puts the pair for this kernel. No register and no flag is touched (a
 * system call leaves the flags alone). */
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

/* The base in rsi. */
.macro  SET_BY_CALL
        push    %rcx
        push    %rdi
        push    %r11
        mov     $X86_SET_FS, %edi
        mov     $X86_NR_ARCH_PRCTL, %eax
        syscall
        pop     %r11
        pop     %rdi
        pop     %rcx
.endm

PROCEDURE weave_take_tool_base
        push    %rax
        rdfsbase %rax
        mov     %rax, %gs:OFF_APP_TLS
        mov     %gs:OFF_TOOL_TLS, %rax
        wrfsbase %rax
        pop     %rax
        ret
        .size   weave_take_tool_base, . - weave_take_tool_base

PROCEDURE weave_take_app_base
        push    %rax
        mov     %gs:OFF_APP_TLS, %rax
        wrfsbase %rax
        pop     %rax
        ret
        .size   weave_take_app_base, . - weave_take_app_base

PROCEDURE weave_call_tool_base
        push    %rax
        push    %rsi
        rdfsbase %rax
        mov     %rax, %gs:OFF_APP_TLS
        mov     %gs:OFF_TOOL_TLS, %rsi
        SET_BY_CALL
        movq    $1, %gs:OFF_BASE_IN
        pop     %rsi
        pop     %rax
        ret
        .size   weave_call_tool_base, . - weave_call_tool_base

PROCEDURE weave_call_app_base
        push    %rax
        push    %rsi
        mov     %gs:OFF_APP_TLS, %rsi
        movq    $0, %gs:OFF_BASE_IN
        SET_BY_CALL
        pop     %rsi
        pop     %rax
        ret
        .size   weave_call_app_base, . - weave_call_app_base

        .section .note.GNU-stack, "", @progbits
