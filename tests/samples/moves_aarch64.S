/* What is not copied as it is when code moves: literals of every kind, addresses in pairs of instructions, tables of
 * bytes that are counted from a label, branches that reach a short way only, tail calls, exclusive pairs, signed return
 * addresses, marks of indirect branches' targets. Says a number that is made of all of it, and ends with status 7.
 * No C library. */
        .macro  procedure name
        .p2align 3
        .globl  \name
        .type   \name, %function
\name:  bti     c
        .endm
        .macro  done name
        .size   \name, . - \name
        .endm
        /* Into the number: x19 */
        .macro  mix     reg
        eor     x19, x19, \reg
        ror     x19, x19, #7
        add     x19, x19, #1
        .endm

        .text
        .globl  _start
        .type   _start, %function
_start: mov     x29, #0
        mov     x19, #0
        bl      literals
        bl      addresses
        mov     x20, #0
1:      mov     w0, w20
        bl      table
        add     w20, w20, #1
        cmp     w20, #8
        b.ne    1b
        bl      far
        mov     x0, #5
        bl      tail
        mov     x0, #0
        bl      tail
        bl      pairs
        bl      signs
        bl      say
        mov     x0, #7
        mov     x8, #94
        svc     #0
        done    _start

procedure literals
        ldr     q0, 1f
        ldr     d1, 1f + 8
        ldr     s2, 1f + 4
        ldrsw   x3, 1f + 12
        ldr     w4, 1f
        ldr     x5, 1f
        prfm    pldl1keep, 1f
        fmov    x6, d0
        mix     x6
        mov     x6, v0.d[1]
        mix     x6
        fmov    x6, d1
        mix     x6
        fmov    w6, s2
        mix     x6
        mix     x3
        mix     x4
        mix     x5
        ret
        .p2align 4
1:      .quad   0x0123456789abcdef, 0x89abcdef01234567
        done    literals

procedure addresses
        adrp    x0, words
        add     x1, x0, :lo12:words
        ldr     x2, [x1, #8]
        mix     x2
        ldr     x2, [x0, :lo12:words]
        mix     x2
        adr     x3, literals
        adrp    x4, literals
        add     x4, x4, :lo12:literals
        sub     x3, x3, x4
        mix     x3
        str     x30, [sp, #-16]!
        ldr     x5, =leaf
        blr     x5
        mix     x0
        ldr     x30, [sp], #16
        ret
        .ltorg
        done    addresses

procedure leaf
        mov     x0, #99
        ret
        done    leaf

/* w0: which; beyond 5 there is none. */
procedure table
        cmp     w0, #5
        b.hi    9f
        adrp    x1, offsets
        add     x1, x1, :lo12:offsets
        ldrb    w0, [x1, w0, uxtw]
        adr     x1, 1f
        add     x0, x1, w0, sxtb #2
        br      x0
1:      bti     j
        mov     x2, #11
        b       8f
2:      bti     j
        mov     x2, #22
        b       8f
3:      bti     j
        mov     x2, #33
8:      mix     x2
        ret
9:      mov     x2, #44
        b       8b
        done    table
        .section .rodata
offsets: .byte  0, (2b - 1b) / 4, (3b - 1b) / 4, 0, (3b - 1b) / 4, (2b - 1b) / 4
        .text

/* Both ends are in reach of each other by a little; with counts between they are not. */
procedure far
        mov     x9, #0
        mov     x10, #3
        mov     x11, #6
1:      tbz     x10, #1, 3f
        tbnz    x11, #0, 3f
        .rept   1300
        add     x9, x9, x10
        tst     x9, #4
        b.eq    2f
        eor     x9, x9, x11
        add     x11, x11, #2
2:
        .endr
        sub     x10, x10, #1
        b       1b
3:      mix     x9
        mix     x11
        ret
        done    far

/* On to others, by a condition, a register and a jump. */
procedure tail
        cbz     x0, at_zero
        tbz     x0, #1, by_register
        b       leaf
        done    tail
procedure by_register
        adrp    x16, at_zero
        add     x16, x16, :lo12:at_zero
        br      x16
        done    by_register
procedure at_zero
        add     x0, x0, #77
        mix     x0
        ret
        done    at_zero

/* A compare and swap as compilers write it, and flags that live across blocks. An interrupt or a page fault makes a store
 * fail; that costs no instruction and no block: a try is as long either way, there are twice as many as are needed, and
 * those that are left over store what is there. */
procedure pairs
        adrp    x1, counter
        add     x1, x1, :lo12:counter
        mov     x4, #0
        mov     w6, #18
1:      ldaxr   x2, [x1]
        cmp     x2, x4
        b.ne    2f
        cmp     x2, #9
        cinc    x2, x2, ne
        stlxr   w3, x2, [x1]
        cbnz    w3, 4f
        mov     x4, x2
        b       5f
4:      nop
        b       5f
5:      sub     w6, w6, #1
        cbnz    w6, 1b
        cmp     x4, #9
2:      cset    x5, eq
        mix     x5
        ldr     x2, [x1]
        mix     x2
        subs    x2, x2, #10
        b.mi    3f
        mov     x2, #0
3:      cset    x5, cs
        mix     x5
        ret
        done    pairs

procedure signs
        paciasp
        stp     x29, x30, [sp, #-16]!
        mov     x29, sp
        bl      leaf
        mix     x0
        ldp     x29, x30, [sp], #16
        autiasp
        ret
        done    signs

/* x19 in sixteen letters */
procedure say
        sub     sp, sp, #32
        mov     x0, x19
        mov     x1, #16
        mov     w3, #10
        strb    w3, [sp, #16]
1:      and     w2, w0, #15
        add     w2, w2, #'a'
        sub     x1, x1, #1
        strb    w2, [sp, x1]
        lsr     x0, x0, #4
        cbnz    x1, 1b
        mov     x0, #1
        mov     x1, sp
        mov     x2, #17
        mov     x8, #64
        svc     #0
        add     sp, sp, #32
        ret
        done    say

        .data
        .p2align 3
words:  .quad   0x1111222233334444, 0x5555666677778888
counter: .quad  0
        .bss                    /* new code lies behind it, out of a literal's reach */
        .skip   4 << 20
        /* All targets of indirect branches are marked. */
        .section .note.gnu.property, "a"
        .p2align 3
        .word   4, 16, 5
        .asciz  "GNU"
        .word   0xc0000000, 4, 1, 0
        .section .note.GNU-stack, "", %progbits
