/* Registers of a program, named in full: whole ones and their parts, vectors, flags.
 *
 *     inlay_register(INLAY_AH)                            expressions read those with inlay_reg_is_value,
 *     inlay_set_register(INLAY_EAX, value)                write general ones as instructions do,
 *     inlay_vector_register(3), inlay_context_arg()       and routines get the others
 *
 * A number means one register. General registers have those that the processor gives them, below 64, so that sets of
 * them fit into a word (insn.h); which register that is depends on the program's instruction set. All other numbers
 * are distinct over instruction sets: those of x86-64 lie below 0x1000 (x86_64/reg.h), those of AArch64 from there on
 * (aarch64/reg.h). */
#ifndef INLAY_REG_H
#define INLAY_REG_H

#include <inlay/aarch64/reg.h>
#include <inlay/types.h>
#include <inlay/x86_64/reg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned inlay_reg;

typedef enum inlay_reg_kind {
    INLAY_REG_NONE,    /* no register has this number */
    INLAY_REG_GENERAL, /* and parts of them */
    INLAY_REG_PC,      /* the instruction's original address */
    INLAY_REG_FLAGS,   /* all, and single ones */
    INLAY_REG_SEGMENT, /* and the segments' bases */
    INLAY_REG_VECTOR,
    INLAY_REG_MASK,
    INLAY_REG_FLOAT,   /* x87 and MMX */
    INLAY_REG_CONTROL, /* settings of the processor */
} inlay_reg_kind;

const char *inlay_reg_name(unsigned reg); /* "rax"; "?" when there is none */
inlay_reg_kind inlay_reg_kind_of(inlay_reg);
unsigned inlay_reg_bits(inlay_reg);
/* The register that it is a part of, itself when it is whole; *shift (may be NULL): of its lowest bit there. */
inlay_reg inlay_reg_whole(inlay_reg, unsigned *shift);
inlay_reg inlay_reg_stack_pointer(void);
bool inlay_reg_is_value(inlay_reg); /* inlay_register can read it */

#ifdef __cplusplus
}
#endif

#endif
