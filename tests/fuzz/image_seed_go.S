/* A program whose procedures are named by a table of Go alone, in the form of 1.18, to be damaged by the image fuzzer. It
 * is never run. */
        .text
        .globl  _start
_start:
start:  .space  16, 1
first:  .space  16, 1
second: .space  16, 1
end:
        .section .gopclntab, "a"
        .p2align 5
table:  .long   0xfffffff0
        .byte   0, 0, 1, 8
        .quad   3, 1, start, names - table, names - table, names - table, names - table, entries - table
names:  .asciz  "start", "first", "main.second"
        .p2align 3
entries:
        .long   start - start, a - entries, first - start, b - entries, second - start, c - entries, end - start
a:      .long   start - start, 0
b:      .long   first - start, 6
c:      .long   second - start, 12
