/* What threads of a held process stand in (live/park.c), copied there. Nobody runs here but threads that whoever holds
 * the process makes calls with, each up to the stop behind it; and all of them once the holder has died. Then each
 * waits for what the first one was sent to do, and goes on as its slot's frame says. `rsp` is the thread's slot. */
#include "move/x86_64/park.h"

#define NR_CLOSE        3
#define NR_MUNMAP       11
#define NR_RT_SIGACTION 13
#define NR_RT_SIGRETURN 15
#define NR_GETPID       39
#define NR_WAIT4        61
#define NR_RT_SIGTIMEDWAIT 128
#define NR_RT_SIGQUEUEINFO 129
#define NR_ARCH_PRCTL   158
#define NR_FUTEX        202
#define ARCH_SET_GS     0x1001
#define ARCH_SET_FS     0x1002
#define FUTEX_WAIT      0
#define FUTEX_WAKE      1
#define ALL_CHILDREN    0x40000000 /* __WALL */
#define SIGCHLD         17
#define SET_OF_SIGNALS  8
#define SIGINFO         32 /* above a set and a time */
#define SIGINFO_PID     16

        .text
        .globl  live_park_code, live_park_code_end
        .hidden live_park_code, live_park_code_end
        .p2align 5
live_park_code:
        movabs  $MOVE_PARK_DATA, %rax
        mov     MOVE_PARK_FIRST(%rax), %rsp
        jmp     after
        .org    live_park_code + 32
        mov     %rax, %rdi              /* what it has returned, to be read there */
        mov     (%rsp), %rsp
        mov     $NR_GETPID, %eax
        .org    live_park_code + 44
        syscall
after:  movabs  $MOVE_PARK_DATA, %rbx
        movq    $0, MOVE_SLOT_CALLS(%rsp)
        cmpq    $0, MOVE_SLOT_IS_FIRST(%rsp)
        je      others

/* What was mapped and is of no use goes. */
        mov     MOVE_PARK_GONE_COUNT(%rbx), %r12
        lea     MOVE_PARK_GONE(%rbx), %r13
1:      test    %r12, %r12
        jz      2f
        mov     (%r13), %rdi
        mov     8(%r13), %rsi
        sub     %rdi, %rsi
        mov     $NR_MUNMAP, %eax
        syscall
        add     $16, %r13
        dec     %r12
        jmp     1b
2:      mov     MOVE_PARK_CLOSES(%rbx), %rdi
        sub     $1, %rdi
        jb      3f
        mov     $NR_CLOSE, %eax
        syscall
        movq    $0, MOVE_PARK_CLOSES(%rbx)
3:      movq    $0, MOVE_PARK_GONE_COUNT(%rbx)
        movq    $0, MOVE_PARK_WORKS(%rbx)
        lea     MOVE_PARK_WORKS(%rbx), %rdi
        mov     $FUTEX_WAKE, %esi
        mov     $0x7fffffff, %edx
        mov     $NR_FUTEX, %eax
        syscall

/* The holder may be a child that the program never made: it is waited for, and the signal of its end, which says so
 * although it is one without, is taken away. One of another child's end is put back. */
        mov     MOVE_PARK_CHILD(%rbx), %rdi
        test    %rdi, %rdi
        jz      restore
        mov     %edi, %r12d
        xor     %esi, %esi
        mov     $ALL_CHILDREN, %edx
        xor     %r10d, %r10d
        mov     $NR_WAIT4, %eax
        syscall
        sub     $256, %rsp
        movq    $(1 << (SIGCHLD - 1)), (%rsp)
        movq    $0, 8(%rsp)
        movq    $0, 16(%rsp)
        mov     %rsp, %rdi
        lea     SIGINFO(%rsp), %rsi
        lea     8(%rsp), %rdx
        mov     $SET_OF_SIGNALS, %r10d
        mov     $NR_RT_SIGTIMEDWAIT, %eax
        syscall
        cmp     $SIGCHLD, %eax
        jne     4f
        cmp     %r12d, SIGINFO + SIGINFO_PID(%rsp)
        je      4f
        mov     $NR_GETPID, %eax
        syscall
        mov     %eax, %edi
        mov     $SIGCHLD, %esi
        lea     SIGINFO(%rsp), %rdx
        mov     $NR_RT_SIGQUEUEINFO, %eax
        syscall
4:      add     $256, %rsp
        cmpq    $0, MOVE_PARK_VANISHES(%rbx)
        je      restore
        mov     $SIGCHLD, %edi
        lea     MOVE_PARK_ACTION(%rbx), %rsi
        xor     %edx, %edx
        mov     $SET_OF_SIGNALS, %r10d
        mov     $NR_RT_SIGACTION, %eax
        syscall
        jmp     restore

others: cmpl    $0, MOVE_PARK_WORKS(%rbx)
        je      restore
        lea     MOVE_PARK_WORKS(%rbx), %rdi
        mov     $FUTEX_WAIT, %esi
        mov     $1, %edx
        xor     %r10d, %r10d
        mov     $NR_FUTEX, %eax
        syscall
        jmp     others

restore:
        mov     $ARCH_SET_FS, %edi
        mov     MOVE_SLOT_TLS(%rsp), %rsi
        mov     $NR_ARCH_PRCTL, %eax
        syscall
        mov     $ARCH_SET_GS, %edi
        mov     MOVE_SLOT_GS(%rsp), %rsi
        mov     $NR_ARCH_PRCTL, %eax
        syscall
        add     $MOVE_SLOT_CONTEXT, %rsp
        mov     $NR_RT_SIGRETURN, %eax
        syscall
        ud2
        .org    live_park_code + MOVE_PARK_POPS_AT
        .set    words, 2
        .rept   MOVE_PARK_POPS_MOST
        add     $(8 * words), %rsp
        jmp     live_park_code + 32
        .p2align 4
        .set    words, words + 2
        .endr
live_park_code_end:
        .section .note.GNU-stack, "", @progbits
