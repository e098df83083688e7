/* What the weaver must know of an instruction set: one const table, with facts and functions. The generic files
 * decide what is to be done and which registers hold what; a table's functions know how that is written.
 *
 * What a table may rely on, and must keep to:
 *
 *   - Registers are numbers below reg_count. Functions with a weaver may take registers and temporaries
 *     (weaver.h); those with code alone use what they are given, and what is `reserved`.
 *   - "No flags" is said where it is asked for; elsewhere a function calls weave_flags_clobber before it changes
 *     them.
 *   - The frame (the thread's block) is reached in whatever way the set has for it: a segment, a register that is
 *     kept for it. Its fields are told by their offsets (weave_layout). Nothing presumes that memory can be an
 *     operand of arithmetic, that two operands share a register, or that code has one length.
 *   - Conditions are the set's own numbers, those of isa_insn.cond.
 *   - A label that was asked for as `near` is bound within a few dozen bytes; any other anywhere in the run or
 *     in the code out of line.
 *
 * The functions are coarse enough that a call through the table is not noticed in the time of a translation.
 */
#ifndef INL_WEAVE_ISA_H
#define INL_WEAVE_ISA_H

#include "cfg/liveness.h"
#include "isa/code.h"
#include "snippet/snippet.h"
#include "weave/weave.h"

typedef struct weaver weaver;
typedef struct weave_val weave_val;
typedef struct weave_fixed weave_fixed;
typedef struct weave_routine weave_routine;
typedef struct weave_call_plan weave_call_plan;
typedef struct weave_naming weave_naming;
struct weave_form;
struct item;

enum { WEAVE_MAX_REGS = 32, WEAVE_MAX_ARGS = 8 };
#define WEAVE_BIT(r) ((isa_regs)1 << (r))

/* Offsets in the frame. Register r waits in slot + 8 * r. */
typedef struct weave_layout {
    int32_t thread_number, slot, temp, buffers, counters, locals, own_cycles;
    unsigned temps, buffer_count;
} weave_layout;

/* Who holds what at a call. */
typedef struct weave_abi {
    const uint8_t *args; /* registers of the first integer arguments */
    uint8_t arg_count;
    uint8_t result;         /* of a routine */
    uint8_t syscall_number; /* at a system call */
    isa_regs caller_saved;
    isa_regs syscall_writes; /* by the kernel */
    unsigned vec_args;       /* vector registers that pass floating-point arguments, from number 0 on */
    isa_regs return_address; /* read to find it at a procedure's entry */
} weave_abi;

typedef struct weave_isa {
    const isa *isa;
    weave_abi abi;
    weave_layout frame;

    /* --- registers and flags --- */
    unsigned reg_count;
    isa_regs all;             /* what the program has values in */
    isa_regs reserved;        /* of these, never taken for anything else: the stack pointer */
    isa_regs copied_first;    /* no operands of everything: their values are looked at in another register */
    unsigned park_from;       /* so many registers pending at once are many, */
    unsigned inline_regs;     /* and so many all that a routine's body and what is pending can have */
    int64_t pc_reach;         /* calls and operands relative to the program counter reach less than that */
    unsigned near_items;      /* a near label reaches over so many items of a body */
    unsigned zero_reg;        /* the one that is compared with zero without flags; ISA_NO_REG: any is */
    uint32_t flags;           /* that arithmetic changes */
    uint32_t count_flags;     /* of these, what counting by a constant changes, */
    unsigned count_regs;      /* and how many registers it takes where these are dead */
    uint32_t flags_unsettled; /* where an instruction leaves one of these undefined, it may as well leave all that it
                                 leaves undefined as they were */
    isa_regs count_reg;       /* the iterations of a repeated instruction */
    isa_regs size_regs;       /* what tells the size of an operand that depends on the state, */
    int32_t size_word;        /* and where in the operand itself */

    /* --- moves; no flags --- */
    void (*move)(isa_code *, unsigned dst, unsigned src);
    void (*set)(isa_code *, unsigned dst, uint64_t value);
    void (*add)(isa_code *, unsigned dst, unsigned src, int32_t amount);
    void (*truncate)(isa_code *, unsigned reg);                                            /* to its low 32 bits */
    void (*extend)(isa_code *, unsigned size, bool is_signed, unsigned dst, unsigned src); /* from 1, 2, 4 or 8 bytes */
    /* 8 bytes of the frame */
    void (*frame_load)(weaver *, unsigned dst, int32_t offset);
    void (*frame_store)(weaver *, int32_t offset, unsigned src);
    void (*frame_address)(isa_code *, unsigned dst, int32_t offset);
    /* Memory. `reaches`: can be said in the instruction. */
    bool (*reaches)(int64_t disp);
    void (*load)(isa_code *, unsigned size, bool is_signed, unsigned dst, unsigned base, int32_t disp);
    void (*store)(isa_code *, unsigned size, unsigned base, int32_t disp, unsigned src);
    /* False, and nothing written: `value` needs a register. */
    bool (*store_constant)(isa_code *, unsigned size, unsigned base, int32_t disp, uint64_t value);
    /* Adds `reg` to memory, in one piece for all threads; then what was there before is in `reg`, zero-extended. */
    void (*add_to)(weaver *, unsigned size, unsigned base, unsigned reg);

    /* --- branches --- */
    uint32_t (*condition_flags)(unsigned cond); /* that it reads */
    isa_label (*branch)(isa_code *, unsigned cond, bool near);
    isa_label (*branch_unless)(isa_code *, unsigned cond, bool near);
    /* Without flags where these would have to be saved and the register is zero_reg. */
    isa_label (*branch_if_zero)(weaver *, unsigned reg);
    isa_label (*branch_if_not_zero)(weaver *, unsigned reg);
    isa_label (*jump)(isa_code *, bool near);
    /* A jump that is taken while the byte at s->exec is `off`; fills in where it is, and both bytes. NULL: the set has
     * none. */
    isa_label (*jump_if_off)(isa_code *, bool on, weave_switch *s);
    void (*jump_to)(isa_code *, uint64_t target);
    void (*bind)(isa_code *, isa_label); /* to here */
    void (*bind_to)(isa_code *, isa_label, uint64_t target);

    /* --- fix-ups (isa/code.h) --- */
    void (*fix_relocated)(isa_code *, const isa_insn *); /* of what isa.relocate has just written */
    bool (*place)(const isa_fixups *, uint8_t *write, uint64_t exec, uint64_t low, uint64_t high);

    /* --- flags (flags.c) --- */
    void (*flags_save)(weaver *);    /* into the frame */
    void (*flags_restore)(weaver *); /* out of it */
    weave_val (*flags_value)(weaver *, unsigned hint);

    /* --- expressions (arith.c) --- */
    weave_val (*binary)(weaver *, const snippet *, weave_val a, weave_val b, unsigned hint);
    weave_val (*unary)(weaver *, unsigned op, weave_val a, unsigned hint);
    /* The flags compare a and b; which condition says that it is so. */
    unsigned (*compare)(weaver *, unsigned op, weave_val a, weave_val b);
    void (*condition)(isa_code *, unsigned cond, unsigned reg); /* 0 or 1; leaves the flags alone */
    weave_val (*cycles)(weaver *);
    void (*thread_pointer)(isa_code *, unsigned reg); /* the program's */

    /* --- counters and buffers (count.c) --- */
    void (*count)(weaver *, int32_t at, int64_t amount);  /* `at` in the frame */
    void (*count_value)(weaver *, int32_t at, weave_val); /* which is in a register; drops it */
    /* Where a register and 8 bytes of the frame are equal. What had to be borrowed is *held until behind. */
    isa_label (*branch_if_full)(weaver *, unsigned reg, int32_t limit, weave_fixed *held);
    /* Where it is not below; NULL: the set has none, and nothing is appended ahead. */
    isa_label (*branch_if_beyond)(weaver *, unsigned reg, int32_t limit);
    isa_regs full_borrows;

    /* --- what the program's instructions say (insnval.c) --- */
    bool (*may_fault)(const isa_insn *); /* for other reasons than memory */
    cfg_need (*branch_reads)(const isa_insn *);
    cfg_need (*predicate_reads)(const isa_insn *);
    int (*predicate)(const isa_insn *); /* the condition on which it is carried out, or -1 */
    isa_label (*branch_unless_taken)(weaver *, const isa_insn *);
    weave_val (*taken)(weaver *, const isa_insn *, unsigned hint); /* of a branch on a register */
    weave_val (*rep_executes)(weaver *, const isa_insn *, unsigned hint);
    weave_val (*rep_count)(weaver *, const isa_insn *, unsigned hint);
    weave_val (*return_target)(weaver *, const isa_insn *, unsigned hint); /* of a return */
    weave_val (*return_address)(weaver *, unsigned hint);                  /* at a procedure's entry */
    weave_val (*stack_argument)(weaver *, unsigned index, bool at_call, unsigned hint);
    weave_val (*address)(weaver *, const isa_mem *, const weave_val *index, unsigned hint);
    weave_val (*variable_size)(weaver *, unsigned index, const isa_mem *);
    weave_val (*context)(weaver *, unsigned hint);
    /* Elements of masked operands (elements.c). */
    void (*save_masks)(weaver *, const isa_insn *, const isa_mem *);
    weave_val (*element_index)(weaver *, const isa_mem *, unsigned element);
    int (*element_condition)(weaver *, const isa_mem *, unsigned element); /* -1: always */
    /* An operand whose address a snippet sets (SNIPPET_SET_EA): NULL, and in which of the frame's first temporaries
     * that waits, which are the weaver's own meanwhile; or why it cannot be set. A table without it: none can. */
    const char *(*placeable)(const isa_insn *, const isa_mem *, unsigned *place);
    /* The instruction with its operands at what is in these temporaries, a bit each. */
    bool (*copy_placed)(weaver *, const isa_insn *, weave_map_entry *, unsigned places, bool plain);
    /* Instructions that cannot be copied or rebased: 1 done, 0 not one of them, -1 failed. */
    int (*copy_special)(weaver *, const isa_insn *, weave_map_entry *, bool plain);

    /* --- what routines do (clobber.c, sums.c) and their bodies in place of calls (body.h) --- */
    void (*note_routine)(weave_routine *, const isa_insn *, const isa_effects *); /* beside what the effects say */
    void (*form)(const isa_insn *, struct weave_form *);
    /* Does the condition hold where the flags are those of a `op` b? False: that is not known. */
    bool (*holds)(unsigned cond, unsigned op, unsigned width, uint64_t a, uint64_t b, bool *yes);
    /* With other registers, all but the fixed ones. */
    bool (*can_rename)(const isa_insn *, isa_regs *fixed);
    bool (*takes_immediate)(unsigned item_kind, unsigned op, unsigned width, uint64_t value);
    bool (*is_far)(const weaver *, uint64_t here, uint64_t address); /* as an operand: only through a register */
    bool (*put_item)(weaver *, const weave_naming *, const struct item *);

    /* --- calls of routines (call.c) --- */
    void (*call_plan)(weaver *, weave_call_plan *);
    void (*call_begin)(weaver *, weave_call_plan *); /* the stack, vectors, the call itself */
    weave_val (*call_result)(weaver *, weave_call_plan *);
    void (*call_end)(weaver *, weave_call_plan *);
} weave_isa;

/* The table for an instruction set; NULL: the weaver does not know it. */
const weave_isa *weave_isa_of(const isa *);
/* For the code of this very process, a tool's routines; of the folder of the instruction set that the build is for. */
const weave_isa *weave_isa_here(void);

#endif
