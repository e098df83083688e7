/* Entries and exits. Stubs call these behind whose call a nop stands, with the distance to the procedure's record_tells:
 *
 *     call *__inlay_trace_entry_needs_libinlay_trace@GOTPCREL(%rip); nopl DISTANCE(%rax)
 *
 * All registers stay but the flags, which compilers hand over nowhere. People do: those who may be called by such code
 * (src/object/flags.c) call the other two, `..._keeping_...`, which keep flags and look themselves at what code otherwise
 * looks at before the call (tells.h); `gap` bytes below the stack pointer are theirs, too, and are left out. A slot is taken by one instruction, so a signal's handler that comes in between takes
 * another one.
 *
 * A procedure's number is 0 before its first call, and less where not each call is recorded: then C code that leaves
 * vector registers alone is asked first. */

#define CURSOR 0
#define END    8
#define OWN    16
#define STACK  24
#define INSIDE 32
#define LOW    0
#define LEFT   8
#define OPEN   16
#define NUMBER 20
#define LEAVES 1
#define CHOSEN 2

        .text
        .macro  back_without more
        .ifnb   \more
        popfq
        .cfi_adjust_cfa_offset -8
        .endif
        ret
        .endm

        .macro  done more
        .irp    register, rdi, rsi, rdx, rcx, rax
        pop     %\register
        .cfi_adjust_cfa_offset -8
        .endr
        back_without \more
        .endm

        /* A record of %ecx, or to `full`; for %rax, %rdx and %rdi. `above`: from here to the stack pointer there, whose
         * bits from 48 on are 0. */
        .macro  put     above, full
        mov     record_me@gottpoff(%rip), %rdx
        mov     $16, %edi
        xadd    %rdi, %fs:CURSOR(%rdx)
        cmp     %fs:END(%rdx), %rdi
        jae     \full
        rdtsc
        shl     $32, %rdx
        or      %rdx, %rax
        mov     record_me@gottpoff(%rip), %rdx
        sub     %fs:OWN(%rdx), %rax
        lea     \above(%rsp), %rdx
        shl     $16, %rax
        mov     %edx, 8(%rdi)
        shr     $32, %rdx
        or      %rdx, %rax
        mov     %rax, (%rdi)
        mov     %ecx, 12(%rdi)
        .endm

        /* What of a call that is not recorded is to be done: to `out`. With %rcx and %rax as they are behind the number's
         * place is known. */
        .macro  look leaves, above, out
        .if     \leaves
        cmpl    $0, OPEN(%rcx,%rax)
        je      \out
        .else
        lea     \above(%rsp), %rdx
        cmp     LOW(%rcx,%rax), %rdx
        jb      5f
        subq    $1, LEFT(%rcx,%rax)
        jns     \out
5:
        .endif
        .endm

        /* `more`: of what is kept besides, on the stack in front of the rest. */
        .macro  begin name, leaves, more
        .ifnb   \more
gap = 128
        .else
gap = 0
        .endif
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:  .cfi_startproc
        .ifnb   \more
        pushfq
        .cfi_adjust_cfa_offset 8
        .endif
        .irp    register, rax, rcx, rdx, rdi
        push    %\register
        .cfi_adjust_cfa_offset 8
        .endr
        mov     32\more(%rsp), %rcx
        movslq  3(%rcx), %rax
        .ifnb   \more
        look    \leaves, 40\more+gap, 4f
        .endif
        mov     NUMBER(%rcx,%rax), %ecx
        test    %ecx, %ecx
        jle     1f
        lea     \leaves(%rcx,%rcx), %ecx
        put     40\more+gap, 1f
4:      .irp    register, rdi, rdx, rcx, rax
        pop     %\register
        .cfi_adjust_cfa_offset -8
        .endr
        back_without \more
        .cfi_adjust_cfa_offset 32\more
1:      mov     (%rsp), %rdi            /* one register more is kept from here on */
        mov     %rsi, (%rsp)
        push    %rdi
        .cfi_adjust_cfa_offset 8
        mov     $\leaves, %esi
        mov     40\more(%rsp), %rcx
        movslq  3(%rcx), %rax
        cmpl    $0, NUMBER(%rcx,%rax)
        .ifnb   \more
        jl      choose_keeping
        jmp     slow_keeping
        .else
        jl      choose
        jmp     slow
        .endif
        .cfi_endproc
        .size   \name, . - \name
        .endm

        begin   __inlay_trace_entry_needs_libinlay_trace, 0
        begin   __inlay_trace_exit_needs_libinlay_trace, LEAVES
        begin   __inlay_trace_keeping_entry_needs_libinlay_trace, 0, +8
        begin   __inlay_trace_keeping_exit_needs_libinlay_trace, LEAVES, +8

        .macro  choosing name, rare, more
        .ifnb   \more
gap = 128
        .else
gap = 0
        .endif
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .cfi_def_cfa_offset 48\more
        push    %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -56-(0\more)
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        .ifnb   \more
        cld                             /* as C wants it */
        .endif
        .irp    register, r8, r9, r10, r11, rsi
        push    %\register
        .endr
        and     $-16, %rsp
        mov     48\more(%rbp), %rcx
        movslq  3(%rcx), %rdi
        add     %rcx, %rdi
        lea     56\more+gap(%rbp), %rdx
        call    record_choose
        lea     -40(%rbp), %rsp
        .irp    register, rsi, r11, r10, r9, r8, rbp
        pop     %\register
        .endr
        .cfi_def_cfa %rsp, 48\more
        cmp     $1, %eax                /* RECORD_THIS */
        ja      \rare
        jb      1f
        mov     40\more(%rsp), %rcx
        movslq  3(%rcx), %rax
        mov     NUMBER(%rcx,%rax), %ecx
        lea     (%rsi,%rcx,2), %ecx
        put     48\more+gap, 2f
1:      done    \more
        .cfi_adjust_cfa_offset 40\more
2:      or      $CHOSEN, %esi
        jmp     \rare
        .cfi_endproc
        .size   \name, . - \name
        .endm

        choosing choose, slow
        choosing choose_keeping, slow_keeping, +8

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

        /* What code without AVX may change, and the vdso's. */
#define VECTORS 256

        .macro  movaps_out number
        movaps  %xmm\number, 16*\number(%rsp)
        .endm

        .macro  movaps_in number
        movaps  16*\number(%rsp), %xmm\number
        .endm

        .macro  vectors how
        .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        \how   \number
        .endr
        .endm

        /* rt_sigprocmask of the mask at \from; what there was goes to \to, both 0: nowhere. For %rax, %rcx, %rdi, %rsi,
         * %rdx, %r10, %r11. */
        .macro  set_signals from, to
        mov     $14, %eax
        mov     $2, %edi
        lea     \from, %rsi
        .ifb    \to
        xor     %edx, %edx
        .else
        lea     \to, %rdx
        .endif
        mov     $8, %r10d
        syscall
        .endm

/* What is rare runs on a stack of the thread's own (stack.c), with signals blocked: the program's may be a coroutine's, or
 * a handler's, with room for what it does itself; and no handler of the program's must run on ours. */
        .macro  rare name, more
        .ifnb   \more
gap = 128
        .else
gap = 0
        .endif
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        .cfi_def_cfa_offset 48\more
        push    %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -56-(0\more)
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        .ifnb   \more
        cld
        .endif
        push    %r8
        push    %r9
        push    %r10
        push    %r11
        push    %rbx
        mov     %esi, %ebx
        mov     record_me@gottpoff(%rip), %rax
        cmpb    $0, %fs:INSIDE(%rax)
        jne     9f
        cmpb    $0, record_is_quick(%rip)
        je      7f
        sub     $VECTORS, %rsp
        and     $-16, %rsp
        vectors movaps_out
        mov     48\more(%rbp), %rcx
        movslq  3(%rcx), %rdi
        add     %rcx, %rdi
        lea     56\more+gap(%rbp), %rdx
        call    record_quickly
        vectors movaps_in
        test    %al, %al            /* a bool: the rest of rax is anything */
        jnz     9f
7:      lea     -64(%rbp), %rsp
        and     $-16, %rsp
        set_signals all_signals(%rip), -48(%rbp)
        mov     record_me@gottpoff(%rip), %rax
        mov     $1, %dl
        xchg    %dl, %fs:INSIDE(%rax)   /* of two that share a thread's data one stays outside */
        test    %dl, %dl
        jnz     0f
        mov     %fs:STACK(%rax), %rax
        test    %rax, %rax
        jnz     8f
        call    record_stack_take
        test    %rax, %rax
        jz      1f
8:      mov     %rax, %rsp
1:      mov     %ebx, %r9d
        lea     56\more+gap(%rbp), %r8           /* the stack pointer there */
        sub     $ROOM, %rsp
        and     $-64, %rsp
        keep_vectors
        mov     48\more(%rbp), %rcx
        movslq  3(%rcx), %rdi
        add     %rcx, %rdi
        mov     %r9d, %esi
        mov     %r8, %rdx
        mov     %rbp, %rcx
        call    record_slow
        vectors_back
        lea     -64(%rbp), %rsp
        mov     record_me@gottpoff(%rip), %rax
        movb    $0, %fs:INSIDE(%rax)
0:      set_signals -48(%rbp)
9:      lea     -40(%rbp), %rsp
        pop     %rbx
        pop     %r11
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rbp
        .cfi_def_cfa %rsp, 48\more
        done    \more
        .cfi_endproc
        .size   \name, . - \name
        .endm

        rare    slow
        rare    slow_keeping, +8

        /* What surrounds record_quickly, to be measured. */
        .globl  record_around_quick
        .type   record_around_quick, @function
        .p2align 4
record_around_quick:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $VECTORS, %rsp
        and     $-16, %rsp
        vectors movaps_out
        vectors movaps_in
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   record_around_quick, . - record_around_quick

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
        .section .rodata
        .p2align 3
all_signals:
        .quad   -1
        .section .note.GNU-stack,"",@progbits
