/* void run_point(struct state *, void (*point)(void)): see state.h. The stack pointer is not the state's. */
#define REG(n) (8 * (n))
#define FLAGS 128
#define REAL_FLAGS 136
#define VECTOR 144
#define BELOW (VECTOR + 16 * 32)

        .text
        .globl  run_point
        .type   run_point, @function
run_point:
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        sub     $8, %rsp
        stmxcsr (%rsp)
        mov     %rdi, current(%rip)
        mov     %rsi, target(%rip)
        mov     %rdi, %rax
        lea     BELOW(%rax), %rsi
        lea     -136(%rsp), %rdi
        mov     $128, %ecx
        rep movsb
        ldmxcsr REAL_FLAGS(%rax)
        cmpl    $0, state_has_avx(%rip)
        je      1f
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovups VECTOR + 32 * \n(%rax), %ymm\n
        .endr
        jmp     2f
1:      .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups  VECTOR + 32 * \n(%rax), %xmm\n
        .endr
2:      pushq   FLAGS(%rax)
        popfq
        mov     REG(1)(%rax), %rcx
        mov     REG(2)(%rax), %rdx
        mov     REG(3)(%rax), %rbx
        mov     REG(5)(%rax), %rbp
        mov     REG(6)(%rax), %rsi
        mov     REG(7)(%rax), %rdi
        .irp    n, 8,9,10,11,12,13,14,15
        mov     REG(\n)(%rax), %r\n
        .endr
        mov     (%rax), %rax
        call    *target(%rip)
        mov     %rax, kept(%rip)
        mov     current(%rip), %rax
        mov     %rcx, REG(1)(%rax)
        mov     %rdx, REG(2)(%rax)
        mov     %rbx, REG(3)(%rax)
        mov     %rbp, REG(5)(%rax)
        mov     %rsi, REG(6)(%rax)
        mov     %rdi, REG(7)(%rax)
        .irp    n, 8,9,10,11,12,13,14,15
        mov     %r\n, REG(\n)(%rax)
        .endr
        mov     kept(%rip), %rcx
        mov     %rcx, (%rax)
        pushfq
        popq    FLAGS(%rax)
        cld
        stmxcsr REAL_FLAGS(%rax)
        cmpl    $0, state_has_avx(%rip)
        je      1f
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovups %ymm\n, VECTOR + 32 * \n(%rax)
        .endr
        vzeroupper
        jmp     2f
1:      .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups  %xmm\n, VECTOR + 32 * \n(%rax)
        .endr
2:      lea     BELOW(%rax), %rdi
        lea     -136(%rsp), %rsi
        mov     $128, %ecx
        rep movsb
        ldmxcsr (%rsp)
        add     $8, %rsp
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret
        .size   run_point, . - run_point

        .data
current: .quad  0
target: .quad   0
kept:   .quad   0
        .section .note.GNU-stack, "", @progbits
