/* The border between translated code and the runtime. GS base is the thread's block on both sides.
 *
 *   jit_leave_cache   saves the program's whole state into ctx and the xsave area, goes to the private
 *                     stack with the tool's FS base, calls jit_dispatch, and enters the cache again
 *   jit_enter_cache   the second half alone: loads everything from ctx and jumps to enter_pc
 *   jit_ibl_miss      second-level lookup of an indirect branch
 *   jit_syscall_gate  a system call made right here when it needs no care
 *
 * From jit_enter_begin to jit_enter_end (both included) everything is still in ctx and in the xsave area: a signal
 * handler that finds the thread in there may send it back to jit_enter_begin, where it sees that a
 * signal waits and turns to the dispatcher instead.
 */
#include "jit/x86_64/offsets.h"

#define WHERE_RUNTIME 1
#define LEAVE_INDIRECT 1
#define LEAVE_SYSCALL 2
#define LEAVE_START 4
#define SYSCALL_LIMIT 512
#define FD_PLACES 64            /* JIT_FD_PLACES */

        .text

/* Takes the tool's FS base, and C's view of the flags and the floating-point state: no direction, no checks of
 * alignment. Needs no register kept. */
.macro  RUNTIME_STATE
        mov     %gs:OFF_TOOL_FS, %rax
        wrfsbase %rax
        pushfq
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
.macro  DISPATCH
        RUNTIME_STATE
        mov     %gs:0, %rdi
        call    jit_dispatch
        mov     %rax, %gs:OFF_ENTER_PC
        jmp     jit_enter_begin
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

        .globl  jit_leave_cache
        .hidden jit_leave_cache
        .type   jit_leave_cache, @function
        .p2align 4
jit_leave_cache:
        mov     %rsp, %gs:CTX_RSP
        RUNTIME_STACK
        mov     %rax, %gs:CTX_RAX
        mov     %rcx, %gs:CTX_RCX
        mov     %rdx, %gs:CTX_RDX
        mov     %rbx, %gs:CTX_RBX
        mov     %rbp, %gs:CTX_RBP
        mov     %rsi, %gs:CTX_RSI
        mov     %rdi, %gs:CTX_RDI
        mov     %r8, %gs:CTX_R8
        mov     %r9, %gs:CTX_R9
        mov     %r10, %gs:CTX_R10
        mov     %r11, %gs:CTX_R11
        mov     %r12, %gs:CTX_R12
        mov     %r13, %gs:CTX_R13
        mov     %r14, %gs:CTX_R14
        mov     %r15, %gs:CTX_R15
        pushfq
        pop     %rax
        mov     %rax, %gs:CTX_FLAGS
        rdfsbase %rax
        mov     %rax, %gs:CTX_FS
        mov     %gs:OFF_APP_GS, %rax
        mov     %rax, %gs:CTX_GS
        SAVE_VECTORS
        DISPATCH
        .size   jit_leave_cache, . - jit_leave_cache

/* From a signal handler: ctx, leave and leave_arg are filled; only the vector state is the program's. */
        .globl  jit_redispatch
        .hidden jit_redispatch
        .type   jit_redispatch, @function
        .p2align 4
jit_redispatch:
        RUNTIME_STACK
        SAVE_VECTORS
        DISPATCH
        .size   jit_redispatch, . - jit_redispatch

/* A signal came after the dispatcher looked: once more, from ctx. */
        .p2align 4
dispatch_again:
        RUNTIME_STACK
        movq    $LEAVE_START, %gs:OFF_LEAVE
        DISPATCH

        .globl  jit_enter_cache, jit_enter_begin, jit_enter_end
        .hidden jit_enter_cache, jit_enter_begin, jit_enter_end
        .type   jit_enter_cache, @function
        .p2align 4
jit_enter_cache:
jit_enter_begin:
        cmpb    $0, %gs:OFF_PENDING
        jne     dispatch_again
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        LOAD_VECTORS
        mov     %gs:CTX_GS, %rax
        mov     %rax, %gs:OFF_APP_GS
        mov     %gs:CTX_FS, %rax
        wrfsbase %rax
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
jit_enter_end:
        jmp     *%gs:OFF_ENTER_PC
        .size   jit_enter_cache, . - jit_enter_cache

/* rcx is the target, the program's rcx and rdx are in their slots. On a hit the landing goes into the
 * thread's first-level table and the jump is made through that table, so that a table which is blocked
 * for a pending signal stops the thread here too (the store or the jump faults, rcx being the target). */
        .globl  jit_ibl_miss
        .hidden jit_ibl_miss
        .type   jit_ibl_miss, @function
        .p2align 4
jit_ibl_miss:
        mov     %rax, %gs:OFF_SLOT_RAX
        lahf
        seto    %al
        mov     %rax, %gs:OFF_FLAGS
        mov     %rbx, %gs:OFF_SLOT_RBX
        mov     %gs:OFF_IBL_TABLE2, %rbx
        mov     %rcx, %rdx
        shr     $4, %rdx
        xor     %rcx, %rdx
1:      and     (%rbx), %rdx
        mov     %rdx, %rax
        shl     $4, %rax
        cmp     %rcx, TABLE2_PAIRS(%rbx, %rax)
        je      2f
        cmpq    $0, TABLE2_PAIRS(%rbx, %rax)
        je      3f
        inc     %rdx
        jmp     1b
2:      mov     TABLE2_PAIRS + 8(%rbx, %rax), %rbx
        test    %rbx, %rbx              /* removed */
        jz      3f
        movzwl  %cx, %edx
        mov     %rbx, %gs:OFF_IBL(, %rdx, 8)
        mov     %gs:OFF_SLOT_RBX, %rbx
        mov     %gs:OFF_FLAGS, %rax
        add     $127, %al
        sahf
        mov     %gs:OFF_SLOT_RAX, %rax
        jmp     *%gs:OFF_IBL(, %rdx, 8)
3:      mov     %gs:OFF_SLOT_RBX, %rbx
        mov     %gs:OFF_FLAGS, %rax
        add     $127, %al
        sahf
        mov     %gs:OFF_SLOT_RAX, %rax
        mov     %rcx, %gs:CTX_PC
        movq    $LEAVE_INDIRECT, %gs:OFF_LEAVE
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     jit_leave_cache
        .size   jit_ibl_miss, . - jit_ibl_miss

/* At a syscall instruction: rcx (which the instruction destroys) and syscall_resume are the address
 * behind it, everything else is the program's. Calls whose bit is set in jit_native_syscalls are made
 * here. The answer goes back through the table of indirect branches. A signal that arrives at
 * jit_gate_check or later, up to and including jit_gate_syscall, makes the handler start the call anew,
 * at its application address: from jit_gate_stack on the program's rsp is (also) in its slot, from
 * jit_gate_flags on its flags are (also) in r11. While the call is made, number and arguments are in the
 * registers' slots; in_gate says so, before it is asked which calls may be made here (guard.c). */
        .globl  jit_syscall_gate, jit_gate_check, jit_gate_syscall, jit_gate_after
        .hidden jit_syscall_gate, jit_gate_check, jit_gate_syscall, jit_gate_after
        .globl  jit_gate_stack, jit_gate_flags
        .hidden jit_gate_stack, jit_gate_flags
        .type   jit_syscall_gate, @function
        .p2align 4
jit_syscall_gate:
jit_gate_check:
        mov     %rsp, %gs:OFF_SLOT_RSP
jit_gate_stack:
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        pushfq
        mov     (%rsp), %r11
jit_gate_flags:
        cmpb    $0, %gs:OFF_PENDING     /* came before the gate: must not sleep with it */
        jne     1f
        cmp     $SYSCALL_LIMIT, %rax
        jae     1f
        mov     %rax, %gs:OFF_SLOT_RAX
        mov     %rdi, %gs:OFF_SLOT_RDI
        mov     %rsi, %gs:OFF_SLOT_RSI
        mov     %rdx, %gs:OFF_SLOT_RDX
        mov     %r10, %gs:OFF_SLOT_R10
        mov     %r8, %gs:OFF_SLOT_R8
        mov     %r9, %gs:OFF_SLOT_R9
        movq    $1, %gs:OFF_IN_GATE
        mov     jit_gate_calls(%rip), %rcx
        bt      %rax, (%rcx)
        jnc     1f
        mov     %edi, %ecx              /* perhaps one of Inlay's descriptors */
        sub     jit_fd_base(%rip), %ecx
        cmp     $FD_PLACES, %ecx
        jb      1f
        popfq
        mov     %gs:OFF_SLOT_RSP, %rsp
jit_gate_syscall:
        syscall
jit_gate_after:
        movq    $0, %gs:OFF_IN_GATE
        mov     %gs:OFF_SYSCALL_RESUME, %rcx
        mov     %rcx, %gs:OFF_SLOT_RCX
        mov     %rdx, %gs:OFF_SLOT_RDX
        movzwl  %cx, %edx
        jmp     *%gs:OFF_IBL(, %rdx, 8)
1:      movq    $0, %gs:OFF_IN_GATE
        mov     %gs:OFF_SYSCALL_RESUME, %rcx
        mov     %rcx, %gs:CTX_PC
        sub     $2, %rcx
        mov     %rcx, %gs:OFF_LEAVE_ARG
        add     $2, %rcx
        movq    $LEAVE_SYSCALL, %gs:OFF_LEAVE
        popfq
        mov     %gs:OFF_SLOT_RSP, %rsp
        jmp     jit_leave_cache
        .size   jit_syscall_gate, . - jit_syscall_gate

        .section .rodata
        .p2align 2
default_mxcsr:
        .long   0x1f80
        .section .note.GNU-stack, "", @progbits
