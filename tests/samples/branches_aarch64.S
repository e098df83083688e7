/* AArch64: each kind of branch a known number of times, and each shape of a load-exclusive with its store: one that
 * always stores, one that leaves between, one of a pair. Signals to itself. No C library. Prints "done", ends with status 0. */
        .text
        .globl  _start
_start: adrp    x1, word
        str     xzr, [x1, :lo12:word]   /* a page fault would make the first store fail */
        mov     x19, #300
loop:   mov     x0, x19
        bl      kinds
        adr     x9, exclusives
        blr     x9
        subs    x19, x19, #1
        b.ne    loop
        mov     x0, #10                 /* SIGUSR1 */
        adr     x1, action
        mov     x2, #0
        mov     x3, #8
        mov     x8, #134
        svc     #0
        mov     x8, #172                /* to itself, three times */
        svc     #0
        mov     x20, x0
        mov     x19, #3
again:  mov     x0, x20
        mov     x1, #10
        mov     x8, #129
        svc     #0
        sub     x19, x19, #1
        cbnz    x19, again
        mov     x0, #1
        adr     x1, text
        mov     x2, #5
        mov     x8, #64
        svc     #0
        mov     x0, #0
        mov     x8, #94
        svc     #0

/* x0: a number, whose low bits choose the way. */
kinds:  tbz     x0, #0, 1f
        add     x1, x0, #1
1:      tbnz    x0, #1, 2f
        add     x1, x0, #2
2:      and     x2, x0, #3
        cbz     x2, 3f
        add     x1, x0, #3
3:      cbnz    w2, 4f
        add     x1, x0, #4
4:      adr     x3, cases
        add     x3, x3, x2, lsl #3
        br      x3
cases:  add     x1, x1, #1
        b       5f
        add     x1, x1, #2
        b       5f
        add     x1, x1, #3
        b       5f
        add     x1, x1, #4
        nop
5:      ret

exclusives:
        adrp    x1, word
        add     x1, x1, :lo12:word
1:      ldaxr   x2, [x1]
        add     x2, x2, #1
        stlxr   w3, x2, [x1]
        cbnz    w3, 1b
2:      ldxr    w4, [x1, #0]            /* leaves when it is odd */
        tbnz    w4, #0, 3f
        add     w4, w4, #2
        stxr    w3, w4, [x1]
        cbnz    w3, 2b
        b       4f
3:      clrex
        nop
4:      add     x1, x1, #16
5:      ldaxp   x4, x5, [x1]
        add     x4, x4, #1
        adds    x5, x5, x4
        stxp    w3, x4, x5, [x1]
        cbnz    w3, 5b
        ldxrb   w4, [x1]                /* no store: an ordinary load */
        br      x30

handler:
        mov     x1, #7
        mov     x2, #8
        ret
restorer:
        mov     x8, #139
        svc     #0

        .balign 8
action: .quad   handler, 0x04000000, restorer, 0
text:   .ascii  "done\n"
        .bss
        .balign 16
word:   .skip   32
        .section .note.GNU-stack, "", %progbits
