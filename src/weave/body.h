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
#ifndef INL_WEAVE_BODY_H
#define INL_WEAVE_BODY_H

#include "weave/form.h"
#include "weave/weaver.h"

enum { BODY_INSNS = 30, BODY_FAR = WEAVE_MAX_REGS, BODY_VARIABLES };

typedef struct body_insn {
    isa_insn in;
    isa_effects fx;
    weave_form form;
    isa_regs operands, partly; /* registers read as operands, addresses apart; written, but not whole */
    isa_regs fixed;            /* cannot be renamed */
    bool jumps;                /* a jump, or a return that is not the last instruction, */
    uint8_t target;            /* to instruction number so much; the body's end: its count */
    bool pure;                 /* may be left out when nobody wants what it writes */
    bool loads;                /* a plain load: likewise, where its address can be relied on */
} body_insn;

typedef struct weave_body {
    const weave_isa *isa;
    bool renamable; /* or it has something that cannot be dealt with here */
    unsigned count; /* instructions, the last return apart */
    isa_regs fixed;
    isa_regs wanted; /* registers that it looks at before it writes them */
    body_insn insns[BODY_INSNS];
} weave_body;

/* NULL: memory is used up. */
const weave_body *weave_body_of(const weave_routine *, void (*fn)(void));

typedef enum item_kind {
    ITEM_GONE,
    ITEM_COPY,       /* the instruction with its registers renamed, and `mem` */
    ITEM_CONST,      /* dst := imm */
    ITEM_ALU_RI,     /* dst := src `op` imm */
    ITEM_ALU_MI,     /* mem `op`= imm */
    ITEM_COMPARE_RI, /* the flags of src `op` imm, */
    ITEM_COMPARE_MI, /* of mem `op` imm */
    ITEM_STORE,      /* mem := imm */
    ITEM_SHIFT,      /* dst := src `op` imm */
    ITEM_SX,         /* dst := the sign-extended lower half of src */
    ITEM_JUMP,       /* to item `target`, on condition `op` */
    ITEM_ALWAYS,
} item_kind;

/* Of variables; an absolute address of 64 bits when it has none. */
typedef struct weave_address {
    uint8_t base, index, scale; /* or ISA_NO_REG */
    int64_t disp;
} weave_address;

typedef struct item {
    uint8_t kind, op, width, dst, src, target; /* op: snippet_op, or a condition */
    bool has_mem, pure;
    weave_address mem;
    uint64_t imm;
    const body_insn *of;
    isa_regs reads, writes, kills; /* variables */
    uint32_t flags_read, flags_written, flags_kill;
} item;

typedef struct weave_folded {
    item items[BODY_INSNS];
    unsigned count;
    isa_regs entry;         /* variables wanted at the begin */
    isa_regs used, written; /* variables of the items */
    isa_regs fixed;
    bool flags;        /* are changed */
    bool result_known; /* what the routine answers */
    uint64_t result;
} weave_folded;

typedef struct weave_known {
    isa_regs which;
    uint64_t value[WEAVE_MAX_REGS];
} weave_known; /* arguments */

/* Which register each variable has, while items are written. */
struct weave_naming {
    uint8_t map[BODY_VARIABLES]; /* or ISA_NO_REG */
    uint64_t far;                /* what BODY_FAR holds, which absolute addresses out of reach are counted from */
    uint64_t here;               /* the place from which the reach was judged */
};

/* Relative to the program counter, which must not depend on where the code will run. */
static inline bool weave_is_near(const weaver *w, uint64_t here, uint64_t address)
{
    int64_t distance = (int64_t)(address - here);
    return !w->opt->pc_relative && distance < w->isa->pc_reach && distance > -w->isa->pc_reach;
}

/* `mask`: instructions that are left out. */
void weave_fold(const weave_body *, uint64_t mask, const weave_known *, bool wanted, weave_folded *);

#endif
