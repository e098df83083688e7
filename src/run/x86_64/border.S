/* The border between the program's code and the runtime. GS base is the thread's block on both sides.
 *
 *   run_leave_code    saves the program's whole state into ctx and the xsave area, goes to the private stack with the
 *                     tool's FS base, calls run_dispatch, and enters the program's code again
 *   run_redispatch    the same from a signal handler, which has filled ctx
 *   run_enter_code    the second half alone: loads everything from ctx and jumps to enter_pc
 *
 * Where FS base is set by a system call (isa/x86_64/bases.h), two of these for each way through the border would be
 * most of what many ways cost. So there the program's stays in at run_leave_code, and `tool_base_in` is 0, until
 * somebody asks for the C library (inl_libc_ready); if nobody has, it is not set at run_enter_code either. Who comes
 * otherwise has the tool's at once.
 *
 * From run_enter_begin to run_enter_end (both included) everything is still in ctx and in the xsave area: a signal
 * handler that finds the thread in there may send it back to run_enter_begin, where it sees that a
 * signal waits and turns to the dispatcher instead.
 */
#include "isa/x86_64/bases.h"
#include "run/x86_64/save.h"
#include "run/x86_64/unwind.h"

#define WHERE_RUNTIME 1
#define LEAVE_START 4

        .text
        .cfi_sections .debug_frame

/* Takes the tool's FS base (late: perhaps later; under stress one that leads nowhere till then), and C's view of the flags and the floating-point state: no direction,
 * no checks of alignment. Needs no register kept. */
.macro  RUNTIME_STATE late
    .if \late
        cmpb    $0, x86_bases_late(%rip)
        je      5f
        cmpb    $0, x86_bases_nowhere(%rip)
        je      6f
        mov     $X86_BASE_NOWHERE, %esi
        SET_FS_BASE
        jmp     6f
5:
    .endif
        mov     %gs:OFF_TOOL_FS, %rsi
        SET_FS_BASE
        movq    $1, %gs:OFF_BASE_IN
6:      pushfq
        andl    $~UNPLAIN_FLAGS, (%rsp)
        popfq
        ldmxcsr default_mxcsr(%rip)
.endm

/* On the private stack, in the runtime. */
.macro  RUNTIME_STACK
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        movq    $WHERE_RUNTIME, %gs:OFF_WHERE
.endm

/* ctx, leave and the vector state are in their places: to the dispatcher, and where it says. */
.macro  DISPATCH late=0
        RUNTIME_STATE \late
        mov     %gs:0, %rdi
        call    run_dispatch
        mov     %rax, %gs:OFF_ENTER_PC
        jmp     run_enter_begin
.endm

/* On the private stack, the program's registers in ctx. */
.macro  FRAME_IN_CTX
        UNWIND_STACK(OFF_RUNTIME_STACK, CTX_RSP)
        UNWIND_REGISTER(0, OFF_RUNTIME_STACK, CTX_RAX)
        UNWIND_REGISTER(1, OFF_RUNTIME_STACK, CTX_RDX)
        UNWIND_REGISTER(2, OFF_RUNTIME_STACK, CTX_RCX)
        UNWIND_REGISTER(3, OFF_RUNTIME_STACK, CTX_RBX)
        UNWIND_REGISTER(4, OFF_RUNTIME_STACK, CTX_RSI)
        UNWIND_REGISTER(5, OFF_RUNTIME_STACK, CTX_RDI)
        UNWIND_REGISTER(6, OFF_RUNTIME_STACK, CTX_RBP)
        UNWIND_REGISTER(8, OFF_RUNTIME_STACK, CTX_R8)
        UNWIND_REGISTER(9, OFF_RUNTIME_STACK, CTX_R9)
        UNWIND_REGISTER(10, OFF_RUNTIME_STACK, CTX_R10)
        UNWIND_REGISTER(11, OFF_RUNTIME_STACK, CTX_R11)
        UNWIND_REGISTER(12, OFF_RUNTIME_STACK, CTX_R12)
        UNWIND_REGISTER(13, OFF_RUNTIME_STACK, CTX_R13)
        UNWIND_REGISTER(14, OFF_RUNTIME_STACK, CTX_R14)
        UNWIND_REGISTER(15, OFF_RUNTIME_STACK, CTX_R15)
        UNWIND_REGISTER(16, OFF_RUNTIME_STACK, CTX_PC)
.endm

/* The vector state goes to the xsave area; an x87 stack in use is emptied for C. Without XSAVE there is no word
 * about use. Written out here, not called: handlers know the addresses. */
.macro  SAVE_VECTORS
        mov     %gs:OFF_XSAVE_AREA, %rbx
        cmpb    $0, %gs:OFF_NO_XSAVE
        jne     1f
        mov     %gs:OFF_XSAVE_MASK, %eax
        mov     %gs:OFF_XSAVE_MASK + 4, %edx
        xsave64 (%rbx)
        testb   $1, 512(%rbx)
        jz      3f
        jmp     2f
1:      fxsave64 (%rbx)
        movq    $3, 512(%rbx)
2:      fninit
3:
.endm

.macro  LOAD_VECTORS
        mov     %gs:OFF_XSAVE_AREA, %rbx
        cmpb    $0, %gs:OFF_NO_XSAVE
        jne     1f
        mov     %gs:OFF_XSAVE_MASK, %eax
        mov     %gs:OFF_XSAVE_MASK + 4, %edx
        xrstor64 (%rbx)
        jmp     2f
1:      fxrstor64 (%rbx)
2:
.endm

        .globl  run_leave_code
        .hidden run_leave_code
        .type   run_leave_code, @function
        .p2align 4
run_leave_code:
        .cfi_startproc
        FRAME_IN_CTX
        mov     %rsp, %gs:CTX_RSP
        RUNTIME_STACK
        SAVE_GENERAL
        SAVE_VECTORS
        movq    $0, %gs:OFF_BASE_IN
        DISPATCH late=1
        .cfi_endproc
        .size   run_leave_code, . - run_leave_code

/* From a signal handler: ctx, leave and leave_arg are filled; only the vector state is the program's. */
        .globl  run_redispatch
        .hidden run_redispatch
        .type   run_redispatch, @function
        .p2align 4
run_redispatch:
        .cfi_startproc
        FRAME_IN_CTX
        RUNTIME_STACK
        SAVE_VECTORS
        DISPATCH
        .cfi_endproc
        .size   run_redispatch, . - run_redispatch

/* A signal came after the dispatcher looked, or ctx has been filled in otherwise: once more, from ctx. */
        .globl  run_dispatch_again
        .hidden run_dispatch_again
        .type   run_dispatch_again, @function
        .p2align 4
run_dispatch_again:
        .cfi_startproc
        FRAME_IN_CTX
        RUNTIME_STACK
        movq    $LEAVE_START, %gs:OFF_LEAVE
        DISPATCH
        .cfi_endproc
        .size   run_dispatch_again, . - run_dispatch_again

        .globl  run_enter_code, run_enter_begin, run_enter_end
        .hidden run_enter_code, run_enter_begin, run_enter_end
        .type   run_enter_code, @function
        .p2align 4
run_enter_code:
run_enter_begin:
        cmpw    $1, %gs:OFF_PENDING     /* present, and passes not */
        je      run_dispatch_again
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        LOAD_VECTORS
        mov     %gs:CTX_GS, %rax
        mov     %rax, %gs:OFF_APP_GS
        cmpb    $0, x86_bases_late(%rip)
        je      5f
        cmpb    $0, x86_bases_nowhere(%rip)
        jne     5f
        cmpq    $0, %gs:OFF_BASE_IN
        je      6f
5:      mov     %gs:CTX_FS, %rsi
        SET_FS_BASE
        movq    $0, %gs:OFF_BASE_IN     /* behind it: who is sent back to the beginning does it again */
6:
        mov     %gs:CTX_RCX, %rcx
        mov     %gs:CTX_RDX, %rdx
        mov     %gs:CTX_RBX, %rbx
        mov     %gs:CTX_RBP, %rbp
        mov     %gs:CTX_RSI, %rsi
        mov     %gs:CTX_RDI, %rdi
        mov     %gs:CTX_R8, %r8
        mov     %gs:CTX_R9, %r9
        mov     %gs:CTX_R10, %r10
        mov     %gs:CTX_R11, %r11
        mov     %gs:CTX_R12, %r12
        mov     %gs:CTX_R13, %r13
        mov     %gs:CTX_R14, %r14
        mov     %gs:CTX_R15, %r15
        movq    $0, %gs:OFF_WHERE
        pushq   %gs:CTX_FLAGS
        popfq
        mov     %gs:CTX_RAX, %rax
        mov     %gs:CTX_RSP, %rsp
run_enter_end:
        jmp     *%gs:OFF_ENTER_PC
        .size   run_enter_code, . - run_enter_code

        .section .rodata
        .p2align 2
default_mxcsr:
        .long   0x1f80
        .section .note.GNU-stack, "", @progbits
