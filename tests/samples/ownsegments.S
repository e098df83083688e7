/* No libc: a program that sets its own GS base and reaches memory through it in every way there is: ModRM
 * with and without a 32-bit address, absolute addresses, xlat, string instructions (with REP too, and
 * with a count of zero), masked moves, gathers, push; the base read back and set to nothing again. */
    .globl _start
    .type _start, @function
_start:
    lea table-0x1000(%rip), %rsi    /* the base: gs:0x1000 is the table */
    mov $158, %eax                  /* arch_prctl(ARCH_SET_GS, rsi) */
    mov $0x1001, %edi
    syscall
    xor %ebx, %ebx
    mov $40, %r12d
1:  mov %gs:0x1008, %rax
    add %rax, %rbx
    mov $0x1010, %ecx
    adc %gs:(%rcx,%r12,8), %rbx
    addl $3, %gs:8(%ecx)
    mov $0x100001010, %rdx
    add %gs:(%edx,%r12d,8), %ebx     /* the address wraps at 32 bits, then the segment is added */
    movabs %gs:0x1020, %rax
    add %rax, %rbx
    movabs %gs:0x1021, %al
    movabs %eax, %gs:0x1300
    addr32 mov %gs:0x1028, %r9d
    add %r9, %rbx
    mov $0x1000, %ebx
    mov %r12b, %al
    cmp $20, %r12d                   /* flags live across what follows */
    .byte 0x65, 0xd7                 /* xlat %gs:(%rbx) */
    .byte 0x65, 0x67, 0xd7           /* xlat %gs:(%ebx) */
    mov $0x1100, %esi
    lodsb %gs:(%rsi)
    lodsq %gs:(%rsi)
    lea copy(%rip), %rdi
    movsl %gs:(%rsi), (%rdi)
    mov %r12d, %ecx
    rep movsb %gs:(%rsi), (%rdi)
    mov $0x1000, %esi
    mov $5, %ecx
    rep movsq %gs:(%rsi), (%rdi)
    rep movsq %gs:(%rsi), (%rdi)     /* none are left */
    lea table(%rip), %rdi
    mov $0x1000, %esi
    mov %r12d, %ecx
    repe cmpsb (%rdi), %gs:(%rsi)
    mov $0x1007, %esi
    mov $30, %ecx
    repne cmpsb (%rdi), %gs:(%rsi)
    seta %dl
    movzbl %dl, %edx
    add %rdx, %rbx
    push %gs:0x1030
    pop %rax
    add %rax, %rbx
    movdqu masks(%rip), %xmm1
    mov $0x1200, %edi
    .byte 0x65                       /* gs: */
    maskmovdqu %xmm1, %xmm1
    mov %rbx, out(%rip)
    dec %r12d
    jnz 1b
    mov $7, %eax
    xor %ecx, %ecx
    cpuid
    test $0x20, %ebx
    jz 2f
    vmovdqu indices(%rip), %ymm1
    vpcmpeqd %ymm2, %ymm2, %ymm2
    mov $0x1010, %ecx
    vpgatherdd %ymm2, %gs:(%rcx,%ymm1,4), %ymm3
    vmovdqu %ymm3, copy(%rip)
    vmovdqu masks(%rip), %xmm2
    vmaskmovps %gs:4(%rcx), %xmm2, %xmm3
    vmovups %xmm3, copy+32(%rip)
2:  mov $1, %eax
    mov $1, %edi
    lea out(%rip), %rsi
    mov $256, %edx
    syscall
    xor %edi, %edi
    mov $231, %eax
    syscall
    .size _start, .-_start

    .section .rodata
    .balign 16
masks:   .long 0x80000000, 0, 0xff000000, 0x80808000
indices: .long 0, 3, 9, -1, 20, 5, 5, 2

    .data
    .balign 64
out:    .quad 0
copy:   .fill 512, 1, 0
    .balign 64
table:  .set i, 0
    .rept 128
    .quad i * 0x0123456789 + 77
    .set i, i + 1
    .endr

    .section .note.GNU-stack, "", @progbits
