/* How the unwinder's procedures begin (moved/walks.c): a note in the thread's block, no frame, no register or flag changed. */
#include "run/x86_64/offsets.h"
#define OFF_WALKS (OFF_ENGINE + 0x10) /* moved_own.walks */
        .macro  begins name, next, value
        .globl  \name
        .hidden \name
        .type   \name, @function
        .p2align 4
\name:
        movq    \value, %gs:OFF_WALKS
        jmp     *\next(%rip)
        .size   \name, . - \name
        .endm
        .text
        begins  moved_walk_begins, moved_next_walk, %rsp
        begins  moved_raise_begins, moved_next_raise, $0
        begins  moved_forced_begins, moved_next_forced, $0
        begins  moved_resume_begins, moved_next_resume, $0
        begins  moved_rethrow_begins, moved_next_rethrow, $0
        .section .note.GNU-stack, "", @progbits
