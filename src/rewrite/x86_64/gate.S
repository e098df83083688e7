/* Between the program's own code and the runtime: system calls, signals.
 *
 * rewrite_gate stands in the place of a `syscall`: rcx is the address behind it, all else the program's.
 * What does not concern the tool is made right here. For the rest all signals but faults are blocked first,
 * while everything is still in the program's registers and in slots that a signal's delivery saves
 * (deliver.c); the program's mask goes to native_mask. Then run_leave_code takes over, and on the way back
 * rewrite_gate_leave does the same in reverse, as the very last thing.
 *
 * The dispatcher may also answer that the call be made here, with the program's registers and mask, so that it can
 * sleep and be interrupted: rewrite_gate_pass, or rewrite_gate_call, which comes back to the runtime behind it.
 *
 *     rewrite_gate_begin .. rewrite_gate_end      slots hold what is to go on with
 */
#include "run/x86_64/offsets.h"
#include "rewrite/x86_64/frames.h"

#define OFF_NATIVE_MASK OFF_ENGINE      /* rewrite_own.mask */
#define OFF_SLOT_R11 (OFF_SLOT + 8 * 11)
#define LEAVE_SYSCALL 2
#define LEAVE_SYSCALL_DONE 8
#define NR_RT_SIGPROCMASK 14
#define NR_RT_SIGRETURN 15
#define SIG_SETMASK 2
#define SYSCALL_LIMIT 512
#define FD_PLACES 64            /* RUN_FD_PLACES */
#define TRAP_FLAG 0x100

        .text

.macro  UNSAVE_FLAGS
        mov     %gs:OFF_FLAGS, %rax
        add     $127, %al
        sahf
.endm

/* rax, rdi, rsi, rdx and r10 into their slots, to be free for a call of ours. */
.macro  SAVE_ARGUMENTS
        mov     %rax, %gs:OFF_SLOT_RAX
        mov     %rdi, %gs:OFF_SLOT_RDI
        mov     %rsi, %gs:OFF_SLOT_RSI
        mov     %rdx, %gs:OFF_SLOT_RDX
        mov     %r10, %gs:OFF_SLOT_R10
.endm
.macro  RESTORE_ARGUMENTS
        mov     %gs:OFF_SLOT_R10, %r10
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RSI, %rsi
        mov     %gs:OFF_SLOT_RDI, %rdi
        mov     %gs:OFF_SLOT_RAX, %rax
        mov     %gs:OFF_SLOT_RCX, %rcx
.endm

/* The kernel's mask: all but faults blocked, the program's own goes to native_mask; and back. `label` is where
 * the new one counts. */
.macro  BLOCK_SIGNALS label
        SAVE_ARGUMENTS
        mov     %gs:0, %rdx
        lea     OFF_NATIVE_MASK(%rdx), %rdx
        lea     blocked(%rip), %rsi
        SET_MASK \label
.endm
.macro  ALLOW_SIGNALS label
        SAVE_ARGUMENTS
        mov     %gs:0, %rsi
        lea     OFF_NATIVE_MASK(%rsi), %rsi
        mov     $0, %edx
        SET_MASK \label
.endm
.macro  SET_MASK label
        mov     $SIG_SETMASK, %edi
        mov     $8, %r10d
        mov     $NR_RT_SIGPROCMASK, %eax
        syscall
\label:
        RESTORE_ARGUMENTS
.endm
/* On the way back from the runtime. */
.macro  FROM_RUNTIME label
        mov     %gs:CTX_PC, %rcx
        mov     %rcx, %gs:OFF_SLOT_RCX
        ALLOW_SIGNALS \label
.endm

        .globl  rewrite_gate, rewrite_gate_begin, rewrite_gate_leave, rewrite_gate_end
        .hidden rewrite_gate, rewrite_gate_begin, rewrite_gate_leave, rewrite_gate_end
        .globl  rewrite_gate_pass, rewrite_gate_call
        .hidden rewrite_gate_pass, rewrite_gate_call
        .globl  rewrite_gate_direct, rewrite_gate_passed, rewrite_gate_called   /* right behind a call */
        .hidden rewrite_gate_direct, rewrite_gate_passed, rewrite_gate_called
        .globl  rewrite_gate_blocked, rewrite_called_blocked    /* the mask is ours from here ... */
        .hidden rewrite_gate_blocked, rewrite_called_blocked
        .globl  rewrite_leave_allowed, rewrite_pass_allowed, rewrite_call_allowed /* ... to here */
        .hidden rewrite_leave_allowed, rewrite_pass_allowed, rewrite_call_allowed
        .type   rewrite_gate, @function
        .p2align 4
rewrite_gate_begin:
rewrite_gate:
        mov     %rcx, %gs:OFF_SLOT_RCX
        mov     %rax, %gs:OFF_SLOT_RAX
        mov     %rdx, %gs:OFF_SLOT_RDX
        lahf
        seto    %al
        mov     %rax, %gs:OFF_FLAGS
        mov     %gs:OFF_SLOT_RAX, %rax
        cmp     $SYSCALL_LIMIT, %rax
        jae     3f
        lea     rewrite_gated(%rip), %rdx
        bt      %rax, (%rdx)
        jnc     1f
        lea     rewrite_gated_fds(%rip), %rdx
        bt      %rax, (%rdx)
        jnc     2f
        mov     run_fd_base(%rip), %edx /* of interest only when it is one of Inlay's descriptors */
        mov     %edi, %ecx
        sub     %edx, %ecx
        cmp     $FD_PLACES, %ecx
        jb      2f
        mov     %esi, %ecx              /* dup2, dup3 */
        sub     %edx, %ecx
        cmp     $FD_PLACES, %ecx
        jb      2f
        jmp     1f
3:      cmpb    $0, rewrite_gated_others(%rip)
        jne     2f
1:      UNSAVE_FLAGS
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RAX, %rax
        syscall
rewrite_gate_direct:
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     *%rcx
2:      UNSAVE_FLAGS
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RAX, %rax
        BLOCK_SIGNALS rewrite_gate_blocked
        mov     %rcx, %gs:CTX_PC
        movq    $LEAVE_SYSCALL, %gs:OFF_LEAVE
        jmp     run_leave_code
        .size   rewrite_gate, . - rewrite_gate

        .type   rewrite_gate_leave, @function
        .p2align 4
rewrite_gate_leave:
        FROM_RUNTIME rewrite_leave_allowed
        jmp     *%rcx
        .size   rewrite_gate_leave, . - rewrite_gate_leave

        .type   rewrite_gate_pass, @function
        .p2align 4
rewrite_gate_pass:
        FROM_RUNTIME rewrite_pass_allowed
        syscall
rewrite_gate_passed:
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     *%rcx
        .size   rewrite_gate_pass, . - rewrite_gate_pass

/* The number that the program asked for waits in r11's slot. */
        .type   rewrite_gate_call, @function
        .p2align 4
rewrite_gate_call:
        FROM_RUNTIME rewrite_call_allowed
        syscall
rewrite_gate_called:
        BLOCK_SIGNALS rewrite_called_blocked
        mov     %rcx, %gs:CTX_PC
        movq    $LEAVE_SYSCALL_DONE, %gs:OFF_LEAVE
        jmp     run_leave_code
        .size   rewrite_gate_call, . - rewrite_gate_call
rewrite_gate_end:

/* The kernel's way in: signo, info, ucontext, on the stack that the program or it chose, with the FS base
 * of whatever was interrupted. The program's handler is jumped to, with a frame as it is natively, and with
 * the flags that the kernel left it: alignment is checked there if it was before. */
        .globl  rewrite_signal_entry, rewrite_signal_entered
        .hidden rewrite_signal_entry, rewrite_signal_entered
        .type   rewrite_signal_entry, @function
        .p2align 4
rewrite_signal_entry:
        mov     %rsp, %r8
        sub     $REWRITE_FRAME_RESERVE, %rsp
        pushfq
        pushfq
        andl    $~UNPLAIN_FLAGS, (%rsp)
        popfq
        push    %rax                    /* keeps calls aligned */
        rdgsbase %rcx
        call    rewrite_deliver
rewrite_signal_entered:
        test    %rax, %rax
        jz      1f
        pop     %rcx
        popfq
        mov     %rdx, %rsp
        mov     REWRITE_FRAME_INFO(%rsp), %edi  /* signo */
        lea     REWRITE_FRAME_INFO(%rsp), %rsi
        lea     REWRITE_FRAME_CONTEXT(%rsp), %rdx
        mov     %rax, %rcx
        xor     %eax, %eax
        jmp     *%rcx
1:      add     $REWRITE_FRAME_RESERVE + 24, %rsp
        mov     $NR_RT_SIGRETURN, %eax
        syscall
        .size   rewrite_signal_entry, . - rewrite_signal_entry

/* What a handler returns to where the program's own restorer would not come by the gate. */
        .globl  rewrite_restorer
        .hidden rewrite_restorer
        .type   rewrite_restorer, @function
        .p2align 4
        nop                             /* unwinders look one byte before the return address */
rewrite_restorer:
        mov     $NR_RT_SIGRETURN, %eax
        lea     1f(%rip), %rcx
        jmp     rewrite_gate
1:      ud2
        .size   rewrite_restorer, . - rewrite_restorer

/* The return address of an analysis routine during which a signal came: goes on where the routine
 * returns to (leave_arg), one step at a time. */
        .globl  rewrite_after_routine
        .hidden rewrite_after_routine
        .type   rewrite_after_routine, @function
        .p2align 4
rewrite_after_routine:
        pushq   %gs:OFF_LEAVE_ARG
        pushfq
        orq     $TRAP_FLAG, (%rsp)
        popfq
        ret
        .size   rewrite_after_routine, . - rewrite_after_routine

/* void rewrite_on_tool_stack(run_thread *t, void (*f)(void *), void *arg): with the tool's FS base. */
        .globl  rewrite_on_tool_stack
        .hidden rewrite_on_tool_stack
        .type   rewrite_on_tool_stack, @function
        .p2align 4
rewrite_on_tool_stack:
        push    %rbx
        push    %r12
        rdfsbase %r12
        mov     %rsp, %rbx
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        mov     %gs:OFF_TOOL_FS, %rax
        wrfsbase %rax
        mov     %rdx, %rdi
        call    *%rsi
        mov     %rbx, %rsp
        wrfsbase %r12
        pop     %r12
        pop     %rbx
        ret
        .size   rewrite_on_tool_stack, . - rewrite_on_tool_stack

        .section .rodata
        .p2align 3
blocked:                                /* ~RUN_FAULTS */
        .quad   ~(1 << 10 | 1 << 6 | 1 << 3 | 1 << 7 | 1 << 4 | 1 << 30)
        .section .note.GNU-stack, "", @progbits
