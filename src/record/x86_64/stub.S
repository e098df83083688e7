/* Entries and exits. Stubs call these behind whose call a nop stands, with the distance to the procedure's record_tells:
 *
 *     call *__inlay_trace_entry@GOTPCREL(%rip); nopl DISTANCE(%rax)
 *
 * All registers stay but the flags, which nothing hands over there. A slot is taken by one instruction, so a signal's
 * handler that comes in between takes another one.
 *
 * A procedure's number is 0 before its first call, and less where not each call is recorded: then C code that leaves
 * vector registers alone is asked first. */

#define CURSOR 0
#define END    8
#define OWN    16
#define NUMBER 20
#define LEAVES 1
#define CHOSEN 2

        .text
        .macro  done
        .irp    register, rdi, rsi, rdx, rcx, rax
        pop     %\register
        .cfi_adjust_cfa_offset -8
        .endr
        ret
        .endm

        /* A record of %esi, or to `full`: with %rcx of the thread's. */
        .macro  put     full
        mov     $16, %edi
        xadd    %rdi, %fs:CURSOR(%rcx)
        cmp     %fs:END(%rcx), %rdi
        jae     \full
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
        mov     NUMBER(%rcx,%rax), %eax
        lea     \leaves(%rax,%rax), %esi
        test    %eax, %eax
        mov     record_me@gottpoff(%rip), %rcx
        jle     1f
        put     2f
        done
        .cfi_adjust_cfa_offset 40
1:      jl      choose
2:      mov     $\leaves, %esi
        jmp     slow
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   __inlay_trace_entry, 0
        begin   __inlay_trace_exit, LEAVES

        .type   choose, @function
        .p2align 4
choose: .cfi_startproc
        .cfi_def_cfa_offset 48
        push    %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -56
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        .irp    register, r8, r9, r10, r11, rsi
        push    %\register
        .endr
        and     $-16, %rsp
        mov     48(%rbp), %rcx
        movslq  3(%rcx), %rdi
        add     %rcx, %rdi
        and     $LEAVES, %esi
        lea     56(%rbp), %rdx
        call    record_choose
        lea     -40(%rbp), %rsp
        .irp    register, rsi, r11, r10, r9, r8, rbp
        pop     %\register
        .endr
        .cfi_def_cfa %rsp, 48
        cmp     $1, %eax                /* RECORD_THIS */
        ja      2f
        jb      1f
        mov     record_me@gottpoff(%rip), %rcx
        put     3f
1:      done
        .cfi_adjust_cfa_offset 40
2:      and     $LEAVES, %esi
        jmp     slow
3:      and     $LEAVES, %esi
        or      $CHOSEN, %esi
        jmp     slow
        .cfi_endproc
        .size   choose, . - choose

/* The whole state of the processor that C may change, but for tiles: C has no reason to touch them. */
#define STATES 0xe7
#define ROOM   2816

        /* To (%rsp), which is aligned, and back; for %rax, %rcx, %rdx, %rbx and %r10. */
        .macro  keep_vectors
        cmpl    $0, record_has_xsave(%rip)
        jge     2f
        mov     $1, %eax
        cpuid
        xor     %eax, %eax
        bt      $27, %ecx               /* the system saves by it */
        adc     $0, %eax
        mov     %eax, record_has_xsave(%rip)
2:      cmpl    $0, record_has_xsave(%rip)
        je      3f
        xor     %eax, %eax
        .irp    at, 512, 520, 528, 536, 544, 552, 560, 568
        mov     %rax, \at(%rsp)
        .endr
        mov     $STATES, %eax
        xor     %edx, %edx
        xsave64 (%rsp)
        jmp     4f
3:      fxsave64 (%rsp)
4:
        .endm

        .macro  vectors_back
        cmpl    $0, record_has_xsave(%rip)
        je      5f
        mov     $STATES, %eax
        xor     %edx, %edx
        xrstor64 (%rsp)
        jmp     6f
5:      fxrstor64 (%rsp)
6:
        .endm

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
        lea     56(%rbp), %r8           /* the stack pointer there */
        mov     %esi, %r9d
        sub     $ROOM, %rsp
        and     $-64, %rsp
        keep_vectors
        mov     48(%rbp), %rcx
        movslq  3(%rcx), %rdi
        add     %rcx, %rdi
        mov     %r9d, %esi
        mov     %r8, %rdx
        mov     %rbp, %rcx
        call    record_slow
        vectors_back
        lea     -40(%rbp), %rsp
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

        /* What surrounds record_slow, to be measured. */
        .globl  record_around
        .type   record_around, @function
        .p2align 4
record_around:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        push    %rbx
        sub     $ROOM, %rsp
        and     $-64, %rsp
        keep_vectors
        vectors_back
        mov     -8(%rbp), %rbx
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   record_around, . - record_around

        .data
        .p2align 2
record_has_xsave:
        .long   -1
        .section .note.GNU-stack,"",@progbits
