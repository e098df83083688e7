/* Between the program's own code and the runtime: system calls, signals.
 *
 * moved_gate is entered from where an `svc` was, with the program's state but for
 *
 *     [sp], [sp + 8]    its x16 and x30; sp is 16 lower
 *     x16               the gate's address
 *     x30               where to go back to: an `ldp x16, x30, [sp], #16`, and behind it the program goes on
 *
 * and MOVED_SITE_BYTES in front of the address in x30 the site begins. A way back out of the gate, wherever it leads,
 * is to such an ldp. What does not concern the tool is made right here. For the rest all signals but faults are blocked
 * first; the program's mask goes to native_mask. Then run_leave_code takes over, and on the way back moved_gate_leave
 * does the same in reverse, as the very last thing.
 *
 * The dispatcher may also answer that the call be made here, with the program's registers and mask, so that it can
 * sleep and be interrupted: moved_gate_pass, or moved_gate_call, which comes back to the runtime behind it.
 *
 * Where the kernel has the program's mask, settle.c knows of each place what is where: the table there and the labels
 * here belong together. Slots of the registers' own: x0 to x3, x8, x16, x17, x30; in the stack pointer's: the address
 * that leads back.
 */
#include "moved/aarch64/frames.h"
#include "run/aarch64/offsets.h"
#include "run/aarch64/sigframe.h"

#define OFF_NATIVE_MASK OFF_ENGINE      /* moved_own.mask */
#define OFF_BACK OFF_SLOT_SP
#define LEAVE_SYSCALL 2
#define LEAVE_SYSCALL_DONE 8
#define NR_RT_SIGPROCMASK 135
#define NR_MUNMAP 215
#define NR_RT_SIGRETURN 139
#define SIG_SETMASK 2
#define SYSCALL_LIMIT_BITS 9    /* numbers below 512 are told apart */
#define FD_PLACES_BITS 6        /* RUN_FD_PLACES */

        .text

/* x17 is the block in all of these. */
.macro  SAVE_ARGUMENTS
        stp     x0, x1, [x17, OFF_SLOT_X0]
        stp     x2, x3, [x17, OFF_SLOT_X2]
        str     x8, [x17, OFF_SLOT_X8]
.endm
.macro  RESTORE_ARGUMENTS
        ldp     x0, x1, [x17, OFF_SLOT_X0]
        ldp     x2, x3, [x17, OFF_SLOT_X2]
        ldr     x8, [x17, OFF_SLOT_X8]
.endm
.macro  SAVE_PUSHED
        ldp     x16, x30, [sp]
        str     x16, [x17, OFF_SLOT_X16]
        str     x30, [x17, OFF_SLOT_X30]
.endm
/* x16 := is the bit of call w8 set? x30 is used up. */
.macro  LOOK_UP table
        adrp    x16, \table
        add     x16, x16, :lo12:\table
        lsr     w30, w8, 6
        ldr     x16, [x16, x30, lsl 3]
        lsr     x16, x16, x8
.endm
/* No flag is free: x16 - x0 in [0, x1)? x16 and x30 are used up. */
.macro  CONCERNED_IF_UNMAPPED
        sub     x16, x16, x0
        sub     x30, x16, x1
        bic     x30, x30, x16
        tbnz    x30, 63, moved_gate_concerns
.endm
.macro  SET_MASK
        mov     x0, SIG_SETMASK
        mov     x3, 8
        mov     x8, NR_RT_SIGPROCMASK
        svc     0
.endm
/* The kernel's mask: all but faults blocked, the program's own goes to native_mask; and back. `label` is where
 * the new one counts. */
.macro  BLOCK_SIGNALS label
        adrp    x1, blocked
        add     x1, x1, :lo12:blocked
        add     x2, x17, OFF_CTX
        add     x2, x2, OFF_NATIVE_MASK - OFF_CTX
        SET_MASK
\label:
.endm
.macro  ALLOW_SIGNALS label
        add     x1, x17, OFF_CTX
        add     x1, x1, OFF_NATIVE_MASK - OFF_CTX
        mov     x2, xzr
        SET_MASK
\label:
.endm
/* Signals are blocked, the program's registers in slots: to the runtime. */
.macro  TO_RUNTIME why
        RESTORE_ARGUMENTS
        add     x16, x17, OFF_CTX
        ldr     x30, [x17, OFF_BACK]
        str     x30, [x16, CTX_PC - OFF_CTX]
        mov     x30, \why
        str     x30, [x16, OFF_LEAVE - OFF_CTX]
        ldr     x30, [x17, OFF_SLOT_X30]
        b       run_leave_code
.endm
/* As run_enter_code leaves things: to the program's mask, with its registers in slots. */
.macro  FROM_RUNTIME label
        SAVE_ARGUMENTS
        str     x30, [x17, OFF_SLOT_X30]
        add     x16, x17, OFF_CTX
        ldr     x16, [x16, CTX_PC - OFF_CTX]
        str     x16, [x17, OFF_BACK]
        ALLOW_SIGNALS \label
        RESTORE_ARGUMENTS
        ldr     x16, [x17, OFF_SLOT_X16]
        ldr     x30, [x17, OFF_SLOT_X30]
.endm
/* Right behind the program's call. */
.macro  GO_BACK
        stp     x16, x30, [sp, -16]!
        mrs     x16, tpidr_el0
        ldr     x16, [x16, TLS_BLOCK]
        ldr     x30, [x16, OFF_BACK]
        ret
.endm

.macro  LABELS list:vararg
        .globl  \list
        .hidden \list
.endm
        LABELS  moved_gate, moved_gate_leave, moved_gate_pass, moved_gate_call
        LABELS  moved_gate_begin, moved_gate_end
        LABELS  moved_gate_direct, moved_gate_passed, moved_gate_called   /* right behind a call */
        LABELS  moved_gate_blocked, moved_called_blocked                  /* the mask is ours from here ... */
        LABELS  moved_leave_allowed, moved_pass_allowed, moved_call_allowed     /* ... to here */
        LABELS  moved_gate_noted, moved_gate_made, moved_gate_concerns, moved_gate_kept        /* for settle.c */
        LABELS  moved_leave_pushed, moved_called_kept

        .type   moved_gate, %function
        .p2align 4
moved_gate_begin:
moved_gate:
        mrs     x16, tpidr_el0
        ldr     x16, [x16, TLS_BLOCK]
        str     x17, [x16, OFF_SLOT_X17]
        str     x30, [x16, OFF_BACK]
        mov     x17, x16
moved_gate_noted:
        lsr     w16, w8, SYSCALL_LIMIT_BITS
        cbnz    w16, 3f
        LOOK_UP moved_gated
        tbz     x16, 0, 1f
        LOOK_UP moved_gated_fds
        tbz     x16, 0, moved_gate_concerns
        sub     w16, w8, NR_MUNMAP
        cbz     w16, 2f
        adrp    x16, run_fd_base        /* of interest only when it is one of Inlay's descriptors */
        ldr     w16, [x16, :lo12:run_fd_base]
        sub     w30, w0, w16
        lsr     w30, w30, FD_PLACES_BITS
        cbz     w30, moved_gate_concerns
        sub     w30, w1, w16            /* dup3 */
        lsr     w30, w30, FD_PLACES_BITS
        cbz     w30, moved_gate_concerns
        b       1f
2:      mov     x16, sp                 /* of interest only when it takes what the way back needs (ground.c) */
        CONCERNED_IF_UNMAPPED
        mrs     x16, tpidr_el0
        CONCERNED_IF_UNMAPPED
        b       1f
3:      adrp    x16, moved_gated_others
        ldrb    w16, [x16, :lo12:moved_gated_others]
        cbnz    w16, moved_gate_concerns
1:      ldr     x17, [x17, OFF_SLOT_X17]
        ldp     x16, x30, [sp], 16
moved_gate_made:
        svc     0
moved_gate_direct:
        GO_BACK
moved_gate_concerns:
        SAVE_PUSHED
        SAVE_ARGUMENTS
moved_gate_kept:
        add     sp, sp, 16
        BLOCK_SIGNALS moved_gate_blocked
        TO_RUNTIME LEAVE_SYSCALL
        .size   moved_gate, . - moved_gate

        .type   moved_gate_leave, %function
        .p2align 4
moved_gate_leave:
        FROM_RUNTIME moved_leave_allowed
        stp     x16, x30, [sp, -16]!
moved_leave_pushed:
        ldr     x30, [x17, OFF_BACK]
        ldr     x17, [x17, OFF_SLOT_X17]
        ret
        .size   moved_gate_leave, . - moved_gate_leave

        .type   moved_gate_pass, %function
        .p2align 4
moved_gate_pass:
        FROM_RUNTIME moved_pass_allowed
        ldr     x17, [x17, OFF_SLOT_X17]
        svc     0
moved_gate_passed:
        GO_BACK
        .size   moved_gate_pass, . - moved_gate_pass

/* The number that the program asked for waits in a slot (MOVED_NUMBER_SLOT). */
        .type   moved_gate_call, %function
        .p2align 4
moved_gate_call:
        FROM_RUNTIME moved_call_allowed
        ldr     x17, [x17, OFF_SLOT_X17]
        svc     0
moved_gate_called:
        stp     x16, x30, [sp, -16]!
        mrs     x16, tpidr_el0
        ldr     x16, [x16, TLS_BLOCK]
        str     x17, [x16, OFF_SLOT_X17]
        mov     x17, x16
        SAVE_PUSHED
        SAVE_ARGUMENTS
moved_called_kept:
        add     sp, sp, 16
        BLOCK_SIGNALS moved_called_blocked
        TO_RUNTIME LEAVE_SYSCALL_DONE
        .size   moved_gate_call, . - moved_gate_call
moved_gate_end:

/* The kernel's way in: signo, info, ucontext, on the stack that the program or it chose, with the thread pointer of
 * whatever was interrupted. The program's handler is jumped to, with a frame as it is natively: x29 leads to the frame
 * record at the frame's end, x30 to what the handler returns to. A thread without a block has no word that leads to
 * one. */
        LABELS  moved_signal_entry, moved_signal_entered
        .type   moved_signal_entry, %function
        .p2align 4
moved_signal_entry:
        mov     x4, sp
        sub     sp, sp, MOVED_FRAME_RESERVE
        str     x30, [sp, -16]!
        mrs     x3, tpidr_el0
        cbz     x3, 1f
        ldr     x3, [x3, TLS_BLOCK]
1:      bl      moved_deliver
moved_signal_entered:
        ldr     x30, [sp], 16
        cbz     x0, 2f
        add     x9, sp, MOVED_FRAME_RESERVE
        sub     x9, x1, x9              /* so far has the frame moved */
        add     x29, x29, x9
        mov     sp, x1
        mov     x16, x0
        ldr     w0, [sp]                /* signo */
        mov     x1, sp
        add     x2, sp, RUN_FRAME_CONTEXT
        br      x16
2:      add     sp, sp, MOVED_FRAME_RESERVE
        mov     x8, NR_RT_SIGRETURN
        svc     0
        .size   moved_signal_entry, . - moved_signal_entry

/* void moved_switch_stack(run_thread *t, void (*f)(void *), void *arg): with the tool's thread pointer. */
        LABELS  moved_switch_stack
        .type   moved_switch_stack, %function
        .p2align 4
moved_switch_stack:
        stp     x29, x30, [sp, -32]!
        stp     x19, x20, [sp, 16]
        mov     x29, sp
        mov     x19, sp
        mrs     x20, tpidr_el0
        add     x9, x0, OFF_CTX
        ldr     x9, [x9, OFF_RUNTIME_STACK - OFF_CTX]
        ldr     x10, [x0, OFF_TOOL_TLS]
        str     x0, [x10, TLS_BLOCK]
        msr     tpidr_el0, x10
        mov     sp, x9
        mov     x0, x2
        blr     x1
        msr     tpidr_el0, x20
        mov     sp, x19
        ldp     x19, x20, [sp, 16]
        ldp     x29, x30, [sp], 32
        ret
        .size   moved_switch_stack, . - moved_switch_stack

        .section .rodata
        .p2align 3
blocked:                                /* ~RUN_FAULTS */
        .quad   ~(1 << 10 | 1 << 6 | 1 << 3 | 1 << 7 | 1 << 4 | 1 << 30)
        .section .note.GNU-stack, "", %progbits
