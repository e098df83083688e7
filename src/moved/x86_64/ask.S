/* Where a thread is sent to answer (leave.c), on a stack made for that. Whoever sent it takes it back at the call behind. */
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
        ud2
        .size   moved_ask_entry, . - moved_ask_entry
        .section .note.GNU-stack, "", @progbits
