# Procedures of which every answer is known beforehand; run.py says what. Linked statically at fixed addresses.
        .text
        .globl  _start, framed, kinds, leaves
        .weak   framed
        .type   _start, @function
_start:
        call    framed
        call    kinds
        call    leaves
        movl    $framed, %eax
        call    *%rax
        movl    $60, %eax
        xorl    %edi, %edi
        syscall
        .size   _start, . - _start

# Three registers saved, a base, 32 bytes of its own.
        .type   framed, @function
framed: pushq   %rbp
        movq    %rsp, %rbp
        pushq   %rbx
        pushq   %r12
        subq    $32, %rsp
        movq    %rax, 8(%rsp)
        addq    $32, %rsp
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .size   framed, . - framed

        .type   kinds, @function
kinds:  movl    $3, %ecx
        imull   %ecx, %ecx
        imulq   %rcx, %rcx
        andq    %rcx, %rcx
        shlq    $1, %rcx
        cmoveq  %rcx, %rdx
        cmpq    %rcx, %rdx
        addl    $1, %ecx
        cvtsi2sdl %ecx, %xmm1
        movsd   %xmm1, value(%rip)
        movsd   value(%rip), %xmm2
        divss   %xmm1, %xmm2
        divsd   %xmm1, %xmm2
        addsd   %xmm2, %xmm3
        addq    $1, value(%rip)
        movq    value(%rip), %rax
        movq    %rax, value(%rip)
        cpuid
        jmp     1f
1:      ret
        .size   kinds, . - kinds

        .type   leaves, @function
leaves: testl   %eax, %eax
        jmp     away
        .size   leaves, . - leaves

        .type   away, @function
away:   testl   %edi, %edi
        je      1f              # not every processor can do what is passed over
        shlxq   %rcx, %rcx, %rcx
        rorxq   $3, %rcx, %rcx
1:      ret
        .size   away, . - away

        .data
value:  .quad   7
        .bss
empty:  .zero   4096
        .section .note.GNU-stack, "", @progbits
