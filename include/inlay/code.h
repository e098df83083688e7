/* Code as a file holds it: every procedure's basic blocks, instructions and edges, before any of it has
 * run, the same for every engine.
 *
 *     static void image_loaded(inlay_image *i, void *arg)
 *     {
 *         for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p))
 *             for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
 *                 inlay_insert(inlay_block_entry(b), inlay_count(&blocks, 1));
 *     }
 *
 * Handles live as long as the image. What block.h, insn.h and point.h say of blocks and instructions
 * holds for these too. A snippet inserted at one of their points belongs to the instruction's address:
 * it runs whenever that instruction does, however an engine cuts code into blocks. It must be made in
 * an image or procedure callback, before the instruction first runs.
 *
 * Blocks here are those of the static analysis: a block also ends before an instruction that any known
 * branch leads to, and behind a call. Code that belongs to no procedure with a name of its own is
 * counted to the procedure before it. */
#ifndef INLAY_CODE_H
#define INLAY_CODE_H

#include <inlay/point.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How much of a procedure is known. Engines that move code leave alone what is not whole. */
typedef enum inlay_known { INLAY_WHOLE, INLAY_PARTLY, INLAY_LEFT } inlay_known;
/* *why: static text, NULL when it is whole; `why` may be NULL. */
inlay_known inlay_proc_known(inlay_proc *, const char **why);
bool inlay_proc_address_taken(inlay_proc *);

/* Blocks in order of address; NULL at the ends, and where nothing is known. */
inlay_block *inlay_proc_block_first(inlay_proc *);
inlay_block *inlay_proc_block_last(inlay_proc *);
unsigned inlay_proc_block_count(inlay_proc *);
inlay_block *inlay_block_next(const inlay_block *); /* within the procedure */
inlay_block *inlay_block_prev(const inlay_block *);
inlay_insn *inlay_insn_prev(const inlay_insn *); /* within the block */
/* The block, or the instruction, that begins at an address (NULL: none), and the block that covers it. */
inlay_block *inlay_block_at(uint64_t address);
inlay_block *inlay_block_covering(uint64_t address);
inlay_insn *inlay_insn_at(uint64_t address);

enum {                                /* inlay_block_flags */
       INLAY_BLOCK_ENTRY = 1,         /* the procedure's first instruction */
       INLAY_BLOCK_TARGET = 2,        /* a branch or a jump table leads here */
       INLAY_BLOCK_LANDING = 4,       /* an exception landing pad */
       INLAY_BLOCK_ADDRESS_TAKEN = 8, /* data or code holds this address */
       INLAY_BLOCK_OUTSIDE = 16,      /* a branch of another procedure leads here */
       INLAY_BLOCK_LOOP_HEAD = 32,
       INLAY_BLOCK_CALL = 64,        /* ends with a call */
       INLAY_BLOCK_NO_RETURN = 128,  /* ... that does not come back */
       INLAY_BLOCK_RETURN = 256,     /* ends with a return */
       INLAY_BLOCK_UNRESOLVED = 512, /* ends with an indirect jump whose targets are not known */
};
unsigned inlay_block_flags(const inlay_block *);
unsigned inlay_block_id(const inlay_block *); /* in the image, counting from 0 by address */

typedef enum inlay_edge_kind {
    INLAY_EDGE_FALL,  /* into the next block, no branch */
    INLAY_EDGE_TAKEN, /* a conditional branch, taken */
    INLAY_EDGE_NOT_TAKEN,
    INLAY_EDGE_JUMP,     /* an unconditional jump within the procedure */
    INLAY_EDGE_TABLE,    /* through a jump table */
    INLAY_EDGE_RETURNED, /* behind a call, when it returns */
    INLAY_EDGE_TAIL,     /* a jump to another procedure */
} inlay_edge_kind;
typedef struct inlay_edge {
    inlay_edge_kind kind;
    uint64_t target;
    inlay_block *to; /* NULL: not in this image, or not known */
    bool back;       /* closes a loop */
} inlay_edge;
unsigned inlay_block_successor_count(const inlay_block *);
inlay_edge inlay_block_successor(const inlay_block *, unsigned k);

/* Blocks of the procedure from which control comes to this one, by address: k from 0; NULL: there are no more. */
inlay_block *inlay_block_predecessor(const inlay_block *, unsigned k);

/* The last other block that all ways from the procedure's entry to this one pass, and the first that all ways from it
 * to the procedure's end pass: what is counted there need not be counted here. NULL: there is none. Landing pads, and
 * what is jumped to from elsewhere or has its address taken, are entries, too, as is what nothing is known to lead to;
 * ends are returns, jumps to other procedures or to where nobody knows, and calls that do not come back. That a call
 * may be left by an exception is no way. */
inlay_block *inlay_block_dominator(const inlay_block *);
inlay_block *inlay_block_post_dominator(const inlay_block *);
/* Does `a` stand on each way to `b`, or from it? (A block does on its own.) */
bool inlay_block_dominates(const inlay_block *a, const inlay_block *b);
bool inlay_block_post_dominates(const inlay_block *a, const inlay_block *b);

/* How a memory operand's address is made up: base + index * scale + displacement (+ a segment's base). Registers by
 * inlay_reg, -1 where there is none (or it is not a general register). PC-relative operands have their
 * address in `displacement`. */
typedef struct inlay_address {
    int base, index;
    unsigned scale;
    int64_t displacement;
    bool pc_relative;
    int segment; /* INLAY_FS, INLAY_GS: that one's base is added; -1: none is */
} inlay_address;
inlay_address inlay_insn_address_of(const inlay_insn *, unsigned k);

/* From now on the procedure is `result`: it is evaluated where the procedure would begin (its arguments
 * are at hand), becomes the integer return value, and control goes back to the caller. Nothing of the
 * procedure's own code runs or is shown. From an image or procedure callback. */
bool inlay_proc_replace(inlay_proc *, inlay_expr result);
/* The same for one call, an instruction of the static view: it is `result` (which may call another procedure, as texts
 * do, typed.h), or, NULL, nothing: the register for results stays as it was. */
bool inlay_call_replace(inlay_insn *call, inlay_expr result);
/* It is itself again, with a mutator's next commit (process.h). False, with a message, elsewhere, or where nothing is
 * replaced. */
bool inlay_proc_restore(inlay_proc *);
bool inlay_call_restore(inlay_insn *call);

#ifdef __cplusplus
}
#endif

#endif
