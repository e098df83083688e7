/* Where moved code goes: a file that is written (src/elf), or a process that runs. The plan asks its target while it is
 * made, and is then handed to it in deltas, one a procedure, each of which can be taken back by itself.
 *
 *     move_plan_make(program, bias, target, client, &plan, &e);
 *     move_commit(plan, target, &e);                      all of it
 *     move_take_back(plan, target, proc, &e);             one procedure runs in its old place again
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
    assumed_addr at; /* of its new code, copies of its jump tables in front */
    const uint8_t *text;
    size_t size;
    size_t first, last;        /* entries of the plan's map and states: from the first up to the last */
    const move_fixup *fixups;  /* of its text, that lead to other procedures' new code */
    const move_patch *patches; /* over old code, ascending */
    const move_patch *links;   /* over other new code that leads here: back to the old place (take_back only) */
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
    /* Is the procedure one that is executed before the tool is there? (What it calls is, too.) NULL: none is. */
    bool (*runs_before_tool)(void *arg, const cfg_program *, uint32_t proc);
    /* Text first, then the patches; each is held against the bytes that were there before. */
    inl_status (*commit)(void *arg, const move_delta *, inl_error *);
    /* The bytes before over the patches, then the links; then the text is not executed any more. */
    inl_status (*take_back)(void *arg, const move_delta *, inl_error *);
} move_target;

struct move_plan;
/* All deltas of a plan, in the order of their places. What fails ends it. */
inl_status move_commit(const struct move_plan *, const move_target *, inl_error *);
/* One procedure's, which has moved. INL_ERR_UNSUPPORTED where another's springboard lies in its old code. */
inl_status move_take_back(const struct move_plan *, const move_target *, uint32_t proc, inl_error *);

#endif
