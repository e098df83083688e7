/* Entries and exits. Stubs call these behind whose call a nop stands, with the distance to the procedure's record_tells:
 *
 *     call *__inlay_trace_enter@GOTPCREL(%rip); nopl DISTANCE(%rax)
 *
 * All registers stay but the flags, which nothing hands over there. A slot is taken by one instruction, so a signal's
 * handler that comes in between takes another one. */

#define CURSOR 0
#define END    8
#define OWN    16

        .text
        .macro  done
        .irp    register, rdi, rsi, rdx, rcx, rax
        pop     %\register
        .cfi_adjust_cfa_offset -8
        .endr
        ret
        .endm

        .macro  begin name, leaves
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:  .cfi_startproc
        .irp    register, rax, rcx, rdx, rsi, rdi
        push    %\register
        .cfi_adjust_cfa_offset 8
        .endr
        mov     40(%rsp), %rcx
        movslq  3(%rcx), %rax
        mov     (%rcx,%rax), %eax       /* the procedure's number */
        lea     \leaves(%rax,%rax), %esi
        test    %eax, %eax
        mov     record_me@gottpoff(%rip), %rcx
        jz      1f
        mov     $16, %edi
        xadd    %rdi, %fs:CURSOR(%rcx)
        cmp     %fs:END(%rcx), %rdi
        jae     1f
        rdtsc
        shl     $32, %rdx
        or      %rdx, %rax
        sub     %fs:OWN(%rcx), %rax
        lea     48(%rsp), %rdx          /* the stack pointer there */
        shl     $16, %rax
        mov     %rdx, %rcx
        shr     $32, %rcx
        movzwl  %cx, %ecx
        or      %rcx, %rax
        mov     %rax, (%rdi)
        mov     %edx, 8(%rdi)
        mov     %esi, 12(%rdi)
        done
        .cfi_adjust_cfa_offset 40
1:      mov     $\leaves, %esi
        jmp     slow
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   __inlay_trace_enter, 0
        begin   __inlay_trace_leave, 1

/* The whole state of the processor that C may change, but for tiles: C has no reason to touch them. */
#define STATES 0xe7
#define ROOM   2816

        .type   slow, @function
        .p2align 4
slow:   .cfi_startproc
        .cfi_def_cfa_offset 48
        push    %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -56
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        push    %r8
        push    %r9
        push    %r10
        push    %r11
        push    %rbx
        mov     48(%rbp), %rcx
        movslq  3(%rcx), %rdi
        add     %rcx, %rdi
        lea     56(%rbp), %r8           /* the stack pointer there */
        sub     $ROOM, %rsp
        and     $-64, %rsp
        cmpl    $0, record_has_xsave(%rip)
        jge     2f
        mov     %esi, %r10d
        mov     $1, %eax
        cpuid
        xor     %eax, %eax
        bt      $27, %ecx               /* the system saves by it */
        adc     $0, %eax
        mov     %eax, record_has_xsave(%rip)
        mov     %r10d, %esi
2:      cmpl    $0, record_has_xsave(%rip)
        je      3f
        xor     %eax, %eax
        .irp    at, 512, 520, 528, 536, 544, 552, 560, 568
        mov     %rax, \at(%rsp)
        .endr
        mov     $STATES, %eax
        xor     %edx, %edx
        xsave64 (%rsp)
        mov     %r8, %rdx
        mov     %rbp, %rcx
        call    record_slow
        mov     $STATES, %eax
        xor     %edx, %edx
        xrstor64 (%rsp)
        jmp     4f
3:      fxsave64 (%rsp)
        mov     %r8, %rdx
        mov     %rbp, %rcx
        call    record_slow
        fxrstor64 (%rsp)
4:      lea     -40(%rbp), %rsp
        pop     %rbx
        pop     %r11
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rbp
        .cfi_def_cfa %rsp, 48
        done
        .cfi_endproc
        .size   slow, . - slow

        .data
        .p2align 2
record_has_xsave:
        .long   -1
        .section .note.GNU-stack,"",@progbits
