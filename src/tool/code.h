/* The static view of code: what its files share (code.c, code_edges.c, code_inserts.c). */
#ifndef INL_TOOL_CODE_H
#define INL_TOOL_CODE_H

#include "tool/rewriter.h"
#include "base/map.h"

typedef struct code_dominance code_dominance;
typedef struct code_view { /* of a procedure */
    weave_run run;         /* run.view points here */
    struct tool_code *code;
    inlay_proc *proc;
    uint32_t first;           /* block, in the analysis */
    struct inlay_loop *loops; /* once asked for (loops.c), those around others first */
    bool loops_found;
    code_dominance *dominance; /* likewise (dominators.c) */
} code_view;

typedef struct tool_code {
    cfg_program *cfg; /* NULL: could not be analysed */
    inlay_image *image;
    inl_arena arena;
    code_view **views; /* by procedure index */
    inl_map inserts;   /* address -> weave_insn, of instructions with something in their lists */
    inl_map replaced;  /* address of a procedure -> its result */
    uint32_t *touched; /* by procedure of the analysis: so much was inserted there, or it is replaced */
} tool_code;

tool_code *code_of(inlay_image *); /* analysed now, if it was not; NULL: no memory, or no file */
static inline code_view *code_view_behind(const weave_run *run) { return run->view; }
/* The analysis's block; NULL for a block of an engine that it does not know. */
const cfg_block *code_known_block(const inlay_block *, tool_code **);
inlay_block *code_block_by_index(tool_code *, uint32_t); /* CFG_NONE: NULL */

/* --- <isa>/code.c: what is put in the place of instructions --- */
typedef struct code_bytes {
    const uint8_t *at;
    size_t size; /* 0: there is none */
} code_bytes;
extern const code_bytes code_return;
code_bytes code_nothing(size_t size); /* an instruction of so many bytes that does nothing */

/* --- code_inserts.c, code_replace.c --- */
/* Runs hold procedures as a whole, not what is executed next. */
static inline bool code_shows_whole(void) { return tool_handoff_data.role == TOOL_INSTRUMENTOR || tool_here.plans; }
void code_touch(tool_code *, uint64_t address, int times); /* so much more is inserted there */
/* In the values of `replaced`: the key is a call or jump to the procedure; the procedure is not replaced but wrapped.
 */
enum { CODE_AT_CALL = 1, CODE_IS_WRAP = 2, CODE_KIND = CODE_AT_CALL | CODE_IS_WRAP };

/* Where callers find what a procedure returns. */
unsigned code_result_register(void);

#endif
