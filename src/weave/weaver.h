/* The weaver's own state, shared by its files. Order of the pipeline:
 *
 *   weave.c    weave_compile: the fast path (no snippets) and the main loop of the other
 *   points.c   what each point reads, liveness, what an instruction does to the weaver's state
 *   count.c    constant counts: grouped, positioned, emitted
 *   alloc.c    registers and flags: who holds what, spills, restores, temporaries
 *   expr.c, arith.c, cond.c, insnval.c, elements.c   the expression compiler
 *   call.c, clobber.c, append.c   analysis routines and buffers
 *   ahead.c, known.c   records of a whole stretch, and what scratch registers still hold
 *   body.c, fold.c, inline.c, copied.c   small routines in place of their calls
 *   place.c    operands of the program's instructions whose addresses snippets set
 *   copy.c     the program's own instructions, moved
 *
 * None of them knows an instruction set: that stands behind the table of isa.h.
 *
 * Where a register's program value is, is told by two bits: in_reg (the register itself holds it)
 * and in_slot (its frame slot does). Both may be set. Neither: the value is dead and gone. A
 * register without in_reg is junk, free for the taking unless it is locked by a pending value. The
 * flags have the same two bits.
 */
#ifndef INL_WEAVE_WEAVER_H
#define INL_WEAVE_WEAVER_H

#include "weave/buffer.h"
#include "weave/isa.h"

typedef struct weave_state {
    isa_regs in_reg, in_slot;
    bool flags_hw, flags_slot;
} weave_state;

typedef enum weave_val_kind {
    WEAVE_IMM,  /* a constant */
    WEAVE_REG,  /* a scratch register of our own */
    WEAVE_PROG, /* read only: a register of the program that holds its own value, or one of a variable */
    WEAVE_TEMP, /* parked in a frame temporary */
} weave_val_kind;
struct weave_val {
    uint8_t kind, reg, temp;
    uint64_t imm;
};

/* Values that an after-snippet needs from before its instruction: the address of an operand (for a
 * SNIPPET_EA and for a SNIPPET_MEM_VALUE), or a REP's count or predicate. */
typedef struct weave_saved {
    uint8_t kind, temp;
    uint32_t index;
    uint64_t value;
} weave_saved;
enum { WEAVE_MAX_SAVED = 8 };

/* What a scratch register holds (known.c). */
typedef enum weave_held_kind { WEAVE_HELD_CONSTANT, WEAVE_HELD_NEXT, WEAVE_HELD_ADDRESS } weave_held_kind;
typedef struct weave_held {
    uint8_t kind, base, index, scale;
    uint32_t since;
    uint64_t value; /* the constant; the buffer's slot; the displacement */
} weave_held;

/* A look whether a buffer has room for a whole stretch, in front of instruction `position`. */
typedef struct weave_look {
    uint32_t position;
    const snippet_buffer *buffer;
} weave_look;

typedef struct weave_cold weave_cold; /* out-of-line code, emitted behind the run (append.c) */
enum { WEAVE_MAX_TERMS = 16 };
typedef struct weave_add {
    uint32_t counter, position;
    int64_t amount;
} weave_add;
typedef struct weave_arm weave_arm;   /* likewise, of an inlined routine (inline.c) */
typedef struct weave_side weave_side; /* a side exit that restores out of line (weave.c) */

struct weaver {
    const weave_isa *isa;
    const weave_run *run;
    const weave_engine *engine;
    const weave_options *opt;
    isa_code *c;
    weave_output *out;
    inl_status status; /* the first failure */
    const char *why;
    uint32_t rng;

    weave_state st;
    uint8_t lock[WEAVE_MAX_REGS]; /* pending values in each, */
    isa_regs locked;              /* and where that is not 0 */
    uint32_t temps;               /* frame temporaries in use */

    weave_fx *fx;   /* of each instruction */
    cfg_live *live; /* of each step */
    uint32_t *step; /* instruction's own step; its before-snippets' is step_in[i] <= step[i] */
    uint32_t *step_in;
    uint32_t *anywhere_at; /* per block: instruction before which its other anywhere code goes */

    /* The point being compiled. */
    uint32_t at;           /* instruction */
    bool after;            /* behind it */
    cfg_need need, living; /* seen or live, and live only, during this point */
    weave_saved saved[WEAVE_MAX_SAVED];
    unsigned saved_count;
    uint8_t placed; /* place.c: operands of the instruction at hand whose addresses are in temporaries, a bit each */
    struct weave_local {
        uint32_t index;
        uint8_t temp, reg;        /* where it is: in the register, where that is one */
    } locals[SNIPPET_MAX_LOCALS]; /* in sight, the innermost last */
    unsigned local_count;
    const struct weave_loop *loop; /* the innermost (cond.c) */
    unsigned conditional;          /* arms and loops around: what is emitted may not be executed */
    bool sets_regs;                /* the snippet assigns to program registers: values must be copied */
    unsigned depth;                /* of analysis calls whose arguments are being computed */
    weave_add *adds;               /* of constants to counters, ascending by position */
    uint32_t add_count, next_add;  /* the first that is still to be emitted */
    uint32_t chain;                /* count.c: first record of the chain being planned */
    uint32_t add_room, count_room, fault_room, inlined_room, switch_room;
    weave_cold *cold, **cold_end;
    weave_arm *arms;
    struct weave_later *later, **later_end;
    bool out_of_line; /* an inlined routine's arm is being written there */
    isa_code *main;   /* while code out of line goes elsewhere: the run's own */
    weave_side *sides, **sides_end;

    uint8_t *ahead; /* append.c: for each instruction, how many records its before-snippets append ahead; NULL: none */
    weave_look *looks; /* ascending by position */
    uint32_t look_count, next_look;
    /* Of each buffer, since the run began: bytes of records; what `next` has got of them; that when it was in the
       register of which WEAVE_HELD_NEXT is known. */
    int64_t *due, *added, *pointed;
    uint32_t *ahead_sum, ahead_room; /* records in front of each instruction, and how many a chain may have */
    weave_held known[WEAVE_MAX_REGS];
    isa_regs known_regs; /* of which something is known */
    uint32_t known_clock;
};

static inline const weave_insn *weave_here(const weaver *w) { return &w->run->insns[w->at]; }

/* Keeps the first failure; code emitted after it is thrown away. */
void weave_fail(weaver *, inl_status, const char *why);

/* alloc.c */
unsigned weave_take(weaver *, isa_regs avoid, unsigned hint); /* locked; hint may be ISA_NO_REG */
void weave_claim(weaver *, unsigned reg);                     /* make junk of it, saving its value when needed */
void weave_lock(weaver *, unsigned reg);
void weave_unlock(weaver *, unsigned reg);
void weave_to_slot(weaver *, unsigned reg); /* its value is in the slot afterwards */
void weave_to_reg(weaver *, unsigned reg);
void weave_flags_clobber(weaver *);    /* before code that changes arithmetic flags */
bool weave_flags_free(const weaver *); /* they could be changed at no cost */
void weave_flags_to_hw(weaver *);
unsigned weave_temp_take(weaver *);
void weave_temp_drop(weaver *, unsigned temp);
static inline int32_t weave_temp_at(const weaver *w, unsigned t) { return w->isa->frame.temp + 8 * (int32_t)t; }
static inline int32_t weave_slot_at(const weaver *w, unsigned reg) { return w->isa->frame.slot + 8 * (int32_t)reg; }
static inline void weave_temp_store(weaver *w, unsigned t, unsigned reg)
{
    w->isa->frame_store(w, weave_temp_at(w, t), reg);
}
static inline void weave_temp_load(weaver *w, unsigned reg, unsigned t)
{
    w->isa->frame_load(w, reg, weave_temp_at(w, t));
}
static inline void weave_slot_store(weaver *w, unsigned reg) { w->isa->frame_store(w, weave_slot_at(w, reg), reg); }
static inline void weave_slot_load(weaver *w, unsigned into, unsigned reg)
{
    w->isa->frame_load(w, into, weave_slot_at(w, reg));
}
/* A register that certain instructions insist on, whatever is in it now. */
struct weave_fixed {
    uint8_t reg, temp;
};
weave_fixed weave_fixed_begin(weaver *, unsigned reg);
void weave_fixed_end(weaver *, weave_fixed);
/* Leaves the conditional code that began in state `from`: everything is back where it was. */
void weave_arm_end(weaver *, weave_state from);
weave_state weave_meet(weave_state a, weave_state b);

/* expr.c: values */
weave_val weave_eval(weaver *, const snippet *, unsigned hint);
void weave_run_for_effect(weaver *, const snippet *);
void weave_drop(weaver *, weave_val);
void weave_in_reg(weaver *, weave_val *, isa_regs avoid);             /* some register holds it */
void weave_own(weaver *, weave_val *, isa_regs avoid, unsigned hint); /* one of our own holds it */
void weave_into(weaver *, weave_val *, unsigned reg);                 /* exactly this one, claimed and owned */
void weave_park(weaver *, weave_val *);                               /* when registers run short */
weave_val weave_reg_value(weaver *, unsigned reg, unsigned hint);
weave_val weave_load(weaver *, weave_val at, int32_t disp, unsigned size, bool is_signed, unsigned hint);
static inline weave_val weave_imm(uint64_t v) { return (weave_val){WEAVE_IMM, 0, 0, v}; }
static inline weave_val weave_owned(unsigned reg) { return (weave_val){WEAVE_REG, (uint8_t)reg, 0, 0}; }
/* arith.c */
weave_val weave_binary(weaver *, const snippet *, unsigned hint);
weave_val weave_unary(weaver *, const snippet *, unsigned hint);
weave_val weave_compare(weaver *, const snippet *, unsigned hint);
unsigned weave_compare_emit(weaver *, const snippet *);         /* flags set; the condition */
weave_val weave_set_if(weaver *, unsigned cond, unsigned hint); /* 0 or 1; the flags stay */
bool weave_is_compare(unsigned op);
/* cond.c */
weave_val weave_if(weaver *, const snippet *, unsigned hint);
void weave_if_for_effect(weaver *, const snippet *);
void weave_while(weaver *, const snippet *);
void weave_break(weaver *);
/* The value is that of the body. */
weave_val weave_let(weaver *, const snippet *, bool wanted, unsigned hint);
weave_val weave_local(weaver *, const snippet *, unsigned hint);
void weave_set_local(weaver *, const snippet *);
isa_label weave_jump_unless(weaver *, const snippet *cond);
void weave_predicated(weaver *, const snippet *code); /* only when the instruction executes */
/* insnval.c: what depends on the point's instruction */
extern const snippet weave_executes_node;
const weave_saved *weave_saved_find(const weaver *, const snippet *);
bool weave_saved_value(weaver *, const snippet *, unsigned hint, weave_val *);
weave_val weave_ea(weaver *, unsigned index, unsigned hint);
weave_val weave_address_of(weaver *, const isa_mem *, unsigned hint);
weave_val weave_access_size(weaver *, unsigned index);
/* A load that may fault as the instruction itself would: its state is put on record. */
weave_val weave_load_program(weaver *, weave_val at, int32_t offset, unsigned size, unsigned hint);
weave_val weave_mem_value(weaver *, const snippet *, unsigned hint);
weave_val weave_target(weaver *, unsigned hint);
weave_val weave_taken(weaver *, unsigned hint);
weave_val weave_executes(weaver *, unsigned hint);
weave_val weave_rep_count(weaver *, unsigned hint);
weave_val weave_arg(weaver *, const snippet *, unsigned hint);
/* Puts on record that code from offset `from` to here has the program's state of instruction index */
void weave_note_state(weaver *, uint32_t from, uint32_t index, weave_state);
bool weave_ea_needs_before(const weaver *, const snippet *);
const isa_mem *weave_mem(const weaver *, unsigned index, isa_mem room[ISA_MAX_MEM]);
/* place.c: operands whose addresses snippets set */
void weave_place_begin(weaver *, uint32_t insn); /* before its first snippet */
void weave_place_set(weaver *, const snippet *);
/* Is the operand's address in a temporary? Then in *temp. */
bool weave_is_placed(const weaver *, const isa_mem *, unsigned *temp);
void weave_place_end(weaver *); /* behind its last */
/* elements.c: of masked operands */
void weave_save_elements(weaver *, uint32_t insn); /* before its first snippet */
weave_val weave_element_ea(weaver *, const snippet *, unsigned hint);
weave_val weave_element_active(weaver *, const snippet *, unsigned hint);
int weave_element_cond(weaver *, const snippet *); /* flags set; the condition; -1: always */
/* points.c */
bool weave_analyse(weaver *);
/* A routine's instruction is about to be written at the present place (inline.c). */
void weave_note_inlined(weaver *, const isa_insn *);
cfg_need weave_wanted_at(const weaver *, uint64_t target); /* where control leaves for it */
cfg_need weave_wanted_taken(const weaver *w, const weave_insn *insn);
cfg_need weave_reads(const weaver *, const snippet *, const weave_insn *);
void weave_set_point(weaver *, uint32_t insn, bool after);
void weave_prepare(weaver *, uint32_t insn); /* restores what the instruction needs */
/* A conditional branch may leave its restores to its taken side. */
bool weave_prepare_side(weaver *, uint32_t insn);
void weave_executed(weaver *, uint32_t insn);                    /* the instruction's effect on the state */
void weave_restore_all(weaver *);                                /* before control leaves */
isa_regs weave_parks(const weaver *, uint32_t i, isa_regs held); /* what need not be in registers then */
/* later.c: where the weaver was, for what is written out of line when the run itself has been written */
typedef struct weave_spot {
    weave_state st;
    uint8_t lock[WEAVE_MAX_REGS];
    isa_regs locked;
    uint32_t temps, at;
    bool after;
    uint8_t placed;
    cfg_need need, living;
} weave_spot;
weave_spot weave_spot_of(const weaver *);
void weave_spot_return(weaver *, const weave_spot *);
typedef struct weave_later weave_later;
struct weave_later {
    weave_later *next;
    const snippet *code;
    isa_label from;
    uint64_t back; /* where control goes on behind it: the caller's to say */
    weave_spot spot;
    struct weave_local locals[SNIPPET_MAX_LOCALS];
    weave_saved saved[WEAVE_MAX_SAVED];
    unsigned local_count, saved_count, conditional;
};
/* `code` in the present state, where the jump leads; NULL: it has failed. */
weave_later *weave_put_later(weaver *, const snippet *code, isa_label from);
void weave_emit_later(weaver *);
/* joint.c: several counters counted by one addition */
typedef struct weave_terms {
    uint32_t count;
    weave_term of[WEAVE_MAX_TERMS];
} weave_terms;
/* False: there are too many of them. */
bool weave_terms_add(weave_terms *, uint32_t counter, int64_t amount);
uint32_t weave_joint(const weaver *, const weave_terms *); /* 0: none */
/* Do the snippets of a branch's taken edge nothing but count by constants, which a side exit does with its own counts?
 */
bool weave_taken_joins(const weaver *, const weave_insn *);
/* Must counters be set right when side exit `insn` is taken? Sets them right, and counts what joins. */
bool weave_side_counts(const weaver *, uint32_t insn);
void weave_emit_side_counts(weaver *, uint32_t insn);
/* count.c */
bool weave_plan_counts(weaver *);
void weave_emit_counts(weaver *, uint32_t insn);
void weave_emit_anywhere(weaver *, uint32_t insn);
bool weave_is_const_count(const weave_insert *);
void weave_count_aside(weaver *, uint32_t counter, int64_t amount); /* where it is seldom counted */
bool weave_count_merged(const weaver *, uint32_t insn, const weave_insert *);
void weave_count_add(weaver *, const snippet *);
void weave_count_const(weaver *, uint32_t counter, int64_t amount);
/* call.c: a call, for both halves of it */
struct weave_call_plan {
    const snippet *s;
    const weave_routine *routine;
    isa_regs clobbered;
    bool whole, tls, fp, flags, far; /* saved: all vectors, the thread pointer, the floating-point environment, flags
                                        that arithmetic does not change; the routine is out of a call's reach */
    isa_regs refs;                   /* registers handed over by reference */
    const snippet *ints[SNIPPET_MAX_PASSED]; /* arguments in general registers and on the stack */
    uint8_t vecs[8];                         /* vector registers that go to the first ones, */
    const snippet *reals[8];                 /* or else what is computed, */
    uint8_t real_temp[8];                    /* and where it waits */
    unsigned int_count, vec_count;
    uint32_t vec_saved; /* vector registers that are saved one by one */
    uint8_t outer_lock[WEAVE_MAX_REGS], outer_temp[WEAVE_MAX_REGS];
    isa_regs outer, outer_prog; /* pending values kept over the call, and those in_reg */
    uint8_t stack_temp[SNIPPET_MAX_PASSED];
    unsigned stack_args, fp_temp;
};
weave_val weave_call(weaver *, const snippet *, bool wanted);
/* append.c */
void weave_append(weaver *, const snippet *);
void weave_append_cold(weaver *, const snippet_buffer *, unsigned reg, isa_label from); /* reg := `next`, emptied */
/* ahead.c; false: no memory */
bool weave_ahead_begin(weaver *); /* before counts are planned */
bool weave_ahead_look(weaver *, uint32_t slot, uint32_t chain, uint32_t first, bool alone);
bool weave_ahead_is_full(const weaver *, uint32_t first, uint32_t insn); /* a chain can hold no more there */
void weave_ahead_emit_looks(weaver *, uint32_t insn);
void weave_ahead_append(weaver *, const snippet *);
void weave_ahead_advance(weaver *, uint32_t slot, int64_t bytes); /* `next` gets what is due */
static inline int32_t weave_next_at(const weaver *w, uint32_t counter)
{
    return w->isa->frame.buffers + (int32_t)((counter - WEAVE_NEXT_OF) * sizeof(weave_buffer_slot));
}
/* known.c */
void weave_forget(weaver *);
void weave_forget_reg(weaver *, unsigned reg);
void weave_forget_written(weaver *, isa_regs); /* by the program */
void weave_remember(weaver *, unsigned reg, weave_held);
unsigned weave_recall(weaver *, const weave_held *);                              /* or ISA_NO_REG */
unsigned weave_recall_near(const weaver *, uint64_t constant, int32_t *distance); /* likewise */
unsigned weave_longest_known(const weaver *, isa_regs set);
void weave_bind_cold(weaver *, isa_label); /* of the run's code, to here in the code out of line */
void weave_emit_cold(weaver *);
/* copy.c */
bool weave_copy_plain(weaver *, const weave_insn *, weave_map_entry *); /* without allocator */
bool weave_copy(weaver *, uint32_t insn, weave_map_entry *);

/* clobber.c */
isa_result weave_decode_at(uint64_t at, isa_insn *in); /* of this process' own code, past no page it need not touch */
struct weave_routine {
    isa_regs regs; /* caller-saved registers it writes */
    uint32_t vecs; /* vector registers it writes */
    bool flags;
    bool unknown;            /* or x87, masks, whole vector state: save everything */
    bool tls;                /* reaches for FS */
    bool fp;                 /* computes with floating point */
    bool modes;              /* cares about flags that arithmetic leaves alone */
    uint32_t inline_len;     /* bytes when it is a small leaf that can be copied, else 0 */
    uint32_t body_len;       /* the same, where it may return and jump in the middle too */
    struct weave_body *body; /* taken apart for that (body.h), or NULL */
};
/* inline.c: the routine's body in place of a call, written anew; false: it cannot be */
bool weave_inline(weaver *, const snippet *, const weave_routine *, bool wanted, weave_val *result);
void weave_emit_arms(weaver *); /* that were put off, behind the run's end */
/* copied.c: likewise, the instructions as they are, with the ABI's registers */
bool weave_inline_copied(weaver *, const snippet *, const weave_routine *, bool wanted, weave_val *result);
/* What calling `fn` may change; kept for the next time. NULL when memory is used up. */
const weave_routine *weave_routine_of(void (*fn)(void));

#endif
