/* What an instruction computes, as far as the weaver can do it itself: with known values, or about memory. An
 * instruction set says it of its own (weave_isa.form). */
#ifndef INL_WEAVE_FORM_H
#define INL_WEAVE_FORM_H

#include "isa/isa.h"

typedef enum weave_form_kind {
    WEAVE_FORM_OTHER,
    WEAVE_FORM_NOTHING, /* no effect at all: nop, a landing pad, prefetch */
    WEAVE_FORM_MOVE,    /* dst := a */
    WEAVE_FORM_ALU,     /* dst := a `op` b; the flags, where it sets them, are those of a `op` b */
    WEAVE_FORM_COMPARE, /* only the flags: SNIPPET_SUB or SNIPPET_AND */
    WEAVE_FORM_ADDRESS, /* dst := the address of the memory operand */
    WEAVE_FORM_SHIFT,   /* dst := a `op` b, by b modulo the width */
    WEAVE_FORM_STEP,    /* dst := a `op` 1; the flags are others */
    WEAVE_FORM_NOT,     /* dst := ~a */
    WEAVE_FORM_NEGATE,  /* dst := -a */
    WEAVE_FORM_SIGN,    /* dst := a, sign-extended */
    WEAVE_FORM_ZERO,    /* dst := a, zero-extended */
    WEAVE_FORM_MULTIPLY /* dst := a * b */
} weave_form_kind;

typedef struct weave_form {
    uint8_t kind, op;      /* weave_form_kind; snippet_op */
    isa_operand dst, a, b; /* ISA_OPERAND_NONE where there is none */
} weave_form;

#endif
