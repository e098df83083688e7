/* Where a thread is sent to answer (leave.c), on a stack made for that. Whoever sent it takes it back at the call behind. */
#define NR_GETPID 172
        .text
        .globl  moved_ask_entry, moved_ask_until
        .hidden moved_ask_entry, moved_ask_until
        .type   moved_ask_entry, %function
        .p2align 4
moved_ask_entry:
        bl      moved_ask
        mov     x8, #NR_GETPID
        svc     #0
moved_ask_until:
        udf     #0
        .size   moved_ask_entry, . - moved_ask_entry
        .section .note.GNU-stack, "", %progbits
