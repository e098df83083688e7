/* The few places where the runtime meets the kernel and every instruction counts: calls that may
 * sleep, copies that may fault, a new thread's first steps, a thread's last, and the entry of signals.
 * Handlers know the labels. A system call changes no register but x0. */
#include "run/aarch64/offsets.h"

#define NR_RT_SIGRETURN 139

        .text

/* long run_blocking_syscall(const bool *pending, long nr, const long args[6])
 *
 * A signal that comes between `check` and the svc instruction would otherwise be noticed only
 * after a sleep of any length. The handler sends a thread it finds there to `interrupted`; the same
 * when the kernel has put the program counter back onto the instruction to restart it. */
        .globl  run_blocking_syscall, run_blocking_check, run_blocking_insn
        .globl  run_blocking_after, run_blocking_interrupted
        .hidden run_blocking_syscall, run_blocking_check, run_blocking_insn
        .hidden run_blocking_after, run_blocking_interrupted
        .type   run_blocking_syscall, %function
        .p2align 4
run_blocking_syscall:
        mov     x9, x0
        mov     x8, x1
        mov     x10, x2
        ldp     x0, x1, [x10]
        ldp     x2, x3, [x10, 16]
        ldp     x4, x5, [x10, 32]
run_blocking_check:
        ldrb    w11, [x9]
        cbnz    w11, run_blocking_interrupted
run_blocking_insn:
        svc     0
run_blocking_after:
        ret
run_blocking_interrupted:
        mov     x0, 0x8000000000000000
        ret
        .size   run_blocking_syscall, . - run_blocking_syscall

/* size_t run_safe_copy(void *to, const void *from, size_t size): x2 counts down what has not been stored yet. Words
 * are copied only where none of them crosses a page. */
        .globl  run_safe_copy, run_safe_copy_insn, run_safe_copy_done
        .hidden run_safe_copy, run_safe_copy_insn, run_safe_copy_done
        .type   run_safe_copy, %function
        .p2align 4
run_safe_copy:
        cbz     x2, run_safe_copy_done
        orr     x3, x0, x1
        tst     x3, 7
        b.ne    2f
run_safe_copy_insn:
1:      cmp     x2, 8
        b.lo    3f
        ldr     x3, [x1], 8
        str     x3, [x0], 8
        sub     x2, x2, 8
        b       1b
2:      ldrb    w3, [x1], 1
        strb    w3, [x0], 1
        sub     x2, x2, 1
3:      cbnz    x2, 2b
run_safe_copy_done:
        mov     x0, x2
        ret
        .size   run_safe_copy, . - run_safe_copy

/* long run_raw_clone(nr, a, b, c, d, e, child): the child has all signals blocked, the parent's or its own thread
 * pointer and an unknown stack; it takes its block, and from there everything else. A child for which the parent
 * waits has the same thread pointer of the tool's: the word there is the parent's again when it wakes up. */
        .globl  run_raw_clone
        .hidden run_raw_clone
        .type   run_raw_clone, %function
        .p2align 4
run_raw_clone:
        mov     x8, x0
        mov     x0, x1
        mov     x1, x2
        mov     x2, x3
        mov     x3, x4
        mov     x4, x5
        mrs     x9, tpidr_el0
        ldr     x10, [x9, TLS_BLOCK]
        svc     0
        cbz     x0, 1f
        str     x10, [x9, TLS_BLOCK]
        ret
1:      mov     x19, x6
        ldr     x9, [x19, OFF_TOOL_TLS]
        str     x19, [x9, TLS_BLOCK]
        msr     tpidr_el0, x9
        add     x20, x19, OFF_CTX
        ldr     x9, [x20, OFF_RUNTIME_STACK - OFF_CTX]
        mov     sp, x9
        mov     x29, xzr
        mov     x30, xzr
        mov     x0, x19
        bl      run_thread_begin
        mov     x0, x19
        bl      run_dispatch
        str     x0, [x20, OFF_ENTER_PC - OFF_CTX]
        b       run_enter_begin
        .size   run_raw_clone, . - run_raw_clone

/* void run_exit_raw(uint32_t *busy, long nr, long status): behind the store the stack may be
 * another thread's. */
        .globl  run_exit_raw
        .hidden run_exit_raw
        .type   run_exit_raw, %function
        .p2align 4
run_exit_raw:
        mov     x8, x1
        mov     x9, x0
        mov     x10, x2
        stlr    wzr, [x9]
1:      mov     x0, x10
        svc     0
        b       1b
        .size   run_exit_raw, . - run_exit_raw

/* void run_sigreturn_for_good(uint64_t sp, const weave_context *before): with the thread pointer that the program had.
 * void run_sigreturn_now(uint64_t sp, uint64_t tls_base): the kernel's own, from a frame on the program's stack; the
 * block is found on, in the frame where the program has no thread pointer. */
        .globl  run_sigreturn_for_good, run_sigreturn_now
        .hidden run_sigreturn_for_good, run_sigreturn_now
        .type   run_sigreturn_for_good, %function
        .type   run_sigreturn_now, %function
        .p2align 4
run_sigreturn_now:
        cbnz    x1, 1f
        mrs     x1, tpidr_el0
        ldr     x1, [x1, TLS_BLOCK]
        add     x1, x1, OFF_FIRST_TLS
        b       1f
run_sigreturn_for_good:
        ldr     x1, [x1, CTX_TLS - OFF_CTX]
1:      msr     tpidr_el0, x1
        mov     sp, x0
        mov     x8, NR_RT_SIGRETURN
        svc     0
        udf     0
        .size   run_sigreturn_for_good, . - run_sigreturn_for_good
        .size   run_sigreturn_now, . - run_sigreturn_now

/* The handler of every signal that Inlay takes, on the thread's own signal stack. The thread pointer is the
 * program's or the tool's; it is not part of the kernel's frame, so it is put back here. */
        .globl  run_signal_entry
        .hidden run_signal_entry
        .type   run_signal_entry, %function
        .p2align 4
run_signal_entry:
        stp     x29, x30, [sp, -32]!
        mov     x29, sp
        str     x19, [sp, 16]
        mrs     x3, tpidr_el0
        mov     x19, x3
        ldr     x9, [x3, TLS_BLOCK]
        ldr     x9, [x9, OFF_TOOL_TLS]
        msr     tpidr_el0, x9
        bl      run_signal
        msr     tpidr_el0, x19
        ldr     x19, [sp, 16]
        ldp     x29, x30, [sp], 32
        ret
        .size   run_signal_entry, . - run_signal_entry

        .globl  run_signal_restorer
        .hidden run_signal_restorer
        .type   run_signal_restorer, %function
        .p2align 4
        nop                             /* unwinders look one byte before the return address */
run_signal_restorer:
        mov     x8, NR_RT_SIGRETURN
        svc     0
        .size   run_signal_restorer, . - run_signal_restorer

        .section .note.GNU-stack, "", %progbits
