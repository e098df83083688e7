/* What moving code must know of an instruction set: one const table of facts and functions, which names instructions,
 * so that the other files need not. */
#ifndef INL_MOVE_ISA_H
#define INL_MOVE_ISA_H

#include "move/plan.h"

/* A form of displacement that is filled in when both ends have their place. A set numbers its own. */
typedef struct move_form {
    uint8_t size;      /* bytes in which it stands */
    uint8_t from;      /* distances count from so many bytes behind the fix-up's place, */
    int64_t low, high; /* and reach so far */
    bool is_short;     /* there is a longer one, for where it does not reach, */
    uint8_t shorter;   /* or a shorter one: its number, else MOVE_NO_FORM */
} move_form;

/* What a relocation, by its type, has to do with entries of procedures. */
typedef enum move_reloc {
    MOVE_RELOC_NOTHING,
    MOVE_RELOC_SYMBOL,  /* a symbol's address */
    MOVE_RELOC_WORD,    /* likewise, with an addend */
    MOVE_RELOC_ADDRESS, /* its value is an address */
    MOVE_RELOC_UNKNOWN,
} move_reloc;

typedef struct move_isa {
    const isa *isa;
    uint8_t unit; /* code begins at multiples of it */

    /* --- jumps over old code --- */
    uint8_t far_jump;           /* bytes of one that reaches the new code, */
    uint8_t near_jump;          /* of one that reaches a springboard nearby; 0: there is none */
    uint8_t near_back, near_on; /* how far that reaches, from its end */
    bool (*jump)(uint64_t at, uint64_t target, unsigned size, uint8_t *out); /* false: out of reach */

    /* --- new code --- */
    uint8_t filler;                          /* byte of code that must not be executed */
    void (*pad)(isa_code *, uint32_t bytes); /* with what does nothing */
    const move_form *forms;
    /* Fills in a displacement; `bytes` is where, at address `at`. False: it does not reach. */
    bool (*link)(uint8_t *bytes, uint64_t at, unsigned form, uint64_t target);
    /* A control transfer of the run, and a jump; with move_branch_is_short and move_note_branch. False: it cannot be.
     */
    bool (*lower)(move_work *, isa_code *, const weave_run *, uint32_t i);
    bool (*jump_to)(move_work *, isa_code *, uint64_t target, bool was_short);
    /* What stands for a call that is made where it was, and for one that is made here but returns there. NULL: calls
     * cannot stay. */
    bool (*call_in_place)(move_work *, isa_code *, const isa_insn *);
    bool (*call_from_old)(move_work *, isa_code *, const isa_insn *);
    /* An instruction of a block without snippets whose operand does not reach the old place; NULL: all reach. False: it
     * cannot be. */
    bool (*copy_far)(isa_code *, const isa *, const isa_insn *);
    /* Must the weaver see it although nothing is inserted (it uses what Inlay keeps its own data in)? */
    bool (*needs_weaver)(const isa_insn *);

    /* --- which procedures move --- */
    /* The code wants to know where it is, and a call tells it. */
    bool (*asks_where)(const isa_insn *);
    /* Does code that is called take the address it would return to for one of data behind the call? NULL: where that is
     * in a register. */
    bool (*takes_return)(const uint8_t *bytes, size_t size);
    /* Is there, in a block's bytes, a comparison of the stack pointer with memory at a register that C code sets
     * before it uses it? That register, or -1. */
    int (*checks_stack)(const uint8_t *bytes, uint32_t size);
    /* Does a procedure of Go begin so, with a look at how far its stack goes? */
    bool (*checks_limit)(const uint8_t *bytes, uint32_t size);
    /* Does a procedure of Go begin so that its callers keep everything, flags too? NULL where checks_limit is. */
    bool (*keeps_everything)(const uint8_t *bytes, uint32_t size);
    /* Does a block ask where the piece of stack ends that it is on (-fsplit-stack)? NULL: no compiler's code does. */
    bool (*asks_piece)(const uint8_t *bytes, uint32_t size);
    /* Registers that C code keeps across calls and sets before it uses them; not the stack pointer's and the frame's.
     */
    isa_regs kept;

    /* --- jump tables --- */
    /* Can a copy of it stand in the new code? */
    bool (*table_fits)(const cfg_program *, const cfg_table *);
    /* The instruction at t->named_at names the table, in a way that can be re-aimed, and what it leaves in a
     * register serves only to read this table's entries and to add them; or the one only to read, and that at
     * t->added_at only to add. */
    bool (*names_table_only)(const cfg_program *, const cfg_table *);
    /* Of a table that several instructions name by their own operands: does this one, in `block`? *only: it does
     * nothing but load an entry of it, for an indirect jump that comes next. NULL: no table is named so. */
    bool (*names_table)(const cfg_program *, const cfg_table *, uint32_t block, const isa_insn *, bool *only);
    void (*reaim)(isa_insn *, const struct move_reaim *);

    /* --- who names entries of procedures (names.c); NULL find_name: nobody can be told --- */
    move_reloc (*reloc)(uint32_t type);
    /* Where, from `i` on, bytes may be an instruction that yields an address, and which; `size`: nowhere. */
    size_t (*find_name)(const uint8_t *bytes, size_t size, size_t i, uint64_t addr, uint64_t *named);
    /* Is it such an instruction, of the form that can be re-aimed? `at`: where its bytes were found, 0: anywhere. */
    bool (*is_name)(const isa_insn *, uint64_t at);
    void (*aim)(uint8_t *bytes, const isa_insn *, uint64_t target);
    /* Bytes of a mark at the begin of code that only says that indirect branches may lead here. */
    size_t (*mark_size)(const uint8_t *bytes, size_t size);
} move_isa;

/* The table of this build's own architecture, in <isa>/lower.c: the tool that goes with moved code is itself. */
extern const move_isa move_isa_here;

#endif
