/* The two ways into the boot code, and the one way on. Both keep what they were given on the program's
 * stack, prepare the tool (boot_prepare) and jump to its _start on its own stack. When the tool has set
 * everything up it comes back to the address in its handoff, with the stack pointer 16 below that of before and
 * whatever in the other registers: there it takes what the gate has put on the stack (src/moved/aarch64/gate.S).
 *
 *   boot_init   called by the dynamic linker as the first initialiser: argc, argv, envp
 *   boot_entry  where the kernel, or a dynamic linker that knows no such initialisers, enters the program:
 *               sp at argc, x0 a function for atexit; every register is kept but x16, by which the program is entered
 *
 * Calls boot_prepare(links, argc, argv, envp, sp, pc), which answers the tool's entry point and stack.
 */
#include "run/aarch64/offsets.h"

        .section .boot.links, "a", %progbits
        .balign 8
        .globl  boot_links
        .hidden boot_links
boot_links:
        .zero   BOOT_LINKS_SIZE

        .text

/* boot_prepare has answered: to the tool's _start, as the kernel would enter it. */
.macro  TO_TOOL
        mov     sp, x1
        mov     x16, x0
        mov     x0, xzr
        mov     x29, xzr
        mov     x30, xzr
        br      x16
.endm

        .globl  boot_init
        .type   boot_init, %function
boot_init:
        hint    34                      /* bti c */
        stp     x29, x30, [sp, -160]!
        stp     x19, x20, [sp, 16]
        stp     x21, x22, [sp, 32]
        stp     x23, x24, [sp, 48]
        stp     x25, x26, [sp, 64]
        stp     x27, x28, [sp, 80]
        stp     d8, d9, [sp, 96]
        stp     d10, d11, [sp, 112]
        stp     d12, d13, [sp, 128]
        stp     d14, d15, [sp, 144]
        mov     x3, x2
        mov     x2, x1
        mov     x1, x0
        adr     x0, boot_links
        mov     x4, sp
        adr     x5, 1f
        bl      boot_prepare
        TO_TOOL
1:      ldp     x16, x30, [sp], 16
        ldp     x19, x20, [sp, 16]
        ldp     x21, x22, [sp, 32]
        ldp     x23, x24, [sp, 48]
        ldp     x25, x26, [sp, 64]
        ldp     x27, x28, [sp, 80]
        ldp     d8, d9, [sp, 96]
        ldp     d10, d11, [sp, 112]
        ldp     d12, d13, [sp, 128]
        ldp     d14, d15, [sp, 144]
        ldp     x29, x30, [sp], 160
        ret
        .size   boot_init, . - boot_init

        .globl  boot_entry
        .type   boot_entry, %function
boot_entry:
        hint    34
        stp     x0, x1, [sp, -256]!
        stp     x2, x3, [sp, 16]
        stp     x4, x5, [sp, 32]
        stp     x6, x7, [sp, 48]
        stp     x8, x9, [sp, 64]
        stp     x10, x11, [sp, 80]
        stp     x12, x13, [sp, 96]
        stp     x14, x15, [sp, 112]
        stp     x17, x18, [sp, 128]
        stp     x19, x20, [sp, 144]
        stp     x21, x22, [sp, 160]
        stp     x23, x24, [sp, 176]
        stp     x25, x26, [sp, 192]
        stp     x27, x28, [sp, 208]
        stp     x29, x30, [sp, 224]
        adr     x0, boot_links
        ldr     x1, [sp, 256]           /* argc */
        add     x2, sp, 264
        add     x3, x2, x1, lsl 3
        add     x3, x3, 8
        mov     x4, sp
        adr     x5, 2f
        bl      boot_prepare
        TO_TOOL
2:      ldp     x16, x30, [sp], 16
        adr     x16, boot_links
        ldr     x17, [x16, BOOT_LINKS_SELF]
        ldr     x30, [x16, BOOT_LINKS_ENTRY]
        sub     x16, x16, x17           /* the program's real bias */
        add     x16, x16, x30
        ldp     x2, x3, [sp, 16]
        ldp     x4, x5, [sp, 32]
        ldp     x6, x7, [sp, 48]
        ldp     x8, x9, [sp, 64]
        ldp     x10, x11, [sp, 80]
        ldp     x12, x13, [sp, 96]
        ldp     x14, x15, [sp, 112]
        ldp     x17, x18, [sp, 128]
        ldp     x19, x20, [sp, 144]
        ldp     x21, x22, [sp, 160]
        ldp     x23, x24, [sp, 176]
        ldp     x25, x26, [sp, 192]
        ldp     x27, x28, [sp, 208]
        ldp     x29, x30, [sp, 224]
        ldp     x0, x1, [sp], 256
        br      x16
        .size   boot_entry, . - boot_entry

/* What signals' handlers return to, in the program's image, so that unwinders find its entry: it is a way into the
 * gate (src/moved/aarch64/gate.S), of MOVED_SITE_BYTES like any other. They look in front of the return address, hence the first instruction. */
        .globl  boot_return, boot_return_end
        .hidden boot_return, boot_return_end
        .type   boot_return, %function
boot_return:
        nop
        mov     x8, 139                 /* rt_sigreturn */
        stp     x16, x30, [sp, -16]!
        mrs     x16, tpidr_el0
        ldr     x16, [x16, TLS_BLOCK]
        ldr     x16, [x16, OFF_SYSCALL_GATE]
        blr     x16
        ldp     x16, x30, [sp], 16
        udf     0
boot_return_end:
        .size   boot_return, . - boot_return
        .section .note.GNU-stack, "", %progbits
