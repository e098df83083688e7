/* clang-format off */
/* For assembly: the program's general registers, flags and bases go to ctx, but for rsp, which is there already. On a
 * stack of Inlay's; rax is free then. */
#ifndef INL_RUN_X86_64_SAVE_H
#define INL_RUN_X86_64_SAVE_H

#include "run/x86_64/offsets.h"

.macro  SAVE_GENERAL
        mov     %rax, %gs:CTX_RAX
        mov     %rcx, %gs:CTX_RCX
        mov     %rdx, %gs:CTX_RDX
        mov     %rbx, %gs:CTX_RBX
        mov     %rbp, %gs:CTX_RBP
        mov     %rsi, %gs:CTX_RSI
        mov     %rdi, %gs:CTX_RDI
        mov     %r8, %gs:CTX_R8
        mov     %r9, %gs:CTX_R9
        mov     %r10, %gs:CTX_R10
        mov     %r11, %gs:CTX_R11
        mov     %r12, %gs:CTX_R12
        mov     %r13, %gs:CTX_R13
        mov     %r14, %gs:CTX_R14
        mov     %r15, %gs:CTX_R15
        pushfq
        pop     %rax
        mov     %rax, %gs:CTX_FLAGS
        rdfsbase %rax
        mov     %rax, %gs:CTX_FS
        mov     %gs:OFF_APP_GS, %rax
        mov     %rax, %gs:CTX_GS
.endm

#endif
