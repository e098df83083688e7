/* The whole vector state to the thread's area and back, by what the processor has that the program runs on: which of
 * these two pairs a thread uses is told by its frame (weave_vectors_choose). x17 is the frame; x16 and x17 are used up,
 * x30 is the way back. No flags are touched. What saves leaves the ABI's floating-point environment. */
#include "weave/aarch64/vectors.h"

        .text
        .arch armv8-a+sve

.macro  PROCEDURE name
        .globl  \name
        .hidden \name
        .type   \name, %function
        .p2align 4
\name:
.endm

.macro  SAVE_SHORT
        ldr     x16, [x17, OFF_VECTOR_AREA]
        stp     q0, q1, [x16, 0]
        stp     q2, q3, [x16, 32]
        stp     q4, q5, [x16, 64]
        stp     q6, q7, [x16, 96]
        stp     q8, q9, [x16, 128]
        stp     q10, q11, [x16, 160]
        stp     q12, q13, [x16, 192]
        stp     q14, q15, [x16, 224]
        stp     q16, q17, [x16, 256]
        stp     q18, q19, [x16, 288]
        stp     q20, q21, [x16, 320]
        stp     q22, q23, [x16, 352]
        stp     q24, q25, [x16, 384]
        stp     q26, q27, [x16, 416]
        stp     q28, q29, [x16, 448]
        stp     q30, q31, [x16, 480]
        mrs     x17, fpsr
        str     w17, [x16, VECTOR_STATUS]
        mrs     x17, fpcr
        str     w17, [x16, VECTOR_STATUS + 4]
        msr     fpcr, xzr
.endm

.macro  LOAD_STATUS
        ldr     x16, [x17, OFF_VECTOR_AREA]
        ldr     w17, [x16, VECTOR_STATUS]
        msr     fpsr, x17
        ldr     w17, [x16, VECTOR_STATUS + 4]
        msr     fpcr, x17
.endm

PROCEDURE weave_save_neon
        SAVE_SHORT
        ret
        .size   weave_save_neon, . - weave_save_neon

PROCEDURE weave_load_neon
        LOAD_STATUS
        ldp     q0, q1, [x16, 0]
        ldp     q2, q3, [x16, 32]
        ldp     q4, q5, [x16, 64]
        ldp     q6, q7, [x16, 96]
        ldp     q8, q9, [x16, 128]
        ldp     q10, q11, [x16, 160]
        ldp     q12, q13, [x16, 192]
        ldp     q14, q15, [x16, 224]
        ldp     q16, q17, [x16, 256]
        ldp     q18, q19, [x16, 288]
        ldp     q20, q21, [x16, 320]
        ldp     q22, q23, [x16, 352]
        ldp     q24, q25, [x16, 384]
        ldp     q26, q27, [x16, 416]
        ldp     q28, q29, [x16, 448]
        ldp     q30, q31, [x16, 480]
        ret
        .size   weave_load_neon, . - weave_load_neon

.macro  EACH_LONG insn
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        \insn   z\n, [x16, \n, mul vl]
        .endr
.endm
.macro  EACH_PREDICATE insn
        .irp    n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        \insn   p\n, [x16, \n, mul vl]
        .endr
.endm

PROCEDURE weave_save_sve
        SAVE_SHORT
        add     x16, x16, VECTOR_LONG
        EACH_LONG str
        addvl   x16, x16, 31
        addvl   x16, x16, 1
        EACH_PREDICATE str
        rdffr   p0.b
        str     p0, [x16, 16, mul vl]
        ldr     p0, [x16, 0, mul vl]
        ret
        .size   weave_save_sve, . - weave_save_sve

PROCEDURE weave_load_sve
        LOAD_STATUS
        add     x16, x16, VECTOR_LONG
        EACH_LONG ldr
        addvl   x16, x16, 31
        addvl   x16, x16, 1
        ldr     p0, [x16, 16, mul vl]
        wrffr   p0.b
        EACH_PREDICATE ldr
        ret
        .size   weave_load_sve, . - weave_load_sve

        .section .note.GNU-stack, "", %progbits
