/* The few places where the runtime meets the kernel and every instruction counts: calls that may
 * sleep, copies that may fault, a new thread's first steps, a thread's last, and the entry of signals.
 * Handlers know the labels. */
#include "isa/x86_64/bases.h"
#include "run/x86_64/offsets.h"

        .text

/* long run_blocking_syscall(const bool *pending, long nr, const long args[6])
 *
 * A signal that comes between `check` and the syscall instruction would otherwise be noticed only
 * after a sleep of any length. The handler sends a thread it finds there to `interrupted`; the same
 * when the kernel has put the program counter back onto the instruction to restart it. */
        .globl  run_blocking_syscall, run_blocking_check, run_blocking_insn
        .globl  run_blocking_after, run_blocking_interrupted
        .hidden run_blocking_syscall, run_blocking_check, run_blocking_insn
        .hidden run_blocking_after, run_blocking_interrupted
        .type   run_blocking_syscall, @function
        .p2align 4
run_blocking_syscall:
        mov     %rsi, %rax
        mov     %rdi, %r11
        mov     %rdx, %rcx
        mov     (%rcx), %rdi
        mov     8(%rcx), %rsi
        mov     16(%rcx), %rdx
        mov     24(%rcx), %r10
        mov     32(%rcx), %r8
        mov     40(%rcx), %r9
run_blocking_check:
        cmpb    $0, (%r11)
        jne     run_blocking_interrupted
run_blocking_insn:
        syscall
run_blocking_after:
        ret
run_blocking_interrupted:
        movabs  $0x8000000000000000, %rax
        ret
        .size   run_blocking_syscall, . - run_blocking_syscall

/* size_t run_safe_copy(void *to, const void *from, size_t size) */
        .globl  run_safe_copy, run_safe_copy_insn, run_safe_copy_done
        .hidden run_safe_copy, run_safe_copy_insn, run_safe_copy_done
        .type   run_safe_copy, @function
        .p2align 4
run_safe_copy:
        mov     %rdx, %rcx
run_safe_copy_insn:
        rep movsb
        jmp     run_safe_copy_done
run_old_call_insn:                      /* faults like the copy */
        int     $0x80
        xor     %ecx, %ecx
run_safe_copy_done:
        mov     %rcx, %rax
        ret
        .size   run_safe_copy, . - run_safe_copy

/* long run_old_calls_fault(void): 0 where the kernel takes int $0x80 (it is asked for getpid) */
        .globl  run_old_calls_fault
        .hidden run_old_calls_fault
        .type   run_old_calls_fault, @function
        .p2align 4
run_old_calls_fault:
        push    %rbx
        mov     $20, %eax
        mov     $1, %ecx
        call    run_old_call_insn
        pop     %rbx
        ret
        .size   run_old_calls_fault, . - run_old_calls_fault

/* long run_raw_clone(nr, a, b, c, d, e, child): the child has all signals blocked, the parent's bases
 * and an unknown stack; it takes its block, and from there everything else. */
        .globl  run_raw_clone
        .hidden run_raw_clone
        .type   run_raw_clone, @function
        .p2align 4
run_raw_clone:
        push    %r12
        mov     16(%rsp), %r12
        mov     %rdi, %rax
        mov     %rsi, %rdi
        mov     %rdx, %rsi
        mov     %rcx, %rdx
        mov     %r8, %r10
        mov     %r9, %r8
        syscall
        test    %rax, %rax
        jz      1f
        pop     %r12
        ret
1:      mov     %r12, %rsi
        SET_GS_BASE
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        mov     %gs:OFF_TOOL_FS, %rsi
        SET_FS_BASE
        xor     %ebp, %ebp
        mov     %r12, %rdi
        call    run_thread_begin
        mov     %gs:0, %rdi
        call    run_dispatch
        mov     %rax, %gs:OFF_ENTER_PC
        jmp     run_enter_begin
        .size   run_raw_clone, . - run_raw_clone

/* void run_exit_raw(uint32_t *busy, long nr, long status): behind the store the stack may be
 * another thread's. */
        .globl  run_exit_raw
        .hidden run_exit_raw
        .type   run_exit_raw, @function
        .p2align 4
run_exit_raw:
        mov     %rsi, %rax
        mov     %rdi, %rcx
        mov     %rdx, %rdi
        mov     %rax, %rdx
        movl    $0, (%rcx)
1:      syscall
        mov     %rdx, %rax
        jmp     1b
        .size   run_exit_raw, . - run_exit_raw

/* void run_sigreturn_for_good(uint64_t sp, const weave_context *before): with the bases that the program had.
 * void run_sigreturn_now(uint64_t sp, uint64_t tls_base): the kernel's own, from a frame on the program's stack. */
        .globl  run_sigreturn_for_good, run_sigreturn_now
        .hidden run_sigreturn_for_good, run_sigreturn_now
        .type   run_sigreturn_for_good, @function
        .type   run_sigreturn_now, @function
        .p2align 4
run_sigreturn_for_good:
        mov     %rdi, %rsp
        mov     CTX_FS - OFF_CTX(%rsi), %rdx
        mov     CTX_GS - OFF_CTX(%rsi), %rsi
        SET_GS_BASE
        mov     %rdx, %rsi
        mov     %rsp, %rdi
run_sigreturn_now:
        mov     %rdi, %rsp
        SET_FS_BASE
        mov     $15, %eax               /* rt_sigreturn */
        syscall
        ud2
        .size   run_sigreturn_for_good, . - run_sigreturn_for_good
        .size   run_sigreturn_now, . - run_sigreturn_now

/* The handler of every signal that Inlay takes, on the thread's own signal stack. The FS base is the
 * program's or the tool's; it is not part of the kernel's frame, so it is put back here. Of the flags the
 * kernel clears direction and trap only; the program may have alignment checked. */
        .globl  run_signal_entry
        .hidden run_signal_entry
        .type   run_signal_entry, @function
        .p2align 4
run_signal_entry:
        rdfsbase %rbx
        mov     %rdi, %r12
        mov     %rsi, %r13
        mov     %gs:OFF_BASE_IN, %r14
        movq    $1, %gs:OFF_BASE_IN
        mov     %gs:OFF_TOOL_FS, %rsi
        cmp     %rsi, %rbx
        je      1f
        SET_FS_BASE
1:      mov     %r12, %rdi
        mov     %r13, %rsi
        mov     %rbx, %rcx
        pushfq
        andl    $~UNPLAIN_FLAGS, (%rsp)
        popfq
        sub     $8, %rsp
        call    run_signal
        add     $8, %rsp
        mov     %r14, %gs:OFF_BASE_IN
        mov     %rbx, %rsi
        SET_FS_BASE
        ret
        .size   run_signal_entry, . - run_signal_entry

        .globl  run_signal_restorer
        .hidden run_signal_restorer
        .type   run_signal_restorer, @function
        .p2align 4
        nop                             /* unwinders look one byte before the return address */
run_signal_restorer:
        mov     $15, %eax               /* rt_sigreturn */
        syscall
        .size   run_signal_restorer, . - run_signal_restorer

        .section .note.GNU-stack, "", @progbits
