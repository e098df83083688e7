/* Where moved code goes: a file that is written (src/elf), or a process that runs. The plan asks its target while it is
 * made, and is then handed to it in deltas, one a procedure, which can be put in and taken out by themselves, as often
 * as one likes and in any order.
 *
 *     move_plan_make(program, bias, target, client, &plan, &e);
 *     move_commit(plan, target, &e);                      all of it, for good
 *  or
 *     move_applied_begin(plan, target, &applied, &e);     nothing is in yet
 *     move_apply(applied, procs, count, &e);              these procedures run in their new place,
 *     move_take_back(applied, procs, count, &e);          and in their old one again
 *     move_applied_end(applied);
 *
 * A procedure that is in is entered through jumps over its old code (patches); branches of other new code lead to its
 * new code, and to its old code while it is out (links). Text that was placed stays, with its links as they must be,
 * when its procedure is taken out: a thread may still be in it. move_drop gives it up.
 *
 * Text is made for its address. What it refers to outside of the image (routines of the tool) is fixed, what it refers
 * to within is as far away wherever the image is loaded: a plan fits every process that has loaded the image at the
 * same distance from what it was planned for, and no other.
 *
 * Where a thread may stand in old code, or where code must come back one by one, no springboard may lie in it: it would
 * overwrite instructions that a thread is about to execute, or stay behind in a procedure that is whole again. So a
 * target says which old blocks may become anything. */
#ifndef INL_MOVE_TARGET_H
#define INL_MOVE_TARGET_H

#include "base/addr.h"
#include "cfg/program.h"

enum { MOVE_MOST_PATCH = 15 };

/* Bytes that become others. */
typedef struct move_patch {
    assumed_addr at;
    uint32_t proc; /* for whose sake */
    uint8_t size, now[MOVE_MOST_PATCH], before[MOVE_MOST_PATCH];
} move_patch;

/* A displacement that is filled in when all has its place: where it stands, and to which block of the program it
 * leads. */
typedef struct move_fixup {
    uint32_t at; /* in the plan's text */
    uint32_t block;
    uint32_t site; /* number of the branch in its procedure */
    uint8_t form;  /* of the instruction set, see isa.h */
    bool falls;    /* in: not to what is executed where a block begins (heads.c) */
} move_fixup;

/* What a plan has for one procedure. */
typedef struct move_delta {
    uint32_t proc;
    assumed_addr at;     /* of its new code, copies of its jump tables in front */
    const uint8_t *text; /* as it must be at this moment; valid during the call */
    size_t size;
    size_t first, last;        /* entries of the plan's map and states: from the first up to the last */
    const move_fixup *fixups;  /* of its text: branches to other procedures' new code */
    const move_patch *patches; /* over old code, ascending */
    const move_patch *links;   /* over new code that has been placed, and leads here: to its new place, or to the old */
    size_t fixup_count, patch_count, link_count;
} move_delta;

typedef struct move_target {
    void *arg;
    /* The program's bytes as they are there, from a link-time address on: how many. */
    size_t (*read)(void *arg, link_addr at, const uint8_t **bytes);
    /* Where new code can go, at the begin of a page, in reach of the program; 0: nowhere. */
    link_addr (*room)(void *arg);
    /* May the block's old bytes become anything, once all ways to it are caught? NULL: any block's may. Otherwise they
     * can still become the jump by which the block itself is caught. */
    bool (*may_overwrite)(void *arg, const cfg_program *, uint32_t block);
    /* Procedures come and go by themselves: each is caught wherever any other leads into it, since that one may be
     * out, and nothing outside of new code is to name new places. */
    bool one_by_one;
    /* Symbols and exception tables name old places for good: a procedure has one address, its old one, and exceptions
     * that find frames there land in old code. */
    bool outside_stays;
    /* Code in a segment that the program may write to is not surely what the file says: it stays. (What is in a section
     * to write to stays in any case.) */
    bool writable_stays;
    /* Frames on stacks will come back to old code: targets of branches are caught as well, where there is room. */
    bool has_frames;
    /* Is the procedure one that is executed before the tool is there? (What it calls is, too.) NULL: none is. */
    bool (*runs_before_tool)(void *arg, const cfg_program *, uint32_t proc);
    /* The text gets to its place; nothing leads there yet. NULL: the target takes plans as a whole, by move_commit, and
     * their text as it is there. */
    inl_status (*place)(void *arg, const move_delta *, inl_error *);
    /* The patches, each held against the bytes that were there before, and the links. What fails has changed nothing.
     */
    inl_status (*commit)(void *arg, const move_delta *, inl_error *);
    /* The bytes before over the patches, and the links; likewise. Threads may still be in the text. */
    inl_status (*take_back)(void *arg, const move_delta *, inl_error *);
} move_target;

struct move_plan;
struct inl_bytes;
/* All deltas of a plan, in the order of their places. What fails ends it. */
inl_status move_commit(const struct move_plan *, const move_target *, inl_error *);
/* Under --debug: does what the target has said of its old blocks hold for the plan's patches? Aborts if not. */
void move_debug_patches(const struct move_plan *, const move_target *);

/* What of a plan is in force in its target. The plan and the target outlive it; nobody else changes the plan's places
 * meanwhile. */
typedef struct move_applied move_applied;
inl_status move_applied_begin(const struct move_plan *, const move_target *, move_applied **out, inl_error *);
void move_applied_end(move_applied *);                     /* changes nothing in the target */
bool move_is_applied(const move_applied *, uint32_t proc); /* is it in? */
bool move_is_placed(const move_applied *, uint32_t proc);  /* is its text there? */
/* Procedures that have moved in the plan; who is in already is passed by. They count as one step: where they lead to
 * each other, a target in which something runs lets it wait, or is given them one by one. First all texts are placed,
 * then patches follow, procedure by procedure; where one fails, those before it are in and it and those behind it are
 * not. INL_ERR_UNSUPPORTED: the springboard of one would lie in another that is not in. */
inl_status move_apply(move_applied *, const uint32_t *procs, size_t count, inl_error *);
/* Who is out already is passed by. INL_ERR_UNSUPPORTED, and nothing has changed: a springboard of another that stays
 * lies in one's old code, or symbols hold its new address. */
inl_status move_take_back(move_applied *, const uint32_t *procs, size_t count, inl_error *);
/* The text of a procedure that is out, and that no thread is in, need not be kept. Links in it are forgotten. */
inl_status move_drop(move_applied *, uint32_t proc, inl_error *);

/* What carried.h says of the delta's instructions: as move_states_put, but its offsets count from the delta's text. */
void move_delta_put(const struct move_plan *, const move_delta *, assumed_addr low, struct inl_bytes *to);

#endif
