/* The two ways into the boot code, and the one way on. Both keep what they were given on the program's
 * stack, prepare the tool (boot_prepare) and jump to its _start on its own stack. When the tool has set
 * everything up it jumps to the address in its handoff, with the stack pointer and the FS base of before and
 * whatever in the other registers.
 *
 *   boot_init   called by the dynamic linker as the first initialiser: argc, argv, envp
 *   boot_entry  where the kernel, or a dynamic linker that knows no such initialisers, enters the program:
 *               rsp at argc, rdx a function for atexit; every register is kept
 *
 * Calls boot_prepare(links, argc, argv, envp, sp, pc), which answers the tool's entry point and stack.
 */
#include "run/x86_64/offsets.h"

        .section .boot.links, "a", @progbits
        .balign 8
        .globl  boot_links
        .hidden boot_links
boot_links:
        .zero   BOOT_LINKS_SIZE

        .text
        .globl  boot_init
        .type   boot_init, @function
boot_init:
        endbr64
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        sub     $8, %rsp
        mov     %rdx, %rcx
        mov     %rsi, %rdx
        mov     %rdi, %rsi
        lea     boot_links(%rip), %rdi
        mov     %rsp, %r8
        lea     1f(%rip), %r9
        call    boot_prepare
        mov     %rdx, %rsp
        xor     %edx, %edx
        xor     %ebp, %ebp
        jmp     *%rax
1:      add     $8, %rsp
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret
        .size   boot_init, . - boot_init

/* The program's stack pointer is kept too: what is pushed lies below it. */
        .globl  boot_entry
        .type   boot_entry, @function
boot_entry:
        endbr64
        push    %rax                    /* room for the address to go on at */
        push    %rax
        push    %rbx
        push    %rcx
        push    %rdx
        push    %rsi
        push    %rdi
        push    %rbp
        push    %r8
        push    %r9
        push    %r10
        push    %r11
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        pushfq
        lea     136(%rsp), %rbx         /* argc */
        mov     (%rbx), %rsi
        lea     8(%rbx), %rdx
        lea     16(%rbx, %rsi, 8), %rcx
        lea     boot_links(%rip), %rdi
        mov     %rsp, %r8
        lea     2f(%rip), %r9
        mov     %rsp, %rbp
        and     $-16, %rsp
        call    boot_prepare
        mov     %rdx, %rsp
        xor     %edx, %edx
        xor     %ebp, %ebp
        jmp     *%rax
2:      lea     boot_links(%rip), %rax
        mov     %rax, %rcx
        sub     BOOT_LINKS_SELF(%rax), %rcx     /* the program's real bias */
        add     BOOT_LINKS_ENTRY(%rax), %rcx
        mov     %rcx, 128(%rsp)
        popfq
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %r11
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rbp
        pop     %rdi
        pop     %rsi
        pop     %rdx
        pop     %rcx
        pop     %rbx
        pop     %rax
        lea     8(%rsp), %rsp
        jmp     *-8(%rsp)
        .size   boot_entry, . - boot_entry

/* What a procedure returns to that the tool has called, in the program's image, so that unwinders find its entry
 * (isa.c): on to the tool, as an analysis routine from here on. They look in front of the return address, hence the
 * first instruction. */
        .globl  boot_return, boot_return_end
        .hidden boot_return, boot_return_end
        .type   boot_return, @function
boot_return:
        nop
        movq    $1, %gs:OFF_IN_TOOL
        jmp     *%gs:OFF_CALL_RETURNED
boot_return_end:
        .size   boot_return, . - boot_return
        .section .note.GNU-stack, "", @progbits
