/* Basic blocks, as executed: entered at the first instruction only, left at the last only, which is the first control
 * transfer (a jump, also when it is not taken, call, return, system call, trap).
 *
 * An instruction stands in several blocks when some jump leads into the middle of one: the one goes on to its end, the
 * other begins there. Each execution belongs to one of them, so counts per block or per instruction add up exactly,
 * and all engines give the same. What is inserted at an instruction (not at a block) should not depend on the block
 * in which it is shown: where code has one place (rewrite), that of the block which begins last holds.
 *
 * Engines that discover code as it runs (jit) show a block when control first reaches it; others all that could be. A
 * very long block may be handed out in parts. */
#ifndef INLAY_BLOCK_H
#define INLAY_BLOCK_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t inlay_block_address(const inlay_block *);
uint64_t inlay_block_size(const inlay_block *); /* bytes of code */
unsigned inlay_block_insn_count(const inlay_block *);
inlay_insn *inlay_block_first(inlay_block *);
inlay_insn *inlay_block_last(inlay_block *);
inlay_proc *inlay_block_proc(const inlay_block *);   /* NULL: unknown code */
inlay_image *inlay_block_image(const inlay_block *); /* NULL: not in a file */
bool inlay_block_is_head(const inlay_block *);       /* false: a further part of one of over 256 instructions (jit) */
bool inlay_block_wanted(const inlay_block *);        /* by --image and --proc */

#ifdef __cplusplus
}
#endif

#endif
