/* No libc: loops, calls, pushes, string instructions (with and without REP, count zero too), every
 * kind of conditional branch outcome, an indirect call, and flags that live across all of it. */
    .globl _start
    .type _start, @function
_start:
    xor %ebx, %ebx
    mov $1000, %ecx
1:  call leaf
    loop 1b
    mov $200, %r12d
2:  lea table(%rip), %rax
    mov %r12d, %edx
    and $3, %edx
    movslq (%rax,%rdx,4), %rdx
    add %rax, %rdx
    call *%rdx
    dec %r12d
    jnz 2b
    mov $300, %ecx
    lea buffer(%rip), %rdi
    mov $7, %al
    rep stosb
    xor %ecx, %ecx
    rep stosb
    lea buffer(%rip), %rsi
    lea buffer+512(%rip), %rdi
    mov $40, %ecx
    rep movsq
    lea buffer+512(%rip), %rdi
    mov $9, %al
    mov $64, %ecx
    repne scasb
    setne %al
    movzbl %al, %eax
    add %eax, %ebx
    push $12
    pop 8(%rsp)             /* stack pointer after the pop is the base */
    mov $3, %ecx
    xor %eax, %eax
3:  sub $1, %ecx            /* carry lives into the next turn */
    adc $0, %ebx
    jrcxz 4f
    jmp 3b
4:  mov $message_end-message, %edx
    lea message(%rip), %rsi
    mov $1, %edi
    mov $1, %eax
    syscall
    mov %ebx, %edi
    and $0x3f, %edi
    mov $231, %eax
    syscall
    .size _start, .-_start

    .type leaf, @function
leaf:
    add %ecx, %ebx
    test $1, %cl
    jz 5f
    cmovz %ecx, %ebx
    push %rbx
    add $8, %rsp
    mov -8(%rsp), %rbx      /* below the stack pointer: the red zone */
5:  ret
    .size leaf, .-leaf

    .type case0, @function
case0:
    inc %ebx
    ret
    .size case0, .-case0
    .type case1, @function
case1:
    xor $5, %ebx
    ret
    .size case1, .-case1
    .type case2, @function
case2:
    bsf %r12, %rax
    add %eax, %ebx
    ret $0
    .size case2, .-case2
    .type case3, @function
case3:
    push %rbp
    mov %rsp, %rbp
    sub $32, %rsp
    mov %ebx, -4(%rbp)
    incl -4(%rbp)
    mov -4(%rbp), %ebx
    leave
    ret
    .size case3, .-case3

    .section .rodata
    .balign 4
table:
    .long case0-table, case1-table, case2-table, case3-table
message:
    .ascii "asm loop done\n"
message_end:
    .bss
buffer:
    .skip 4096
    .section .note.GNU-stack,"",@progbits
