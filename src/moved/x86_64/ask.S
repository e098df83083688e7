/* Where a thread is sent to answer (leave.c), on a stack made for that. Whoever sent it takes it back at the call behind;
 * where there is nobody any more, it goes on from the parking area (live/x86_64/park.S). */
#include "move/x86_64/park.h"
#define NR_GETPID 39
        .text
        .globl  moved_ask_entry, moved_ask_until
        .hidden moved_ask_entry, moved_ask_until
        .type   moved_ask_entry, @function
        .p2align 4
moved_ask_entry:
        and     $-16, %rsp
        call    moved_ask
        mov     $NR_GETPID, %eax
        syscall
moved_ask_until:
        movabs  $MOVE_PARK_FROM_TOOL, %rax
        jmp     *%rax
        .size   moved_ask_entry, . - moved_ask_entry
        .section .note.GNU-stack, "", @progbits
