/* Where the first thread of a process that the tool has come to ends (join.c): at a system call that whoever has brought
 * it does not let it make. Should that one have died, it goes on in the parking area (move/live.h). */
#include "move/x86_64/park.h"

        .text
        .globl  join_wait, join_until
        .hidden join_wait, join_until
        .type   join_wait, @function
        .p2align 4
join_wait:
        mov     $39, %eax               /* getpid */
        syscall
join_until:
        movabs  $MOVE_PARK_FROM_TOOL, %rax
        jmp     *%rax
        .size   join_wait, . - join_wait
        .section .note.GNU-stack, "", @progbits
