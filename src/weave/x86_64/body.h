/* The body of a small leaf routine, taken apart so that it can be written anew in place of a call: with other
 * registers, with what follows from constant arguments worked out, without what is not needed then.
 *
 *     weave_body_of    the routine's instructions; kept
 *     weave_fold       a call's own copy of them (items), folded
 *     inline.c         gives each variable a register, and writes the items
 *
 * In items registers are variables: the number is that of the register that the compiler chose. One more
 * holds an address from which those out of reach are counted. Jumps go forward, so one walk in order
 * sees every value, and one backward every use. */
#ifndef INL_WEAVE_X86_64_BODY_H
#define INL_WEAVE_X86_64_BODY_H

#include "weave/x86_64/machine.h"

enum { BODY_INSNS = 30, BODY_FAR = X86_REGS, BODY_VARIABLES };

typedef struct body_insn {
    isa_insn in;
    isa_effects fx;
    uint16_t operands, partly; /* registers read as operands, addresses apart; written, but not whole */
    uint16_t fixed;            /* cannot be renamed */
    bool jumps;                /* a jump, or a return that is not the last instruction, */
    uint8_t target;            /* to instruction number so much; the body's end: its count */
    bool pure;                 /* may be left out when nobody wants what it writes */
    bool nothing;              /* has no effect at all */
    bool loads;                /* a plain load: likewise, where its address can be relied on */
} body_insn;

typedef struct weave_body {
    bool renamable; /* or it has something that cannot be dealt with here */
    unsigned count; /* instructions, the last return apart */
    uint16_t fixed;
    uint16_t wanted; /* registers that it looks at before it writes them */
    body_insn insns[BODY_INSNS];
} weave_body;

/* NULL: memory is used up. */
const weave_body *weave_body_of(const weave_routine *, void (*fn)(void));

typedef enum item_kind {
    ITEM_GONE,
    ITEM_COPY,   /* the instruction with its registers renamed, and `mem` */
    ITEM_CONST,  /* dst := imm */
    ITEM_ALU_RI, /* dst `op`= imm */
    ITEM_ALU_MI, /* mem `op`= imm */
    ITEM_TEST_RI,
    ITEM_STORE, /* mem := imm */
    ITEM_SHIFT, /* dst `op`= imm */
    ITEM_SX,    /* dst := the sign-extended lower half of src */
    ITEM_JUMP,  /* to item `target`, on condition `op` */
    ITEM_ALWAYS,
} item_kind;

typedef struct item {
    uint8_t kind, op, width, dst, src, target;
    bool has_mem, pure;
    x86_addr mem; /* of variables; an absolute address of 64 bits when it has none */
    uint64_t imm;
    const body_insn *of;
    uint32_t reads, writes, kills; /* variables */
    uint32_t flags_read, flags_written, flags_kill;
} item;

typedef struct weave_folded {
    item items[BODY_INSNS];
    unsigned count;
    uint32_t entry;         /* variables wanted at the begin */
    uint16_t used, written; /* variables of the items */
    uint16_t fixed;
    bool flags;        /* are changed */
    bool result_known; /* what the routine answers */
    uint64_t result;
} weave_folded;

typedef struct weave_known {
    uint32_t which;
    uint64_t value[X86_REGS];
} weave_known; /* arguments */

/* `mask`: instructions that are left out. */
void weave_fold(const weave_body *, uint64_t mask, const weave_known *, bool wanted, weave_folded *);

#endif
