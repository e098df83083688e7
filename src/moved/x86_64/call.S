/* A procedure that the tool has called returns here, by way of the boot code (src/elf/x86_64/start.S), which has set
 * in_tool: signals wait as in an analysis routine. The registers are the program's, and go to ctx. */
#include "run/x86_64/offsets.h"

        .text
        .globl  moved_returned
        .hidden moved_returned
        .type   moved_returned, @function
        .p2align 4
moved_returned:
        mov     %rsp, %gs:CTX_RSP
        mov     %gs:OFF_RUNTIME_STACK, %rsp
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
        popq    %gs:CTX_FLAGS
        rdfsbase %rax
        mov     %rax, %gs:CTX_FS
        mov     %gs:OFF_APP_GS, %rax
        mov     %rax, %gs:CTX_GS
        call    *%gs:OFF_SAVE_VECTORS
        fninit
        mov     %gs:OFF_TOOL_FS, %rax
        wrfsbase %rax
        pushq   $2                      /* plain flags */
        popfq
        ldmxcsr default_mxcsr(%rip)
        mov     %gs:0, %rdi
        call    moved_call_returned
        ud2
        .size   moved_returned, . - moved_returned

        .section .rodata
        .p2align 2
default_mxcsr:
        .long   0x1f80
        .section .note.GNU-stack, "", @progbits
