/* Where translated code leaves itself without a stub.
 *
 *   jit_ibl_miss_counted   the same, counted by kind (--stats)
 *   jit_ibl_miss      second-level lookup of an indirect branch
 *   jit_return_miss   a paired return that its own table does not know
 *   jit_ibl_watched   an indirect branch, perhaps to where a call of the tool's returns
 *   jit_section_aborted  a restartable sequence is aborted
 *   jit_leave_by      the last instructions of a thread that leaves Inlay
 *   jit_syscall_gate  a system call made right here when it needs no care
 */
#include "isa/x86_64/bases.h"
#include "jit/x86_64/layout.h"

#define LEAVE_INDIRECT 1
#define LEAVE_SYSCALL 2
#define SYSCALL_LIMIT 512
#define FD_PLACES 64            /* RUN_FD_PLACES */

        .text

/* rcx is the target, the program's rcx and rdx are in their slots. On a hit the landing goes into the
 * thread's first-level table and the jump is made through that table, so that a table which is blocked
 * for a pending signal stops the thread here too (the store or the jump faults, rcx being the target). */
        .globl  jit_ibl_miss_counted
        .hidden jit_ibl_miss_counted
        .type   jit_ibl_miss_counted, @function
        .p2align 4
jit_ibl_miss_counted:
        mov     %rcx, %gs:OFF_SCRATCH
        mov     %gs:OFF_KIND, %rdx
        mov     %gs:OFF_MISSED(, %rdx, 8), %rcx
        lea     1(%rcx), %rcx
        mov     %rcx, %gs:OFF_MISSED(, %rdx, 8)
        mov     %gs:OFF_SCRATCH, %rcx
        jmp     jit_ibl_miss
        .size   jit_ibl_miss_counted, . - jit_ibl_miss_counted

/* From an empty entry of the thread's table of paired returns: rcx is the target, rdx its low 16 bits; the program's
 * rcx, rdx and r11 are in their slots, and rsp in r11. */
        .globl  jit_return_miss
        .hidden jit_return_miss
        .type   jit_return_miss, @function
        .p2align 4
jit_return_miss:
        mov     %r11, %rsp
        mov     %gs:OFF_SLOT_R11, %r11
        jmp     *%gs:OFF_IBL(, %rdx, 8)
        .size   jit_return_miss, . - jit_return_miss

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
        shr     $16, %rdx
        imul    $TABLE2_FACTOR, %rdx, %rdx
        shr     $TABLE2_SHIFT, %rdx
        mov     %rcx, %rax
        shr     $4, %rax
        xor     %rcx, %rdx
        xor     %rax, %rdx
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
        .globl  jit_ibl_watched
        .hidden jit_ibl_watched
jit_ibl_watched:
        mov     %rcx, %gs:CTX_PC
        movq    $LEAVE_INDIRECT, %gs:OFF_LEAVE
        mov     %gs:OFF_SLOT_RDX, %rdx
        mov     %gs:OFF_SLOT_RCX, %rcx
        jmp     run_leave_code
        .size   jit_ibl_miss, . - jit_ibl_miss

/* At a syscall instruction: rcx (which the instruction destroys) and syscall_resume are the address
 * behind it, everything else is the program's. Calls whose bit is set in run_direct_calls are made
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
        mov     run_gate_calls(%rip), %rcx
        bt      %rax, (%rcx)
        jnc     1f
        mov     %edi, %ecx              /* perhaps one of Inlay's descriptors */
        sub     run_fd_base(%rip), %ecx
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
        jmp     run_leave_code
        .size   jit_syscall_gate, . - jit_syscall_gate

/* A restartable sequence is to be aborted at a guard: rcx and rdx are in their slots. */
        .globl  jit_section_aborted
        .hidden jit_section_aborted
        .type   jit_section_aborted, @function
        .p2align 4
jit_section_aborted:
        movq    $LEAVE_SECTION, %gs:OFF_LEAVE
        movq    $0, %gs:OFF_LEAVE_ARG
        jmp     run_leave_code
        .size   jit_section_aborted, . - jit_section_aborted

/* void jit_leave_by(uint64_t sp, const weave_context *before, const jit_last_call *call, uint64_t at) */
        .globl  jit_leave_by
        .hidden jit_leave_by
        .type   jit_leave_by, @function
        .p2align 4
jit_leave_by:
        mov     %rdi, %rsp
        mov     %rcx, %r8               /* the bases are set with rcx and r11 lost */
        mov     CTX_FS - OFF_CTX(%rsi), %r9
        mov     CTX_GS - OFF_CTX(%rsi), %rsi
        SET_GS_BASE
        mov     %r9, %rsi
        SET_FS_BASE
        mov     %r8, %rcx
        mov     (%rdx), %rax
        mov     8(%rdx), %rdi
        mov     16(%rdx), %rsi
        mov     32(%rdx), %r10
        mov     40(%rdx), %r8
        mov     48(%rdx), %r9
        mov     24(%rdx), %rdx
        jmp     *%rcx
        .size   jit_leave_by, . - jit_leave_by

        .section .note.GNU-stack, "", @progbits
