# A caller that counts on what its callee leaves alone, as compilers do that have seen the callee: `leaf` is to be
# replaced, and may change no more than it did. Ends with 0 if all is well.
        .text
        .globl  _start
        .type   _start, @function
_start: mov     $5, %ecx
        mov     $6, %edx
        mov     $7, %esi
        mov     $8, %edi
        mov     $9, %r8d
        mov     $10, %r9d
        mov     $11, %r10d
        mov     $12, %r11d
        call    leaf
        lea     (%rcx,%rdx), %rcx
        lea     (%rcx,%rsi), %rcx
        lea     (%rcx,%rdi), %rcx
        lea     (%rcx,%r8), %rcx
        lea     (%rcx,%r9), %rcx
        lea     (%rcx,%r10), %rcx
        lea     (%rcx,%r11), %rcx
        mov     $1, %edi
        cmp     $42, %eax                       # what the replacement answers
        jne     end
        cmp     $68, %ecx
        jne     end
        xor     %edi, %edi
end:    mov     $231, %eax
        syscall
        .size   _start, . - _start

        .type   leaf, @function
        .p2align 4
leaf:   mov     $1, %eax
        ret
        .size   leaf, . - leaf
        .p2align 4
        .section .note.GNU-stack, "", @progbits
