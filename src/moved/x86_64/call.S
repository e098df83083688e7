/* A procedure that the tool has called returns here, by way of the boot code (src/elf/x86_64/start.S), which has set
 * in_tool: signals wait as in an analysis routine. The registers are the program's, and go to ctx. */
#include "isa/x86_64/bases.h"
#include "run/x86_64/save.h"

        .text
        .globl  moved_returned
        .hidden moved_returned
        .type   moved_returned, @function
        .p2align 4
moved_returned:
        mov     %rsp, %gs:CTX_RSP
        mov     %gs:OFF_RUNTIME_STACK, %rsp
        SAVE_GENERAL
        call    *%gs:OFF_SAVE_VECTORS
        fninit
        mov     %gs:OFF_TOOL_FS, %rsi
        SET_FS_BASE
        pushq   $2                      /* plain flags */
        popfq
        ldmxcsr default_mxcsr(%rip)
        mov     %gs:0, %rdi
        call    moved_call_returned
        ud2
        .size   moved_returned, . - moved_returned

        .section .rodata
        .p2align 2
default_mxcsr:
        .long   0x1f80
        .section .note.GNU-stack, "", @progbits
