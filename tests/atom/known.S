# A program of which everything is known beforehand; run.py says what. Linked statically at fixed addresses.
#
#   walk: twice over 128 KB, one load of 0 every 32 bytes into a register that holds 0 already
#   leaf: called five times; loads 7 into a register that was just cleared, stores it
        .text
        .globl  _start, walk, leaf
        .type   _start, @function
_start:
        xorl    %eax, %eax
        movl    $2, %edx
again:  call    walk
        decl    %edx
        jnz     again
        movl    $5, %edx
more:   call    leaf
        decl    %edx
        jnz     more
        movl    $60, %eax
        xorl    %edi, %edi
        syscall
        .size   _start, . - _start

        .type   walk, @function
walk:   xorl    %ecx, %ecx
step:   movq    table(,%rcx,8), %rax
        addq    $4, %rcx
        cmpq    $16384, %rcx
        jb      step
        ret
        .size   walk, . - walk

        .type   leaf, @function
leaf:   xorl    %ebx, %ebx
        movq    seven(%rip), %rbx
        movq    %rbx, result(%rip)
        ret
        .size   leaf, . - leaf

        .data
        .balign 65536
table:  .zero   131072
seven:  .quad   7
result: .quad   0
        .section .note.GNU-stack, "", @progbits
