/* Liveness of registers and flags over the blocks of a procedure.
 *
 * liveness.h answers for one straight line; here its answers are carried backward along the edges of a
 * procedure until they stand still. What is wanted where control leaves the procedure is assumed in
 * favour of the program: at calls, returns, tail calls and unknown jumps every general register is
 * live. A flag is dead there when nobody in the whole image looks at it: no block behind a call and no
 * procedure's entry reads it before it is written (cfg_facts_find proves or refutes it, once an
 * image, each flag by itself). Vector state is not followed: nothing here ever calls it dead.
 *
 *     cfg_facts facts;
 *     cfg_facts_find(program, &facts);
 *     cfg_flow_code code = {.first = &insns[0], .stride = sizeof insns[0]};
 *     cfg_live *at = cfg_flow_solve(program, &facts, proc, &code, &arena); // one a block, NULL: no memory
 */
#ifndef INL_CFG_FLOW_H
#define INL_CFG_FLOW_H

#include "base/arena.h"
#include "cfg/liveness.h"
#include "cfg/program.h"

typedef struct cfg_facts {
    uint32_t flags_at_entry;   /* that some procedure looks at when it is entered */
    uint32_t flags_at_outside; /* ... when it is entered in the middle, by a jump from another one */
    uint32_t flags_at_return;  /* that code behind some call looks at; both hold the direction flag */
} cfg_facts;

/* False: memory ran out, and both facts are set to be safe. */
bool cfg_facts_find(const cfg_program *, cfg_facts *);

/* A procedure's instructions: those of its blocks, one block after the other. What is inserted among
 * them may read registers too: `before` (each instruction) and `after` say so; NULL where nothing is. */
typedef struct cfg_flow_code {
    const isa_insn *first;
    size_t stride;
    const cfg_need *before, *after;
} cfg_flow_code;

/* What is live and seen at the entry of each of the procedure's blocks. */
cfg_live *cfg_flow_solve(const cfg_program *, const cfg_facts *, uint32_t proc, const cfg_flow_code *, inl_arena *);

/* What is wanted where the procedure is left: at a call, a return, another procedure's entry. */
cfg_need cfg_flow_at_call(const cfg_facts *);
cfg_need cfg_flow_at_return(const cfg_facts *);
/* At a block (CFG_NONE: unknown code) that another procedure jumps to. */
cfg_need cfg_flow_at_block(const cfg_program *, const cfg_facts *, uint32_t block);

#endif
