# Procedures of AArch64 of which every answer is known beforehand; aarch64.py says what. Linked statically.
        .text
        .globl  _start, framed, kinds
        .weak   framed
        .type   _start, %function
_start: bl      framed
        bl      kinds
        adr     x9, framed
        blr     x9
        mov     x0, #0
        mov     x8, #93
        svc     #0
        .size   _start, . - _start

# Two pairs saved, a base, 80 bytes in all.
        .type   framed, %function
framed: stp     x29, x30, [sp, #-48]!
        mov     x29, sp
        stp     x19, x20, [sp, #16]
        sub     sp, sp, #32
        str     x0, [sp, #8]
        add     sp, sp, #32
        ldp     x19, x20, [sp, #16]
        ldp     x29, x30, [sp], #48
        ret
        .size   framed, . - framed

        .type   kinds, %function
kinds:  mul     w1, w1, w1
        mul     x1, x1, x1
        and     x1, x1, x1
        lsl     x1, x1, #1
        csel    x2, x1, x3, eq
        cmp     x1, x2
        add     x1, x1, #1
        scvtf   d1, w1
        fdiv    s2, s2, s1
        fdiv    d2, d2, d1
        fadd    d3, d3, d2
        adr     x4, kinds
        ldr     x5, [x4]
        ldr     d6, [x4]
        str     d6, [sp, #-16]!
        str     x5, [sp], #16
        tst     x1, #1
        mrs     x6, tpidr_el0
        b       1f
1:      ret
        .size   kinds, . - kinds
        .section .note.GNU-stack, "", %progbits
