/* A run: a sequence of instructions with the snippets inserted at their points. What every engine
 * builds, what the tool's callbacks look at, and what the weaver turns into machine code.
 *
 * The JIT's runs are superblocks: blocks laid end to end, each falling through into the next, with
 * side exits. Instructions of one run are contiguous in memory within a block; a block may start
 * elsewhere when the engine followed a direct jump.
 * Everything in a run is allocated from `arena` and dies with it.
 */
#ifndef INL_WEAVE_RUN_H
#define INL_WEAVE_RUN_H

#include "base/arena.h"
#include "isa/isa.h"
#include "snippet/snippet.h"

typedef struct weave_insert {
    struct weave_insert *next; /* in order of insertion */
    const snippet *code;
    bool predicated; /* only when the instruction really executes */
} weave_insert;

typedef struct weave_list {
    weave_insert *first, *last;
} weave_list;

typedef enum weave_where {
    WEAVE_BEFORE,   /* an instruction */
    WEAVE_AFTER,    /* an instruction that falls through */
    WEAVE_TAKEN,    /* the taken edge of a branch */
    WEAVE_ANYWHERE, /* once per execution of the block, where it is cheapest; index is the block */
    WEAVE_HEAD,     /* where a block begins, not where control falls in; for engines that cut blocks (below) */
} weave_where;

typedef struct weave_insn {
    isa_insn in; /* first member: an instruction handle is also an isa_insn pointer */
    struct weave_run *run;
    uint32_t index, block;
    weave_list before, after, taken;
    uint8_t elided;    /* a direct jump that the run follows: no code, snippets still woven */
    uint8_t placed;    /* runs without its before-snippets, which have run and have set its operands' addresses */
    uint8_t was_call;  /* a call that is replaced: arguments are where the call would find them */
    uint8_t guarded;   /* falls through, and the engine has code around it: weave_engine.guard */
    isa_regs unwanted; /* of a return: registers that no caller counts on, where an engine asks */
} weave_insn;

typedef struct weave_block {
    struct weave_run *run;
    uint32_t first, count; /* into run->insns; count >= 1 */
    bool head;             /* control enters here otherwise than by falling out of a run that
                              was cut for length: a real basic-block head */
    bool fallen_into;      /* control also comes here by falling out of the block in front, which ends
                              here only because something leads here: that one's execution goes on. See
                              `block` in docs/glossary.md. The JIT's never are */
    weave_list anywhere;
    weave_list entry; /* WEAVE_HEAD, of one that is fallen into: the engine's affair */
} weave_block;

typedef struct weave_run {
    const isa *isa;
    inl_arena *arena;
    weave_insn *insns;
    weave_block *blocks;
    uint32_t insn_count, block_count;
    uint32_t behind;     /* instructions behind the last one, to look at: control falls out of the run
                            into them, and its last block goes on there */
    void *engine;        /* the engine's own */
    void *view;          /* of a run that only shows code (tool/code.c): not NULL */
    weave_insert *spare; /* were removed, and can be had again */
} weave_run;

/* Adds a snippet; NULL when memory is used up or the point cannot be (why is set to a static text:
 * "after" an instruction that does not fall through, "taken" of a non-branch ...). `code` must be
 * simplified and checked already. */
weave_insert *weave_insert_at(weave_run *, weave_where, uint32_t index, const snippet *code, bool predicated,
                              const char **why);
weave_list *weave_list_at(weave_run *, weave_where, uint32_t index); /* of a point that there is */
bool weave_remove(weave_list *, const weave_insert *);               /* false: it is not in it */
void weave_put_first(weave_list *, weave_insert *);                  /* one that is in the list */
/* Why the address of a memory operand cannot be set (SNIPPET_SET_EA); NULL: it can. */
const char *weave_setting_fault(const isa *, const isa_insn *, const isa_mem *);
uint32_t weave_list_length(const weave_list *);
uint32_t weave_insn_length(const weave_insn *); /* of all its lists */
/* Takes away what could not be woven of so many blocks from block `first` on: the snippets of the instruction at `at`,
 * or of all where it has none, or those of the blocks. How many these were. */
uint32_t weave_give_up(weave_run *, uint32_t first, uint32_t blocks, uint64_t at);

#endif
