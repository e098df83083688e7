/* No libc: gathers and masked moves with every mask of a table: 32- and 64-bit indices (negative ones
 * too), with and without base, scales, 32-bit addresses, operands in FS and GS, masks that are all
 * clear, masked loads whose mask is their own destination. Status 77 where the processor lacks AVX2. */
    .macro mask_at offset, reg      /* the mask of this turn: 32 bytes at r13 + offset */
    vmovdqu \offset(%r13), \reg
    .endm

    .globl _start
    .type _start, @function
_start:
    mov $7, %eax
    xor %ecx, %ecx
    cpuid
    mov $77, %r15d
    test $0x20, %ebx                /* AVX2 */
    jz 9f
    lea data(%rip), %rsi
    mov $158, %eax                  /* arch_prctl(ARCH_SET_FS, data) */
    mov $0x1002, %edi
    syscall
    lea data(%rip), %rsi
    mov $158, %eax                  /* ARCH_SET_GS */
    mov $0x1001, %edi
    syscall
    xor %r15d, %r15d
    lea masks(%rip), %r13
    mov $(masks_end-masks)/32, %r12d
    lea middle(%rip), %rbx
    vmovdqu narrow(%rip), %ymm1
    vmovdqu wide(%rip), %ymm2
    vpxor %xmm0, %xmm0, %xmm0
    movabs $middle, %rax
    vmovq %rax, %xmm3
    vpbroadcastd %xmm3, %ymm3       /* 32-bit indices that are whole addresses */
    vpbroadcastd %xmm3, %ymm14
1:  mask_at 0, %ymm4
    vgatherdps %ymm4, (%rbx,%ymm1,4), %ymm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %xmm4
    vpgatherdd %xmm4, 16(%rbx,%xmm1,8), %xmm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %xmm4
    vgatherqps %xmm4, -8(%rbx,%ymm2,2), %xmm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %xmm4
    vpgatherqd %xmm4, (%rbx,%xmm2,1), %xmm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %ymm4
    vgatherdpd %ymm4, (%rbx,%xmm1,8), %ymm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %ymm4
    vpgatherqq %ymm4, (%rbx,%ymm2,8), %ymm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %xmm4
    vgatherqpd %xmm4, (%rbx,%xmm2,8), %xmm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %ymm15
    vgatherdps %ymm15, 8(,%ymm14,1), %ymm13
    vpaddd %ymm13, %ymm0, %ymm0
    mask_at 0, %ymm4
    vgatherdps %ymm4, (%ebx,%ymm1,4), %ymm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %ymm4
    mov $middle-data, %r8d
    vgatherdps %ymm4, %fs:(%r8,%ymm1,4), %ymm5
    vpaddd %ymm5, %ymm0, %ymm0
    cmp $1, %r12d                   /* flags live across all that follows */
    mask_at 0, %ymm4
    vmaskmovps (%rbx), %ymm4, %ymm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %xmm4
    vpmaskmovq 24(%rbx,%r8,1), %xmm4, %xmm5
    vpaddd %ymm5, %ymm0, %ymm0
    mask_at 0, %ymm4
    vmaskmovpd %fs:8(%r8), %ymm4, %ymm4
    vpaddd %ymm4, %ymm0, %ymm0
    mask_at 0, %ymm4
    vmaskmovpd %ymm0, %ymm4, scratch(%rip)
    vpmaskmovd %ymm0, %ymm4, scratch+32(%rip)
    lea scratch+64(%rip), %rdi
    movdqu (%r13), %xmm6
    vmaskmovdqu %xmm6, %xmm0
    maskmovdqu %xmm6, %xmm0
    movq 8(%r13), %mm1
    maskmovq %mm1, %mm2
    emms
    lea 32(%r13), %r13
    lea -1(%r12), %r12
    jne 2f
    xor %r12d, %r12d
2:  test %r12d, %r12d
    jnz 1b
    vmovdqu %ymm0, scratch+96(%rip) /* what was gathered goes out */
    mov $1, %eax
    mov $1, %edi
    lea scratch(%rip), %rsi
    mov $128, %edx
    syscall
9:  mov %r15d, %edi
    mov $231, %eax
    syscall
    .size _start, .-_start

    .section .rodata
    .balign 32
masks:
    .fill 32, 1, 0
    .fill 32, 1, 0xff
    .long 0x80000000, 0, 0, 0, 0, 0, 0, 0x80000000
    .long 0, 0x80000000, 0x7fffffff, 0xffffffff, 0x80000001, 0, 0x7fffffff, 0
    .long 0, 0, 0, 0x80000000, 0, 0x80000000, 0, 0x80000000
    .byte 0x80, 0x7f, 0xff, 0, 0x80, 0x80, 0x01, 0xfe, 0, 0x80, 0, 0, 0, 0, 0x80, 0x40
    .long 0x80808080, 0x7f7f7f7f, 0xdeadbeef, 0x12345678
masks_end:
narrow: .long 0, 5, -3, 17, -20, 2, 9, -9
wide:   .quad 3, -4, 21, -16

    .data
    .balign 64
data:
    .rept 64
    .quad 0x0123456789abcdef
    .endr
middle:
    .rept 64
    .quad 0x0fedcba987654321
    .endr
scratch: .fill 32, 8, 0

    .section .note.GNU-stack, "", @progbits
