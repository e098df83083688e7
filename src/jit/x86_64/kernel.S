/* The few places where the runtime meets the kernel and every instruction counts: calls that may
 * sleep, copies that may fault, a new thread's first steps, a thread's last, and the entry of signals.
 * Handlers know the labels. */
#include "jit/x86_64/offsets.h"

        .text

/* long jit_blocking_syscall(const bool *pending, long nr, const long args[6])
 *
 * A signal that comes between `check` and the syscall instruction would otherwise be noticed only
 * after a sleep of any length. The handler sends a thread it finds there to `interrupted`; the same
 * when the kernel has put the program counter back onto the instruction to restart it. */
        .globl  jit_blocking_syscall, jit_blocking_check, jit_blocking_insn
        .globl  jit_blocking_after, jit_blocking_interrupted
        .hidden jit_blocking_syscall, jit_blocking_check, jit_blocking_insn
        .hidden jit_blocking_after, jit_blocking_interrupted
        .type   jit_blocking_syscall, @function
        .p2align 4
jit_blocking_syscall:
        mov     %rsi, %rax
        mov     %rdi, %r11
        mov     %rdx, %rcx
        mov     (%rcx), %rdi
        mov     8(%rcx), %rsi
        mov     16(%rcx), %rdx
        mov     24(%rcx), %r10
        mov     32(%rcx), %r8
        mov     40(%rcx), %r9
jit_blocking_check:
        cmpb    $0, (%r11)
        jne     jit_blocking_interrupted
jit_blocking_insn:
        syscall
jit_blocking_after:
        ret
jit_blocking_interrupted:
        movabs  $0x8000000000000000, %rax
        ret
        .size   jit_blocking_syscall, . - jit_blocking_syscall

/* size_t jit_safe_copy(void *to, const void *from, size_t size) */
        .globl  jit_safe_copy, jit_safe_copy_insn, jit_safe_copy_done
        .hidden jit_safe_copy, jit_safe_copy_insn, jit_safe_copy_done
        .type   jit_safe_copy, @function
        .p2align 4
jit_safe_copy:
        mov     %rdx, %rcx
jit_safe_copy_insn:
        rep movsb
jit_safe_copy_done:
        mov     %rcx, %rax
        ret
        .size   jit_safe_copy, . - jit_safe_copy

/* long jit_raw_clone(nr, a, b, c, d, e, child): the child has all signals blocked, the parent's bases
 * and an unknown stack; it takes its block, and from there everything else. */
        .globl  jit_raw_clone
        .hidden jit_raw_clone
        .type   jit_raw_clone, @function
        .p2align 4
jit_raw_clone:
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
1:      wrgsbase %r12
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        mov     %gs:OFF_TOOL_FS, %rax
        wrfsbase %rax
        xor     %ebp, %ebp
        mov     %r12, %rdi
        call    jit_thread_begin
        mov     %gs:0, %rdi
        call    jit_dispatch
        mov     %rax, %gs:OFF_ENTER_PC
        jmp     jit_enter_begin
        .size   jit_raw_clone, . - jit_raw_clone

/* void jit_exit_raw(uint32_t *busy, long nr, long status): behind the store the stack may be
 * another thread's. */
        .globl  jit_exit_raw
        .hidden jit_exit_raw
        .type   jit_exit_raw, @function
        .p2align 4
jit_exit_raw:
        mov     %rsi, %rax
        mov     %rdi, %rcx
        mov     %rdx, %rdi
        mov     %rax, %rdx
        movl    $0, (%rcx)
1:      syscall
        mov     %rdx, %rax
        jmp     1b
        .size   jit_exit_raw, . - jit_exit_raw

/* void jit_sigreturn_for_good(uint64_t sp, uint64_t fs_base, uint64_t gs_base)
 * void jit_sigreturn_now(uint64_t sp, uint64_t fs_base): the kernel's own, from a frame on the program's stack. */
        .globl  jit_sigreturn_for_good, jit_sigreturn_now
        .hidden jit_sigreturn_for_good, jit_sigreturn_now
        .type   jit_sigreturn_for_good, @function
        .type   jit_sigreturn_now, @function
        .p2align 4
jit_sigreturn_for_good:
        wrgsbase %rdx
jit_sigreturn_now:
        wrfsbase %rsi
        mov     %rdi, %rsp
        mov     $15, %eax               /* rt_sigreturn */
        syscall
        ud2
        .size   jit_sigreturn_for_good, . - jit_sigreturn_for_good
        .size   jit_sigreturn_now, . - jit_sigreturn_now

/* The handler of every signal that Inlay takes, on the thread's own signal stack. The FS base is the
 * program's or the tool's; it is not part of the kernel's frame, so it is put back here. Of the flags the
 * kernel clears direction and trap only; the program may have alignment checked. */
        .globl  jit_signal_entry
        .hidden jit_signal_entry
        .type   jit_signal_entry, @function
        .p2align 4
jit_signal_entry:
        rdfsbase %rbx
        mov     %gs:OFF_TOOL_FS, %rax
        wrfsbase %rax
        mov     %rbx, %rcx
        pushfq
        andl    $~UNPLAIN_FLAGS, (%rsp)
        popfq
        sub     $8, %rsp
        call    jit_signal_handler
        add     $8, %rsp
        wrfsbase %rbx
        ret
        .size   jit_signal_entry, . - jit_signal_entry

        .globl  jit_signal_restorer
        .hidden jit_signal_restorer
        .type   jit_signal_restorer, @function
        .p2align 4
        nop                             /* unwinders look one byte before the return address */
jit_signal_restorer:
        mov     $15, %eax               /* rt_sigreturn */
        syscall
        .size   jit_signal_restorer, . - jit_signal_restorer

        .section .note.GNU-stack, "", @progbits
