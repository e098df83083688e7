/* What ATOM's names mean for one instruction set: src/atom/<architecture>, the same files in each. */
#ifndef INL_ATOM_ISA_H
#define INL_ATOM_ISA_H

#include <inlay.h>

#include <instrument.h>

/* --- kinds.c --- */
/* Of InstTypeFP, InstTypeAdd, InstTypeSub, InstTypeMul, InstTypeDiv, InstTypeNop: is it? */
bool atom_isa_type(const inlay_insn *, ITypeType);
/* Of what is no branch. loads, stores: it has such an operand. */
IClassType atom_isa_class(const inlay_insn *, bool loads, bool stores);

/* --- frame.c --- */
/* How a procedure begins. Registers by RegvType, offsets from the procedure's first byte. */
typedef struct atom_frame {
    long size;        /* taken off the stack pointer */
    uint64_t saved;   /* general registers, as bits */
    long saved_bytes; /* that they take, at the frame's upper end */
    RegvType base;    /* by which it is addressed */
    long set, base_set,
        ready;        /* behind what moves the stack pointer first, sets the base, ends the prologue; 0: none */
    bool in_register; /* the return address stays where a call puts it */
} atom_frame;
atom_frame atom_isa_frame(inlay_proc *);
unsigned atom_isa_return_bytes(void); /* what a call pushes: the arguments on the stack lie above it */

#endif
