/* Between the program's own code and the runtime: system calls, signals.
 *
 * moved_gate stands in the place of a `syscall`: rcx is the address behind it, all else the program's.
 * What does not concern the tool is made right here. For the rest all signals but faults are blocked first,
 * while everything is still in the program's registers and in slots that a signal's delivery saves
 * (deliver.c); the program's mask goes to native_mask. Then run_leave_code takes over, and on the way back
 * moved_gate_leave does the same in reverse, as the very last thing.
 *
 * The dispatcher may also answer that the call be made here, with the program's registers and mask, so that it can
 * sleep and be interrupted: moved_gate_pass, or moved_gate_call, which comes back to the runtime behind it. Or that the
 * call be made from the program's old code, once the tool has been taken out: moved_gate_wait.
 *
 *     moved_gate_begin .. moved_gate_end      slots hold what is to go on with
 */
#include "isa/x86_64/bases.h"
#include "run/x86_64/unwind.h"
#include "moved/x86_64/frames.h"
#include "run/x86_64/sigframe.h"

#define OFF_NATIVE_MASK OFF_ENGINE      /* moved_own.mask */
#define LEAVE_SYSCALL 2
#define LEAVE_SYSCALL_DONE 8
#define NR_MMAP 9
#define NR_RT_SIGPROCMASK 14
#define NR_RT_SIGRETURN 15
#define SIG_SETMASK 2
#define SYSCALL_LIMIT 512
#define FD_PLACES 64            /* RUN_FD_PLACES */
#define TRAP_FLAG 0x100
#define FIXED_FLAG 0x10         /* MAP_FIXED */
#define WAIT_TURNS 200000       /* some milliseconds */

        .text
        .cfi_sections .debug_frame

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
 * the new one counts, `saved` where all that is overwritten is in slots. */
.macro  BLOCK_SIGNALS label, saved
        SAVE_ARGUMENTS
\saved:
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
/* For debuggers: the program's stack, and where it goes on in rcx's slot. */
.macro  FRAME_IN_SLOTS
        .cfi_def_cfa %rsp, 0
        UNWIND_REGISTER(16, OFF_SLOT_RSP, OFF_SLOT_RCX)
.endm

/* Likewise behind a handler: in the kernel's frame. */
.macro  FRAME_IN_CONTEXT
        UNWIND_CONTEXT_STACK
        UNWIND_NEAR(8, 40)
        UNWIND_NEAR(9, 48)
        UNWIND_NEAR(10, 56)
        UNWIND_FAR(11, 64)
        UNWIND_FAR(12, 72)
        UNWIND_FAR(13, 80)
        UNWIND_FAR(14, 88)
        UNWIND_FAR(15, 96)
        UNWIND_FAR(5, 104)
        UNWIND_FAR(4, 112)
        UNWIND_FAR(6, 120)
        UNWIND_FAR(3, 128)
        UNWIND_FAR(1, 136)
        UNWIND_FAR(0, 144)
        UNWIND_FAR(2, 152)
        UNWIND_FAR(16, 168)
.endm

/* On the way back from the runtime. */
.macro  FROM_RUNTIME label
        mov     %rsp, %gs:OFF_SLOT_RSP
        mov     %gs:CTX_PC, %rcx
        mov     %rcx, %gs:OFF_SLOT_RCX
        ALLOW_SIGNALS \label
.endm

        .globl  moved_gate, moved_gate_begin, moved_gate_leave, moved_gate_end
        .hidden moved_gate, moved_gate_begin, moved_gate_leave, moved_gate_end
        .globl  moved_gate_pass, moved_gate_call
        .hidden moved_gate_pass, moved_gate_call
        .globl  moved_gate_direct, moved_gate_passed, moved_gate_called   /* right behind a call */
        .hidden moved_gate_direct, moved_gate_passed, moved_gate_called
        .globl  moved_gate_noted, moved_gate_flags, moved_gate_saved, moved_gate_asking     /* for settle.c */
        .hidden moved_gate_noted, moved_gate_flags, moved_gate_saved, moved_gate_asking
        .globl  moved_gate_blocks, moved_called_blocks, moved_gate_left
        .hidden moved_gate_blocks, moved_called_blocks, moved_gate_left
        .globl  moved_gate_wait, moved_wait_allowed, moved_gate_waited
        .hidden moved_gate_wait, moved_wait_allowed, moved_gate_waited
        .globl  moved_gate_blocked, moved_called_blocked    /* the mask is ours from here ... */
        .hidden moved_gate_blocked, moved_called_blocked
        .globl  moved_leave_allowed, moved_pass_allowed, moved_call_allowed /* ... to here */
        .hidden moved_leave_allowed, moved_pass_allowed, moved_call_allowed
        .type   moved_gate, @function
        .p2align 4
moved_gate_begin:
moved_gate:
        .cfi_startproc
        .cfi_def_cfa %rsp, 0
        .cfi_register %rip, %rcx
        mov     %rcx, %gs:OFF_SLOT_RCX
moved_gate_noted:
        mov     %rsp, %gs:OFF_SLOT_RSP
        FRAME_IN_SLOTS
        mov     %rax, %gs:OFF_SLOT_RAX
        mov     %rdx, %gs:OFF_SLOT_RDX
moved_gate_flags:
        lahf
        seto    %al
        mov     %rax, %gs:OFF_FLAGS
moved_gate_saved:
        mov     %gs:OFF_SLOT_RAX, %rax
        cmp     $SYSCALL_LIMIT, %rax
        jae     3f
        lea     moved_gated(%rip), %rdx
        bt      %rax, (%rdx)
        jnc     1f
        lea     moved_gated_fds(%rip), %rdx
        bt      %rax, (%rdx)
        jnc     2f
        cmp     $NR_MMAP, %eax
        je      4f
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
4:      test    $FIXED_FLAG, %r10d      /* does it replace what is there? */
        jz      1f
        jmp     2f
3:      cmpb    $0, moved_gated_others(%rip)
        jne     2f
1:      UNSAVE_FLAGS
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RAX, %rax
        syscall
moved_gate_direct:
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     *%rcx
moved_gate_asking:
2:      UNSAVE_FLAGS
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RAX, %rax
        BLOCK_SIGNALS moved_gate_blocked, moved_gate_blocks
        mov     %rcx, %gs:CTX_PC
        movq    $LEAVE_SYSCALL, %gs:OFF_LEAVE
        jmp     run_leave_code
        .cfi_endproc
        .size   moved_gate, . - moved_gate

        .type   moved_gate_leave, @function
        .p2align 4
moved_gate_leave:
        .cfi_startproc
        FRAME_IN_SLOTS
        FROM_RUNTIME moved_leave_allowed
        jmp     *%rcx
moved_gate_left:
        .cfi_endproc
        .size   moved_gate_leave, . - moved_gate_leave

        .type   moved_gate_pass, @function
        .p2align 4
moved_gate_pass:
        .cfi_startproc
        FRAME_IN_SLOTS
        FROM_RUNTIME moved_pass_allowed
        syscall
moved_gate_passed:
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     *%rcx
        .cfi_endproc
        .size   moved_gate_pass, . - moved_gate_pass

/* The number that the program asked for waits in r11's slot. */
        .type   moved_gate_call, @function
        .p2align 4
moved_gate_call:
        .cfi_startproc
        FRAME_IN_SLOTS
        FROM_RUNTIME moved_call_allowed
        syscall
moved_gate_called:
        BLOCK_SIGNALS moved_called_blocked, moved_called_blocks
        mov     %rcx, %gs:CTX_PC
        movq    $LEAVE_SYSCALL_DONE, %gs:OFF_LEAVE
        jmp     run_leave_code
        .cfi_endproc
        .size   moved_gate_call, . - moved_gate_call

/* For a moment, and the gate once more: somebody takes the tool out meanwhile. Only rcx is not the program's then. */
        .type   moved_gate_wait, @function
        .p2align 4
moved_gate_wait:
        .cfi_startproc
        FRAME_IN_SLOTS
        FROM_RUNTIME moved_wait_allowed
        mov     $WAIT_TURNS, %ecx
1:      pause
        loop    1b
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     moved_gate
moved_gate_waited:
        .cfi_endproc
        .size   moved_gate_wait, . - moved_gate_wait
moved_gate_end:

/* The kernel's way in: signo, info, ucontext, on the stack that the program or it chose, with the FS base
 * of whatever was interrupted. The program's handler is jumped to, with a frame as it is natively, and with
 * the flags that the kernel left it: alignment is checked there if it was before. */
        .globl  moved_signal_entry, moved_signal_entered
        .hidden moved_signal_entry, moved_signal_entered
        .type   moved_signal_entry, @function
        .p2align 4
moved_signal_entry:
        mov     %rsp, %r8
        sub     $MOVED_FRAME_RESERVE, %rsp
        pushfq
        pushfq
        andl    $~UNPLAIN_FLAGS, (%rsp)
        popfq
        push    %rax                    /* keeps calls aligned */
        rdgsbase %rcx
        call    moved_deliver
moved_signal_entered:
        test    %rax, %rax
        jz      1f
        pop     %rcx
        popfq
        mov     %rdx, %rsp
        mov     RUN_FRAME_INFO(%rsp), %edi  /* signo */
        lea     RUN_FRAME_INFO(%rsp), %rsi
        lea     RUN_FRAME_CONTEXT(%rsp), %rdx
        mov     %rax, %rcx
        xor     %eax, %eax
        jmp     *%rcx
1:      add     $MOVED_FRAME_RESERVE + 24, %rsp
        mov     $NR_RT_SIGRETURN, %eax
        syscall
        .size   moved_signal_entry, . - moved_signal_entry

/* What a handler returns to where the program's own restorer would not come by the gate. */
        .globl  moved_restorer
        .hidden moved_restorer
        .type   moved_restorer, @function
        .p2align 4
        .cfi_startproc
        .cfi_signal_frame
        FRAME_IN_CONTEXT
        nop                             /* unwinders look one byte before the return address */
moved_restorer:
        mov     $NR_RT_SIGRETURN, %eax
        lea     1f(%rip), %rcx
        jmp     moved_gate
1:      ud2
        .cfi_endproc
        .size   moved_restorer, . - moved_restorer

/* The return address of an analysis routine during which a signal came: goes on where the routine
 * returns to (leave_arg), one step at a time. */
        .globl  moved_after_routine
        .hidden moved_after_routine
        .type   moved_after_routine, @function
        .p2align 4
moved_after_routine:
        pushq   %gs:OFF_LEAVE_ARG
        pushfq
        orq     $TRAP_FLAG, (%rsp)
        popfq
        ret
        .size   moved_after_routine, . - moved_after_routine

/* void moved_switch_stack(run_thread *t, void (*f)(void *), void *arg): with the tool's FS base. */
        .globl  moved_switch_stack
        .hidden moved_switch_stack
        .type   moved_switch_stack, @function
        .p2align 4
moved_switch_stack:
        push    %rbx
        push    %r12
        rdfsbase %r12
        mov     %rsp, %rbx
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        mov     %rsi, %r8
        mov     %gs:OFF_TOOL_FS, %rsi
        SET_FS_BASE
        mov     %rdx, %rdi
        call    *%r8
        mov     %rbx, %rsp
        mov     %r12, %rsi
        SET_FS_BASE
        pop     %r12
        pop     %rbx
        ret
        .size   moved_switch_stack, . - moved_switch_stack

        .section .rodata
        .p2align 3
blocked:                                /* ~RUN_FAULTS */
        .quad   ~(1 << 10 | 1 << 6 | 1 << 3 | 1 << 7 | 1 << 4 | 1 << 30)
        .section .note.GNU-stack, "", @progbits
