/* What the files of the plan share.
 *
 *   plan.c      the order of work; layout of the new text
 *   choose.c    which procedures move, and where old code must be caught for them
 *   lookups.c   code whose return addresses something looks up stays; stretches.c: where no unwind table describes it
 *   calls.c     calls that stay in place, where return addresses must be the old ones
 *   sequences.c code whose addresses the kernel compares stays
 *   faults.c    what is not understood of their tables keeps them where they are
 *   catch.c     jumps over old code: room, springboards, the patches
 *   tables.c    jump tables: which are redirected, and their copies
 *   code.c      one procedure: decoding, its run, the order of its blocks, branches resolved
 *   blocks.c    blocks woven or copied, and where control goes on behind them
 *   heads.c     where blocks begin, and where control only falls in
 *   count.c     counts by constants, placed where they cost least
 *   names.c     procedures whose new code symbols may name
 *   map.c       old <-> new addresses; steps.c: how they are kept
 *   states.c    what is carried for signals; undo.c, records.c: of constant counts
 *   check.c     the result, read back
 *   delta.c     the result, in deltas; applied.c: which of them are in
 *   isa.h       what an instruction set must tell; <isa>/ does
 *
 * Addresses in the cfg are link-time addresses, in the plan assumed ones (link-time + bias).
 * New places are offsets from the beginning of the new text.
 */
#ifndef INL_MOVE_PLAN_H
#define INL_MOVE_PLAN_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "cfg/flow.h"
#include "isa/code.h"
#include "move/move.h"
#include "move/records.h"

enum { MOVE_ALIGNED = 16 }; /* where blocks are aligned that were */
enum { MOVE_NOWHERE = 0xffffffffu, MOVE_NO_SITE = MOVE_NOWHERE, MOVE_NO_FORM = 0xff };

struct move_isa;

enum {                         /* move_work.block_bits */
       MOVE_CATCH = 1,         /* the old code here becomes a jump to the new */
       MOVE_TABLE_KEPT = 2,    /* a table that was not redirected leads here */
       MOVE_FROM_LEFT = 4,     /* code that stays in place leads here by a direct jump */
       MOVE_TAIL_SEEN = 8,     /* some known direct jump from another procedure leads here, or an exception does */
       MOVE_PAD_LEFT = 16,     /* a landing pad of code that stays in place */
       MOVE_BRANCHED = 64,     /* old code that runs may come here, which is well if it goes on there */
       MOVE_SPLIT = 32,        /* some direct branch or call leads into one of its instructions */
       MOVE_BEHIND_CALL = 128, /* a call that stays in place returns here */
};

/* Flags of a procedure: it is something else than a jump is known to lead to its begin. */
enum { MOVE_WAYS_IN = CFG_PROC_IFUNC | CFG_PROC_ADDRESS_TAKEN | CFG_PROC_EXPORTED | CFG_PROC_CALLED };

enum { MOVE_WILL_LAND_OLD = 1, MOVE_LANDS_OLD = 2 }; /* move_work.lands_old: from the next round on; in this one */

/* A place of old code that is caught. */
typedef struct move_catch {
    uint32_t block;
    bool optional;  /* where there is no room it is left out */
    bool failed;    /* it is needed, and there is none */
    uint32_t room;  /* bytes of the jump that stands there, 0: there is none */
    uint64_t board; /* link-time address of its springboard, 0: the jump stands here itself */
} move_catch;

/* Re-aiming of an instruction that names a table. */
typedef struct move_reaim {
    uint64_t named_at; /* assumed */
    uint64_t old, now; /* the operand, and what it becomes (known when the procedure is placed) */
    uint32_t table;    /* of the cfg */
} move_reaim;

typedef struct move_name {
    uint64_t at;
    uint32_t table;
} move_name;

enum { MOVE_LONG = 0, MOVE_SHORT = 1, MOVE_PINNED = 2 /* long, a short one did not reach */ };

/* Counts of a block that are placed elsewhere: amount `weights[k]` belongs to its instruction k. */
typedef struct move_weights {
    struct move_weights *next; /* of another counter */
    uint32_t counter;
    int64_t *weights; /* NULL: this is an empty list's head */
} move_weights;

typedef struct move_work {
    move_plan plan; /* first: what the caller gets */
    const move_client *client;
    const struct move_isa *isa;
    uint8_t *block_bits;           /* per block of the cfg */
    uint32_t *new_at;              /* per block: offset of its new code, or MOVE_NOWHERE */
    uint8_t *redirected;           /* per table */
    INL_VEC(move_name) more_names; /* by table: of those that several instructions name */
    uint8_t *runs_early;           /* per procedure: before the tool; NULL: none does */
    uint8_t *looked_up;            /* per procedure: something looks its return addresses up (lookups.c) */
    uint8_t *calls_stay;           /* per procedure: its calls are made where they were (calls.c) */
    uint8_t *lands_old; /* per procedure: exceptions that find old code land there, and it goes on (catch.c) */
    uint32_t goes_back; /* the procedure by which Go's goroutines go on where they were interrupted, or CFG_NONE */
    INL_VEC(move_catch) catches;
    INL_VEC(move_fixup) far;    /* between procedures */
    INL_VEC(move_reaim) copies; /* of jump tables */
    uint32_t *first_table;      /* per procedure: its first redirected table, chained by next_table */
    uint32_t *next_table;
    INL_VEC(move_map_group) map_groups;
    INL_VEC(uint8_t) map_steps;
    move_map map_last;
    INL_VEC(move_state) states;
    INL_VEC(move_fault) faults;
    INL_VEC(move_inlined) inlined;
    INL_VEC(move_switch) switches;
    INL_VEC(move_run_counts) run_counts;
    move_counts_last counts_last;
    INL_VEC(uint8_t) counts;
    INL_VEC(move_placed) placed;
    INL_VEC(move_patch) patches;
    uint32_t *text_from; /* per procedure that has moved: where its part of the text begins */
    const move_target *target;
    size_t text_room;
    cfg_facts facts;
    bool instruments; /* the client may insert something */
    inl_error *error;

    /* The procedure in work (code.c). */
    uint32_t proc;
    weave_run run;
    move_weights *weights; /* per block: counts that follow from its flow; NULL: none do */
    cfg_live *live;        /* at each block's entry; NULL: not known */
    inl_arena arena;
    INL_VEC(move_fixup) near;
    INL_VEC(uint8_t) forms; /* per branch, in order of emission */
    INL_VEC(move_reaim) reaims;
    bool has_labels;             /* a fault's handler may know places in it: nothing is hidden from it */
    bool plain;                  /* nothing is inserted in it */
    bool hopes;                  /* ... or so little that branches mostly keep their forms */
    uint32_t sites;              /* branches emitted so far */
    uint32_t block;              /* in work */
    uint32_t base;               /* offset where the window of the block in work begins */
    uint64_t follows;            /* assumed address of the block that comes next in the new code; 0: none */
    size_t exit_begin, exit_end; /* window offsets of the last jump of exit_to, and where it goes */
    size_t exit_fix;
    uint64_t exit_target;
    bool exit_is_near, exit_is_far; /* in which list its fix-up is, if in any */
    inl_map bodies;                 /* block -> offset of its code behind its head, where that has code of its own */
    uint64_t head_of;               /* assumed address of a block whose head has just been emitted, or is; 0: none */
    uint32_t head_at;               /* where */
    bool in_head;
    size_t head_inlined, head_switches;
    size_t head_faults; /* of them on, faults are of runs that may be made again */
    uint8_t *preds;     /* per block: ways in from the procedure's own blocks, at most 255 */
    isa_code cold;      /* code out of line, behind the procedure's other code */
    uint32_t cold_base; /* where it begins in this pass; 0: there is none */
    bool bad_branch, unreached;
    bool no_room;
} move_work;

static inline const cfg_program *move_cfg(const move_work *w) { return w->plan.cfg; }
static inline uint64_t move_assumed(const move_work *w, uint64_t link) { return link + w->plan.bias; }
static inline bool move_is_moved(const move_work *w, uint32_t proc)
{
    return w->plan.procs[proc].how <= MOVE_MOVED_QUIETLY;
}

/* choose.c */
bool move_choose(move_work *);
/* lookups.c: why new return addresses would not be found, of all code or of a procedure; NULL: they may be new. */
bool move_find_lookups(move_work *);
const char *move_lookups_of_image(image *);
const char *move_lookups_of_proc(move_work *, uint32_t proc);
/* Does what is behind the block's call compare where it has come back to? */
bool move_compares_return(const cfg_program *, const cfg_block *);
/* Is it Go's? `reason`: of move_lookups_of_image. */
bool move_is_go(const char *reason);
/* calls.c: can this architecture's? why a procedure of Go does not move; NULL: it does, and its calls may stay. */
bool move_calls_can_stay(const move_work *);
const char *move_refuse_compiled(move_work *, uint32_t proc);
/* Of a program of Go; CFG_NONE: none of it can move. And its return: by the client's routine. False: no memory. */
uint32_t move_find_return(const move_work *);
bool move_return_anywhere(move_work *);
/* Marks what is behind calls that stay. Once it is known what is caught: so many bytes at the block's end must stay. */
void move_mark_returns(move_work *);
uint32_t move_bytes_that_stay(const move_work *, uint32_t block);
/* Is the instruction, of the procedure in work, such a call? And a control transfer of the run in its new place. */
bool move_call_stays(const move_work *, const isa_insn *);
bool move_lower(move_work *, isa_code *, const weave_run *, uint32_t i);
/* stretches.c: marks procedures in code that nothing describes and that seems made by other tools. False: no memory. */
bool move_judge_stretches(move_work *, uint8_t mark);
/* fenced.c: procedures between fences of traps are marked. */
void move_find_fenced(const move_work *, uint8_t *marks, uint8_t with);
/* sleds.c: procedures that the program writes calls into. */
void move_find_sleds(const move_work *, uint8_t *marks, uint8_t with);
/* copied.c: code that the program copies. False: no memory. */
bool move_find_copied(const move_work *, uint8_t *marks, uint8_t with);
isa_regs move_relied_on(const move_work *, uint32_t proc);
isa_regs move_relied_on_at_once(const move_work *, uint32_t proc);
void move_leave(move_work *, uint32_t proc, const char *reason);
/* The block's last instruction. False: its bytes do not decode. */
bool move_last_insn(const cfg_program *, const cfg_block *, isa_insn *);
bool move_catch_is_needed(const move_work *, uint32_t block);
/* May old code of the procedure run, so that it has to stay whole but for jumps to new code? */
bool move_old_may_run(const move_work *, uint32_t proc);
/* faults.c: false: no memory. */
bool move_leave_faulty(move_work *);
/* sequences.c */
void move_leave_sequences(move_work *);
/* catch.c: finds room for a jump at each place; false when some procedure had to be left alone for want
 * of it, so that the choice has to be made again (or memory ran out: w->no_room). */
bool move_catch_all(move_work *);
bool move_make_patches(move_work *);
/* tables.c */
void move_pick_tables(move_work *);
bool move_redirects(const move_work *, const cfg_table *);
void move_chain_tables(move_work *);
bool move_place_tables(move_work *);
/* After the client has seen the run. False: no memory, or no counter is left. */
bool move_place_counts(move_work *);
bool move_fill_tables(move_work *);
/* The entry of a table's copy that leads to an assumed address. False: it does not reach. */
bool move_table_entry(const move_work *, const move_reaim *, uint64_t target, uint8_t *bytes);
/* names.c: who may name the new code; when everything has its place */
bool move_find_names(move_work *);
/* code.c */
inl_status move_proc_code(move_work *, uint32_t proc);
inl_status move_decode_block(move_work *, const cfg_block *, weave_insn *to, uint32_t index);
bool move_text_reserve(move_work *, size_t bytes);
/* A direct branch: the fix-up for the displacement just emitted. */
bool move_note_branch(move_work *, uint64_t target, size_t at, unsigned form, uint32_t site);
/* Is the next branch to have this short form? Its distance would count from `from`. *site is its number. */
bool move_branch_is_short(move_work *, uint64_t target, size_t from, unsigned form, bool was_short, uint32_t *site);
/* Fills in a displacement of the new text; false: it does not reach. */
bool move_link(move_work *, uint32_t at, unsigned form, uint64_t target);
/* heads.c: of the cfg's block; instructions to be looked at behind a procedure, and their decoding */
bool move_is_fallen_into(const move_work *, uint32_t block);
uint32_t move_behind(const move_work *, uint32_t proc);
inl_status move_look_behind(move_work *);
/* After the client has seen the run: counts at heads become counts in blocks. False: no memory. Then: has block k
 * of the run code of its own for its head; that code as a run. */
bool move_settle_heads(move_work *);
bool move_has_head(const move_work *, uint32_t k);
bool move_head_run(move_work *, uint32_t k, weave_run *);
uint32_t move_fix_target(const move_work *, const move_fixup *); /* offset in the new text */
/* map.c */
bool move_map_add(move_work *, uint64_t old, uint32_t at, uint32_t code_at);
/* What weaving has left for the last run, whose code begins at w->base. And of it, the loads that may fault, where
 * the instructions are those that will be added next. */
bool move_map_faults(move_work *, const weave_output *, uint32_t count); /* and inlined routines', and switches */
void move_sort_inlined(move_work *);
bool move_map_woven(move_work *, const weave_output *, uint32_t count, uint32_t k, uint32_t blocks);
/* undo.c: the constant counts of blocks [k, k + blocks) of the procedure, which stand together from entry `first` of
 * the map on, for those that leave them in the middle; `out`: NULL where they were copied. */
bool move_note_counts(move_work *, const weave_output *, uint32_t first, uint32_t k, uint32_t blocks);
void move_counts_cut(move_work *, size_t count); /* of runs that begin behind so many entries */
void move_counts_put(const move_plan *, move_carried_states *head, size_t at, struct inl_bytes *to);
void move_counts_put_part(const move_plan *, const move_delta *, move_carried_states *head, size_t at,
                          struct inl_bytes *to);
void move_map_cut(move_work *, size_t count); /* the first `count` entries stay */
/* blocks.c: the block in work, instructions [first, first + count) of the run, to the end of the text. INL_ERR_RANGE:
 * it does not fit its room. */
inl_status move_copy_block(move_work *, uint32_t first, uint32_t count, inl_error *);
/* Blocks [k, k + blocks) of the run, each falling into the next, which has no other way in; w->block is the
 * last of them. Where it fails for want of room, w->cold.full tells which. */
inl_status move_weave_blocks(move_work *, uint32_t k, uint32_t blocks, inl_error *);
/* What block k's head has code of its own for. */
inl_status move_weave_head(move_work *, uint32_t k, inl_error *);
bool move_pad(move_work *, uint32_t bytes);
/* Offset in the new text of what comes next, and of a place in a window. The instruction as it is at its new place. */
size_t move_here(const move_work *, const isa_code *);
size_t move_place(const move_work *, const isa_code *, size_t at);
bool move_copied(isa_code *, const isa *, const isa_insn *);

/* Reads the finished plan back and compares it with the map: branches lead to instructions, table
 * entries likewise, patches lie in moved code. INL_ERR_FORMAT with the place when they do not. */
inl_status move_plan_check(const move_plan *, inl_error *);

#endif
