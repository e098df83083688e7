; By hand, without a C library: a jump table, data between code, overlapping tails, a loop, system calls.
        global _start
        section .text
_start: xor     ebx, ebx
        mov     r12d, 40
.next:  mov     edi, r12d
        call    step
        add     ebx, eax
        dec     r12d
        jnz     .next
        mov     eax, ebx
        lea     rsi, [rel buffer + 15]
        mov     byte [rsi], 10
.digit: xor     edx, edx
        mov     ecx, 10
        div     ecx
        add     dl, '0'
        dec     rsi
        mov     [rsi], dl
        test    eax, eax
        jnz     .digit
        lea     rdx, [rel buffer + 16]
        sub     rdx, rsi
        mov     edi, 1
        mov     eax, 1
        syscall
        mov     edi, ebx
        and     edi, 63
        mov     eax, 60
        syscall
        align   4, db 0x11
table:  dd      zero - table, one - table, two - table, three - table
step:   mov     eax, edi
        and     eax, 3
        lea     rdx, [rel table]
        movsxd  rax, dword [rdx + rax * 4]
        add     rax, rdx
        jmp     rax
zero:   lea     eax, [rdi + rdi]
        ret
        dw      0x1122
one:    mov     eax, edi
        imul    eax, eax
        jmp     short tail
two:    push    rdi
        call    zero
        pop     rdi
tail:   add     eax, 5
        ret
three:  lea     rdx, [rel one]
        jmp     rdx
        section .bss
buffer: resb    16
