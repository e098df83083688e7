/* The border between the program's code and the runtime. The word at tpidr_el0 + 8 is the thread's block on both sides.
 *
 *   run_leave_code    saves the program's whole state into ctx and the vector area, goes to the private stack with the
 *                     tool's thread pointer, calls run_dispatch, and enters the program's code again. x17 is the block,
 *                     the program's x16 and x17 are in their slots; all other registers are the program's
 *   run_redispatch    the same from a signal handler, which has filled ctx
 *   run_enter_code    the second half alone: loads everything from ctx and jumps to enter_pc: x17 is the block there,
 *                     x16 enter_pc; the program's are in their slots; all other registers are the program's
 *
 * From run_enter_begin to run_enter_end (both included) everything is still in ctx and in the vector area: a signal
 * handler that finds the thread in there may send it back to run_enter_begin, where it sees that a
 * signal waits and turns to the dispatcher instead.
 *
 * A program that has not set the thread pointer has a first block in the frame instead, and 0 in ctx. The block's word
 * is set again at each way in: a child that shares memory may have had it.
 */
#include "run/aarch64/offsets.h"

#define WHERE_RUNTIME 1
#define LEAVE_START 4
#define NEAR(field) (field - OFF_CTX)   /* from x16 on, which is the block + OFF_CTX */

        .text

/* x17 := the block, x16 := the block + OFF_CTX. */
.macro  FIND_BLOCK
        mrs     x17, tpidr_el0
        ldr     x17, [x17, TLS_BLOCK]
        add     x16, x17, OFF_CTX
.endm

/* On the private stack, in the runtime; x0 is used up. */
.macro  RUNTIME_STACK
        ldr     x0, [x16, NEAR(OFF_RUNTIME_STACK)]
        mov     sp, x0
        mov     x0, WHERE_RUNTIME
        str     x0, [x16, NEAR(OFF_WHERE)]
.endm

/* ctx and leave are in their places, x17 is the block: the vector state to its area (C's floating-point environment
 * from there on), to the dispatcher, and where it says. */
.macro  SAVE_VECTORS
        mov     x19, x17
        ldr     x16, [x17, OFF_SAVE_VECTORS]
        blr     x16
        mov     x17, x19
.endm
.macro  DISPATCH
        mov     x19, x17
        ldr     x0, [x19, OFF_TOOL_TLS]
        str     x19, [x0, TLS_BLOCK]
        msr     tpidr_el0, x0
        mov     x29, xzr
        mov     x30, xzr
        mov     x0, x19
        bl      run_dispatch
        add     x16, x19, OFF_CTX
        str     x0, [x16, NEAR(OFF_ENTER_PC)]
        b       run_enter_begin
.endm

        .globl  run_leave_code
        .hidden run_leave_code
        .type   run_leave_code, %function
        .p2align 4
run_leave_code:
        add     x16, x17, OFF_CTX
        stp     x0, x1, [x16, NEAR(CTX_X(0))]
        stp     x2, x3, [x16, NEAR(CTX_X(2))]
        stp     x4, x5, [x16, NEAR(CTX_X(4))]
        stp     x6, x7, [x16, NEAR(CTX_X(6))]
        stp     x8, x9, [x16, NEAR(CTX_X(8))]
        stp     x10, x11, [x16, NEAR(CTX_X(10))]
        stp     x12, x13, [x16, NEAR(CTX_X(12))]
        stp     x14, x15, [x16, NEAR(CTX_X(14))]
        stp     x18, x19, [x16, NEAR(CTX_X(18))]
        stp     x20, x21, [x16, NEAR(CTX_X(20))]
        stp     x22, x23, [x16, NEAR(CTX_X(22))]
        stp     x24, x25, [x16, NEAR(CTX_X(24))]
        stp     x26, x27, [x16, NEAR(CTX_X(26))]
        stp     x28, x29, [x16, NEAR(CTX_X(28))]
        mov     x0, sp
        stp     x30, x0, [x16, NEAR(CTX_X(30))]
        ldp     x0, x1, [x17, OFF_SLOT_X16]
        stp     x0, x1, [x16, NEAR(CTX_X(16))]
        mrs     x0, nzcv
        str     x0, [x16, NEAR(CTX_FLAGS)]
        mrs     x0, tpidr_el0
        add     x1, x17, OFF_FIRST_TLS
        cmp     x0, x1
        csel    x0, xzr, x0, eq
        str     x0, [x16, NEAR(CTX_TLS)]
        RUNTIME_STACK
        SAVE_VECTORS
        DISPATCH
        .size   run_leave_code, . - run_leave_code

/* From a signal handler: ctx, leave and leave_arg are filled; only the vector state is the program's. */
        .globl  run_redispatch
        .hidden run_redispatch
        .type   run_redispatch, %function
        .p2align 4
run_redispatch:
        FIND_BLOCK
        RUNTIME_STACK
        SAVE_VECTORS
        DISPATCH
        .size   run_redispatch, . - run_redispatch

/* A signal came after the dispatcher looked: once more, from ctx. */
        .p2align 4
dispatch_again:
        RUNTIME_STACK
        mov     x0, LEAVE_START
        str     x0, [x16, NEAR(OFF_LEAVE)]
        DISPATCH

        .globl  run_enter_code, run_enter_begin, run_enter_end
        .hidden run_enter_code, run_enter_begin, run_enter_end
        .type   run_enter_code, %function
        .p2align 4
run_enter_code:
run_enter_begin:
        FIND_BLOCK
        ldrb    w0, [x16, NEAR(OFF_PENDING)]
        cbnz    w0, dispatch_again
        ldr     x0, [x16, NEAR(OFF_RUNTIME_STACK)]
        mov     sp, x0
        ldr     x16, [x17, OFF_LOAD_VECTORS]
        blr     x16
        FIND_BLOCK
        ldr     x0, [x16, NEAR(CTX_TLS)]
        add     x1, x17, OFF_FIRST_TLS
        cmp     x0, 0
        csel    x0, x1, x0, eq
        str     x17, [x0, TLS_BLOCK]
        msr     tpidr_el0, x0
        ldp     x0, x1, [x16, NEAR(CTX_X(16))]
        stp     x0, x1, [x17, OFF_SLOT_X16]
        ldr     x0, [x16, NEAR(CTX_FLAGS)]
        msr     nzcv, x0
        ldp     x2, x3, [x16, NEAR(CTX_X(2))]
        ldp     x4, x5, [x16, NEAR(CTX_X(4))]
        ldp     x6, x7, [x16, NEAR(CTX_X(6))]
        ldp     x8, x9, [x16, NEAR(CTX_X(8))]
        ldp     x10, x11, [x16, NEAR(CTX_X(10))]
        ldp     x12, x13, [x16, NEAR(CTX_X(12))]
        ldp     x14, x15, [x16, NEAR(CTX_X(14))]
        ldp     x18, x19, [x16, NEAR(CTX_X(18))]
        ldp     x20, x21, [x16, NEAR(CTX_X(20))]
        ldp     x22, x23, [x16, NEAR(CTX_X(22))]
        ldp     x24, x25, [x16, NEAR(CTX_X(24))]
        ldp     x26, x27, [x16, NEAR(CTX_X(26))]
        ldp     x28, x29, [x16, NEAR(CTX_X(28))]
        str     xzr, [x16, NEAR(OFF_WHERE)]
        ldp     x30, x0, [x16, NEAR(CTX_X(30))]
        mov     sp, x0
        ldp     x0, x1, [x16, NEAR(CTX_X(0))]
        ldr     x16, [x16, NEAR(OFF_ENTER_PC)]
run_enter_end:
        br      x16
        .size   run_enter_code, . - run_enter_code

        .section .note.GNU-stack, "", %progbits
