/* Calls to and fro between a tool's routine and the procedure that it stands in for (tool/wrap.c). The values are a
 * tool_wrap_values. */
#define INTEGER 0
#define NUMBER 48               /* of vector registers, in a call with variable arguments: al */
#define ANSWER 64
#define VECTOR 80
#define VALUES 208
#define BELOW 160               /* the values lie so high above the stack's end: see set_stack */

        .text

.macro  PROCEDURE name
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
.endm
.macro  KEEP reg
        push    %\reg
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \reg, 0
.endm
.macro  LOAD reg
        pop     %\reg
        .cfi_adjust_cfa_offset -8
        .cfi_restore \reg
.endm

/* void tool_wrap_call(void (*routine)(void), tool_wrap_values *, const uint64_t *stack, size_t words) */
PROCEDURE tool_wrap_call
        KEEP    rbp
        KEEP    rbx
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        mov     %rsp, %rbp
        .cfi_def_cfa_register rbp
        mov     %rsi, %rbx
        mov     %rdi, %r11
        test    $1, %cl
        jz      1f
        sub     $8, %rsp
1:      test    %rcx, %rcx
        jz      2f
        pushq   -8(%rdx, %rcx, 8)
        dec     %rcx
        jmp     1b
2:      movups  VECTOR(%rbx), %xmm0
        movups  VECTOR + 16(%rbx), %xmm1
        movups  VECTOR + 32(%rbx), %xmm2
        movups  VECTOR + 48(%rbx), %xmm3
        movups  VECTOR + 64(%rbx), %xmm4
        movups  VECTOR + 80(%rbx), %xmm5
        movups  VECTOR + 96(%rbx), %xmm6
        movups  VECTOR + 112(%rbx), %xmm7
        mov     (%rbx), %rdi
        mov     8(%rbx), %rsi
        mov     16(%rbx), %rdx
        mov     24(%rbx), %rcx
        mov     32(%rbx), %r8
        mov     40(%rbx), %r9
        mov     NUMBER(%rbx), %rax
        call    *%r11
        mov     %rax, ANSWER(%rbx)
        mov     %rdx, ANSWER + 8(%rbx)
        movups  %xmm0, VECTOR(%rbx)
        movups  %xmm1, VECTOR + 16(%rbx)
        mov     %rbp, %rsp
        .cfi_def_cfa_register rsp
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        LOAD     rbx
        LOAD     rbp
        ret
        .cfi_endproc
        .size   tool_wrap_call, . - tool_wrap_call

/* Called as the original, whatever its type: the registers are its arguments. It comes back by tool_wrap_back. */
PROCEDURE tool_wrap_original
        KEEP    rbp
        KEEP    rbx
        KEEP    r12
        KEEP    r13
        KEEP    r14
        KEEP    r15
        sub     $VALUES + BELOW + 8, %rsp
        .cfi_adjust_cfa_offset VALUES + BELOW + 8
        lea     BELOW(%rsp), %rbx
        mov     %rdi, (%rbx)
        mov     %rsi, 8(%rbx)
        mov     %rdx, 16(%rbx)
        mov     %rcx, 24(%rbx)
        mov     %r8, 32(%rbx)
        mov     %r9, 40(%rbx)
        mov     %rax, NUMBER(%rbx)
        movups  %xmm0, VECTOR(%rbx)
        movups  %xmm1, VECTOR + 16(%rbx)
        movups  %xmm2, VECTOR + 32(%rbx)
        movups  %xmm3, VECTOR + 48(%rbx)
        movups  %xmm4, VECTOR + 64(%rbx)
        movups  %xmm5, VECTOR + 80(%rbx)
        movups  %xmm6, VECTOR + 96(%rbx)
        movups  %xmm7, VECTOR + 112(%rbx)
        mov     %rbx, %rdi
        lea     VALUES + BELOW + 8 + 6 * 8 + 8(%rsp), %rsi
        call    tool_wrap_begin
behind_original:
        mov     BELOW + ANSWER(%rsp), %rax
        mov     BELOW + ANSWER + 8(%rsp), %rdx
        movups  BELOW + VECTOR(%rsp), %xmm0
        movups  BELOW + VECTOR + 16(%rsp), %xmm1
        add     $VALUES + BELOW + 8, %rsp
        .cfi_adjust_cfa_offset -(VALUES + BELOW + 8)
        LOAD     r15
        LOAD     r14
        LOAD     r13
        LOAD     r12
        LOAD     rbx
        LOAD     rbp
        ret
        .cfi_endproc
        .size   tool_wrap_original, . - tool_wrap_original

/* void tool_wrap_back(tool_wrap_values *) */
PROCEDURE tool_wrap_back
        lea     -BELOW(%rdi), %rsp
        jmp     behind_original
        .cfi_endproc
        .size   tool_wrap_back, . - tool_wrap_back

        .section .note.GNU-stack, "", @progbits
