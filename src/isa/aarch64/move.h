/* Branches at another address. */
#ifndef INL_ISA_AARCH64_MOVE_H
#define INL_ISA_AARCH64_MOVE_H

#include "isa/aarch64/a64.h"

enum { A64_MOVED_BRANCH = 8 };
/* Writes the direct branch `in` (of any kind) to run at `to` and lead to `target`: itself where it reaches, else
 * its opposite over a b. The number of bytes, at most A64_MOVED_BRANCH; 0: `target` is more than 128 MB away. */
unsigned a64_move_branch(const isa_insn *in, uint64_t to, uint64_t target, uint8_t *out);
/* The branch `word`, which stands at `at`, leads to `target`; false: it does not reach. */
bool a64_retarget(uint32_t *word, uint64_t at, uint64_t target);

#endif
