/* What kernels bring along themselves. */
        .text
        .irp    register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
        .globl  __x86_indirect_thunk_\register
        .type   __x86_indirect_thunk_\register, @function
__x86_indirect_thunk_\register:
        jmp     *%\register
        int3
        .size   __x86_indirect_thunk_\register, . - __x86_indirect_thunk_\register
        .endr
        .globl  __x86_return_thunk
        .type   __x86_return_thunk, @function
__x86_return_thunk:
        ret
        int3
        .size   __x86_return_thunk, . - __x86_return_thunk
        .section .note.GNU-stack,"",@progbits
